// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Series and counters in two banks, filled without a lock.  The reader announces an instant slightly ahead, from which on
 * acts belong to the other bank.  Each act uses the bank of its own instant, so it is counted in the interval that contains
 * it.  After that instant, the reader waits until every context that may still write the old bank has ended
 * (fe_core.settle).  The other bank is always cleared before.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "fastenough.h"

/* All CPUs must know the new instant before it arrives. */
#define AHEAD_NS NSEC_PER_MSEC

static struct fe_bank banks[2];
static atomic64_t switch_at;  /* an instant; its lowest bit is the bank to fill from then on */
static atomic64_t first[2]; /* when the first act in each bank took place; 0: none has */
static atomic64_t ended;    /* when the task ended by itself; 0: it has not */
static ktime_t last_switch;      /* the instant before; acts before the first one are in the first bank */
static u64 counted[FE_BANK_COUNTERS];

static struct fe_tally *tally(unsigned int i)
{
	return &banks[i / FE_BANK_MAX_SERIES].series[i % FE_BANK_MAX_SERIES];
}

int fe_recorder_create(unsigned int series_count)
{
	unsigned int i;

	for (i = 0; i < 2 * FE_BANK_MAX_SERIES; i++) {
		u32 *buckets;

		banks[i / FE_BANK_MAX_SERIES].cpu = -1;
		if (i % FE_BANK_MAX_SERIES >= series_count)
			continue;
		buckets = vzalloc(FE_BANK_BUCKETS * sizeof(u32));
		if (!buckets) {
			fe_recorder_destroy();
			return -ENOMEM;
		}
		tally(i)->buckets = buckets + FE_BANK_HALF - 1;
	}
	last_switch = fe_core.now();
	return 0;
}

void fe_recorder_destroy(void)
{
	unsigned int i;

	for (i = 0; i < 2 * FE_BANK_MAX_SERIES; i++)
		if (tally(i)->buckets)
			vfree(tally(i)->buckets - (FE_BANK_HALF - 1));
}

void fe_recorder_begin(ktime_t begin)
{
	last_switch = begin;
}

void fe_recorder_end(ktime_t end)
{
	atomic64_cmpxchg(&ended, 0, ktime_to_ns(end));
}

struct fe_bank *fe_recorder_bank_at(ktime_t at)
{
	s64 from = atomic64_read(&switch_at);
	unsigned int filling = (from & 1) ^ (ktime_to_ns(at) < from);

	if (!atomic64_read(&first[filling]))
		atomic64_set(&first[filling], ktime_to_ns(at));
	return &banks[filling];
}

/* Returns when all CPUs know the instant, at the latest: *at. */
static s64 announce_switch(s64 *at)
{
	s64 next = !(atomic64_read(&switch_at) & 1), known;
	unsigned long flags;

	local_irq_save(flags);
	*at = ((max_t(s64, ktime_to_ns(fe_core.now()), ktime_to_ns(last_switch)) + AHEAD_NS) & ~1ll) | next;
	atomic64_set(&switch_at, *at);
	smp_mb(); /* all CPUs see it before the clock is read again */
	known = ktime_to_ns(fe_core.now());
	local_irq_restore(flags);
	return known;
}

/*
 * If a hypervisor stopped this CPU for longer than the lead, acts after the instant still used the old bank, for an unknown
 * time.  The banks then switch at the first act in the new bank.
 */
static s64 switch_time(s64 at, s64 known)
{
	s64 begun = atomic64_read(&first[at & 1]);

	if (known < at)
		return at;
	return begun && begun < known ? begun : known;
}

/* The last bank ends with the task, not when stopping it has ended: no period counts in between. */
static s64 end_of(s64 parting_ns)
{
	s64 ended_ns = atomic64_read(&ended);

	return ended_ns > ktime_to_ns(last_switch) && ended_ns < parting_ns ? ended_ns : parting_ns;
}

struct fe_bank *fe_recorder_switch(ktime_t *begin, ktime_t *end)
{
	s64 at, known = announce_switch(&at);

	while (ktime_to_ns(fe_core.now()) < at)
		usleep_range(AHEAD_NS / NSEC_PER_USEC, 2 * AHEAD_NS / NSEC_PER_USEC);
	fe_core.settle();
	*begin = last_switch;
	*end = last_switch = ns_to_ktime(end_of(switch_time(at, known)));
	return &banks[!(at & 1)];
}

void fe_recorder_clear(struct fe_bank *bank)
{
	unsigned int i;

	for (i = 0; i < FE_BANK_COUNTERS; i++)
		counted[i] += bank->counters[i];
	memset(bank->counters, 0, sizeof(bank->counters));
	for (i = 0; i < FE_BANK_MAX_SERIES; i++)
		fe_tally_clear(&bank->series[i]);
	atomic64_set(&first[bank - banks], 0);
	bank->cpu = -1;
}

u64 fe_recorder_counted(unsigned int counter)
{
	return counted[counter];
}
