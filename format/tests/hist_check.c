/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The header's side of the vectors: reads the lines of histogram-vectors.csv on standard input.
 *   bucket,k,value,index,lower,width     checked; with index "?" the three are printed instead
 *   stats,name,values...|count,min,max,sum,sum_sq_hi,sum_sq_lo
 * Exit status 0 when every line agrees, 1 with the first line that does not.
 */
#include "fe_hist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_bucket(const char *line)
{
	unsigned k;
	uint64_t value, index, lower, width;
	fe_u32 i;

	if (sscanf(line, "bucket,%u,%" SCNu64 ",?", &k, &value) != 2)
		return -1;
	i = fe_hist_index((fe_value)value, k);
	if (strchr(line, '?')) {
		printf("%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n", (uint32_t)i, (uint64_t)fe_hist_lower(i, k),
		       (uint64_t)fe_hist_width(i, k));
		return 0;
	}
	if (sscanf(line, "bucket,%*u,%*u,%" SCNu64 ",%" SCNu64 ",%" SCNu64, &index, &lower, &width) != 3)
		return -1;
	return i == index && fe_hist_lower(i, k) == lower && fe_hist_width(i, k) == width ? 0 : -1;
}

static int check_stats(const char *line)
{
	struct fe_stats whole = {0}, first = {0}, second = {0};
	struct fe_stats *half = &first;
	uint64_t count, hi, lo;
	int64_t min, max, sum;
	char *rest = (char *)line + strlen("stats,");

	while (*rest != '|') {
		int64_t value = strtoll(rest, &rest, 10);

		fe_stats_add(&whole, value);
		fe_stats_add(half, value);
		half = half == &first ? &second : &first;
		if (*rest == ' ')
			rest++;
	}
	fe_stats_merge(&first, &second);
	if (sscanf(rest, "|%" SCNu64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNu64 ",%" SCNu64, &count, &min, &max,
		   &sum, &hi, &lo) != 6)
		return -1;
	if (memcmp(&whole, &first, sizeof(whole)))
		return -1;
	return whole.count == count && whole.min == min && whole.max == max && whole.sum == sum &&
			       whole.sum_sq_hi == hi && whole.sum_sq_lo == lo ? 0 : -1;
}

int main(void)
{
	char line[4096];
	unsigned long number = 0;

	while (fgets(line, sizeof(line), stdin)) {
		int bad = 0;

		number++;
		if (!strncmp(line, "bucket,", 7))
			bad = check_bucket(line);
		else if (!strncmp(line, "stats,", 6))
			bad = check_stats(line);
		else if (line[0] != '#')
			bad = -1;
		if (bad) {
			fprintf(stderr, "line %lu: %s", number, line);
			return 1;
		}
	}
	return number > 0 ? 0 : 1;
}
