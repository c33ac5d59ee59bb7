/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The start of a run and its warm-up.
 *
 * The head announces a begin, the origin of all grids of due times.  The run starts there, or later if writing the head or
 * releasing the workers took longer: that delay is no latency of the machine.  Every due time after the start counts, even
 * if it passes before its worker first runs.
 *
 * During the warm-up, acts are counted as usual, on the same grid.  At its end the reporter reads the epochs of all series
 * and discards them, so that no act has to check whether it is counted.
 */
#include <errno.h>

#include "periodic.h"
#include "run.h"
#include "sleep.h"
#include "source.h"

#define ANNOUNCED_NS (10 * NS_PER_MS)
/* From the release of the workers to the start. */
#define LEAD_NS (5 * NS_PER_MS)
/* Period of feeding the watchdog and drawing the table during the warm-up. */
#define POLL_NS NS_PER_S

void run_announce(struct run *run)
{
	if (run->source) {
		run->source->begin(run);
		run->announced_ns = run->begin.mono_ns;
		atomic_store(&run->start_ns, run->begin.mono_ns);
		return;
	}
	run->begin = instant_now();
	run->begin.mono_ns += ANNOUNCED_NS;
	run->begin.wall_ns += ANNOUNCED_NS;
	run->announced_ns = run->begin.mono_ns;
}

int64_t run_start_ns(const struct run *run)
{
	return atomic_load(&run->start_ns);
}

int64_t run_first_due_ns(const struct run *run, int64_t offset_ns, int64_t period_ns)
{
	return fe_due_after(run->announced_ns + offset_ns + period_ns, run_start_ns(run), period_ns);
}

/* The first thread released sets the start for all: the time until then is not predictable. */
void run_set_start(struct run *run)
{
	int64_t none = 0, start_ns = mono_ns() + LEAD_NS;

	if (start_ns < run->announced_ns)
		start_ns = run->announced_ns;
	atomic_compare_exchange_strong(&run->start_ns, &none, start_ns);
}

void run_begin_at_start(struct run *run)
{
	int64_t ahead_ns;

	run_set_start(run);
	run->begin = instant_now();
	ahead_ns = run_start_ns(run) - run->begin.mono_ns;
	run->begin.mono_ns += ahead_ns;
	run->begin.wall_ns += ahead_ns;
}

/* Signals wait meanwhile, so that no run ends before it began; workers too, so that none acts before. */
void run_await_start(const struct run *run)
{
	while (sleep_until(run_start_ns(run)) == EINTR)
		;
}

/*
 * Warm-up -----------------------------------------------------------------------------------------
 */

static void forget_events(struct series *series, const struct epoch *epoch)
{
	struct event event;

	for (uint32_t left = epoch->events; left && series_next_event(series, &event); left--)
		;
}

static void forget(struct run *run, struct series *series)
{
	struct epoch *epoch = series_flipped(series);

	if (!epoch) {
		run_fail(run, "series %s of CPU %d could not be read: its worker is stuck", series->spec.name, series->spec.cpu);
		return;
	}
	forget_events(series, epoch);
	series_accumulate(series, epoch);
	series_reset_totals(series);
}

/* The flip also ends the state of the writers about earlier values. */
static void begin_counting(struct run *run)
{
	for_each_series(entry, run) {
		series_begin_with_flip(entry->series);
		entry->series->dropped_before = atomic_load(&entry->series->events_dropped);
	}
	for_each_series(entry, run)
		series_flip(entry->series);
	run->begin = instant_now();
	for_each_series(entry, run) {
		forget(run, entry->series);
		atomic_fetch_sub(&entry->series->events_dropped, entry->series->dropped_before);
	}
	machine_restart_comparison(run);
	machine_read(run, &run->at_start);
	run->at_begin = run->at_start;
}

void warm_up(struct run *run, timer_t watchdog)
{
	int64_t end_ns = run->start_ns + run->settings->warm_up_ns;

	while (run->settings->warm_up_ns && !atomic_load(&run->stop) && !run_all_done(run) && mono_ns() < end_ns) {
		int64_t poll_ns = mono_ns() + POLL_NS, until_ns = poll_ns < end_ns ? poll_ns : end_ns;

		watchdog_feed(watchdog, until_ns - mono_ns());
		if (live_period_ns(run))
			live_draw(run);
		signals_await(until_ns);
	}
}

void count_from_now(struct run *run)
{
	if (run->settings->warm_up_ns)
		begin_counting(run);
	run->counted_ns = run->begin.mono_ns;
}
