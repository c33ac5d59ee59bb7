/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The warm-up: acts take place, on the grid that they go on with, and are counted like any.  At its end the reporter
 * takes the epochs of all series and throws them away.  No act ever asks whether it is counted.
 */
#include "run.h"

/* How often the watchdog is fed and the table drawn. */
#define POLL_NS NS_PER_S

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
	series->dropped_max.maximum = false;
}

/* What the writers remember of the values before ends with the flip. */
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
