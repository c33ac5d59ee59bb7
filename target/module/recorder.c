// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histograms and counters in two banks.  The task fills one without a lock; the reader swaps them and
 * waits until every context that could still be writing has gone by: interrupts and sections with
 * preemption off are RCU readers.  The bank that is not being filled is always clear.
 */
#include <linux/compiler.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "fastenough.h"

#define TALLY_BYTES (2 * FE_BUCKETS * sizeof(u32))

static struct fe_bank banks[2];
static unsigned int current_bank;
static u64 counted[FE_MAX_COUNTERS];

static struct fe_tally *tally(unsigned int i)
{
	return &banks[i / FE_MAX_SERIES].series[i % FE_MAX_SERIES];
}

int fe_recorder_create(void)
{
	unsigned int i;

	for (i = 0; i < 2 * FE_MAX_SERIES; i++) {
		u32 *buckets = vzalloc(TALLY_BYTES);

		if (!buckets) {
			fe_recorder_destroy();
			return -ENOMEM;
		}
		tally(i)->buckets[0] = buckets;
		tally(i)->buckets[1] = buckets + FE_BUCKETS;
	}
	return 0;
}

void fe_recorder_destroy(void)
{
	unsigned int i;

	for (i = 0; i < 2 * FE_MAX_SERIES; i++)
		vfree(tally(i)->buckets[0]);
}

struct fe_bank *fe_recorder_filling(void)
{
	return &banks[READ_ONCE(current_bank)];
}

void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at)
{
	struct fe_tally *tally = &bank->series[series];

	if (tally->stats.count == 0 || value_ns > tally->stats.max) {
		tally->max_at = at;
		tally->max_cpu = raw_smp_processor_id();
	}
	tally->buckets[value_ns < 0][fe_hist_index(fe_magnitude(value_ns), FE_K)]++;
	fe_stats_add(&tally->stats, value_ns);
}

struct fe_bank *fe_recorder_swap(void)
{
	unsigned int filled = current_bank;

	WRITE_ONCE(current_bank, !filled);
	synchronize_rcu();
	return &banks[filled];
}

void fe_recorder_clear(struct fe_bank *bank)
{
	unsigned int i;

	for (i = 0; i < FE_MAX_COUNTERS; i++)
		counted[i] += bank->counters[i];
	memset(bank->counters, 0, sizeof(bank->counters));
	for (i = 0; i < FE_MAX_SERIES; i++) {
		struct fe_tally *tally = &bank->series[i];

		memset(&tally->stats, 0, sizeof(tally->stats));
		memset(tally->buckets[0], 0, TALLY_BYTES);
		tally->lost = tally->missed = 0;
	}
}

u64 fe_recorder_counted(unsigned int counter)
{
	return counted[counter];
}
