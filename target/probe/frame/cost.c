/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of a clock reading and of recording a sample on this machine; stored in every head. */
#include "run.h"

#define ROUNDS 8
#define BATCH 64

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t clock_batch_ns(void)
{
	int64_t begin_ns = mono_ns();

	for (int i = 1; i < BATCH; i++)
		mono_ns();
	return mono_ns() - begin_ns;
}

/* The least step between two readings: no resolution of the clock is coarser.  INT64_MAX where it never moved. */
static int64_t clock_step_ns(void)
{
	int64_t step_ns = INT64_MAX, before_ns = mono_ns();

	for (int i = 0; i < BATCH; i++) {
		int64_t now_ns = mono_ns();

		if (now_ns > before_ns)
			step_ns = least(step_ns, now_ns - before_ns);
		before_ns = now_ns;
	}
	return step_ns;
}

static int64_t record_batch_ns(struct series *series)
{
	int64_t begin_ns = mono_ns();

	for (int i = 0; i < BATCH; i++)
		series_add(series, 4000 + i);
	return mono_ns() - begin_ns;
}

/* The least of several rounds: interruptions only ever add. */
void cost_measure(struct run *run)
{
	struct series *scratch = series_new(0, &(struct series_spec){0}, 0);
	int64_t clock_ns = INT64_MAX, step_ns = INT64_MAX, record_ns = INT64_MAX;

	if (!scratch)
		bad_input("no memory for a histogram; free some");
	for (int i = 0; i < ROUNDS; i++) {
		clock_ns = least(clock_ns, clock_batch_ns());
		step_ns = least(step_ns, clock_step_ns());
		record_ns = least(record_ns, record_batch_ns(scratch));
	}
	series_free(scratch);
	run->clock_read_ns_thousandths = clock_ns * 1000 / BATCH;
	run->clock_step_ns = step_ns == INT64_MAX ? 0 : step_ns;
	run->record_ns_thousandths = record_ns * 1000 / BATCH;
}
