// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module's grid and series as an ordinary program, for machines on which a long has 32 bits: prints, as JSON, the
 * begin and the first due time of a grid laid at time 0 and what late acts record, one after the other.  Arguments: period_ns late_ns...
 */
#include <stdio.h>
#include <stdlib.h>

#include "fastenough.h"

struct fe_options fe_options;

ktime_t ktime_get(void)
{
	return 0;
}

static ktime_t begin;

void fe_recorder_begin(ktime_t at)
{
	begin = at;
}

static void print_buckets(const struct fe_tally *tally)
{
	const char *between = "";

	printf(", \"buckets\": [");
	for (s32 i = fe_bucket(tally->stats.min); i <= fe_bucket(tally->stats.max); i++)
		if (tally->buckets[i]) {
			printf("%s[%d, %u]", between, i, tally->buckets[i]);
			between = ", ";
		}
	printf("]");
}

static void print_rises(const struct fe_tally *tally)
{
	const char *between = "";

	printf(", \"rises\": [");
	for (u32 i = 1; i <= FE_BANK_EDGES; i++)
		if (tally->rises[i]) {
			printf("%s[%u, %d]", between, i, tally->rises[i]);
			between = ", ";
		}
	printf("]");
}

static void print_series(const struct fe_tally *tally)
{
	const struct fe_stats *stats = &tally->stats;

	printf("{\"missed\": %llu, \"lost\": %llu, \"gaps\": %llu, \"count\": %llu, \"min\": %lld, \"max\": %lld, \"sum\": %lld, "
	       "\"sum_sq\": [%llu, %llu]",
	       (unsigned long long)tally->missed, (unsigned long long)tally->lost, (unsigned long long)tally->gaps,
	       (unsigned long long)stats->count, (long long)stats->min, (long long)stats->max, (long long)stats->sum,
	       (unsigned long long)stats->sum_sq_hi, (unsigned long long)stats->sum_sq_lo);
	print_buckets(tally);
	print_rises(tally);
	printf("}");
}

int main(int argc, char **argv)
{
	static u32 buckets[FE_BANK_MAX_SERIES][FE_BANK_BUCKETS];
	static struct fe_bank bank;
	ktime_t first;

	if (argc < 3)
		return 2;
	for (int i = 0; i < FE_BANK_MAX_SERIES; i++)
		bank.series[i].buckets = buckets[i] + FE_BANK_HALF - 1;
	fe_options.period_ns = strtoul(argv[1], NULL, 10);
	first = fe_grid_begin();
	printf("{\"long_bytes\": %zu, \"begin\": %lld, \"first\": %lld, \"steps\": [", sizeof(long), (long long)begin,
	       (long long)first);
	for (int i = 2; i < argc; i++)
		printf("%s%llu", i > 2 ? ", " : "", (unsigned long long)fe_grid_act(&bank, 1000, 1000 + strtoll(argv[i], NULL, 10)));
	printf("], \"wakeup\": ");
	print_series(&bank.series[FE_WAKEUP]);
	printf(", \"corrected\": ");
	print_series(&bank.series[FE_WAKEUP_CORRECTED]);
	printf("}\n");
	return 0;
}
