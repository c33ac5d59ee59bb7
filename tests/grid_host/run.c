// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module's grid as an ordinary program, for machines on which a long has 32 bits: prints, as JSON, the first due
 * time after time 0 and what one late act records.  Arguments: period_ns late_ns.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fastenough.h"

struct fe_options fe_options;

static u64 charged;
static s64 largest, smallest, sum;

ktime_t ktime_get(void)
{
	return 0;
}

void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at)
{
	(void)bank;
	(void)at;
	if (series != FE_WAKEUP_CORRECTED)
		return;
	if (charged == 0 || value_ns > largest)
		largest = value_ns;
	if (charged == 0 || value_ns < smallest)
		smallest = value_ns;
	charged++;
	sum += value_ns;
}

void fe_record_lost(struct fe_bank *bank, unsigned int series, u64 count)
{
	bank->series[series].lost += count;
}

int main(int argc, char **argv)
{
	static struct fe_bank bank;
	u64 steps;

	if (argc != 3)
		return 2;
	fe_options.period_ns = strtoul(argv[1], NULL, 10);
	steps = fe_grid_act(&bank, 1000, 1000 + strtoll(argv[2], NULL, 10));
	printf("{\"long_bytes\": %zu, \"first\": %lld, \"steps\": %llu, \"missed\": %llu, \"charged\": %llu, "
	       "\"missed_corrected\": %llu, \"largest\": %lld, \"smallest\": %lld, \"sum\": %lld, \"lost\": %llu}\n",
	       sizeof(long), (long long)fe_grid_first(), (unsigned long long)steps,
	       (unsigned long long)bank.series[FE_WAKEUP].missed, (unsigned long long)charged,
	       (unsigned long long)bank.series[FE_WAKEUP_CORRECTED].missed, (long long)largest,
	       (long long)smallest, (long long)sum,
	       (unsigned long long)bank.series[FE_WAKEUP_CORRECTED].lost);
	return 0;
}
