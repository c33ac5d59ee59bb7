/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A periodic act: its grid of due times, and its two series.  Missed periods are counted and charged here:
 *
 *	struct grid grid = grid_begin(run, 0, period_ns);
 *
 *	while (grid_continues(self, &grid) && grid_sleep(self, &grid)) {
 *		int64_t begin_ns = mono_ns();
 *		... the act ...
 *		grid_account(&grid, &wakeups, begin_ns);
 *	}
 *
 * The first due time follows the start of the run, the last one precedes its end.  A thread that did not get its CPU at
 * either of them acts as soon as it runs, and that latency is recorded.
 */
#ifndef GRID_H
#define GRID_H

#include "frame.h"
#include "periodic.h"

struct grid {
	int64_t due_ns, period_ns;
	int64_t end_ns; /* when the worker saw that the run had ended; 0 before */
};

struct wakeups {
	struct series *uncorrected; /* every act, against its own due time */
	/* every period; one without an act counts with its delay; see series_share() */
	struct series *corrected;
};

/* Adds both series, described by the uncorrected one; its period, if any, is that of the grid. */
struct wakeups grid_add_series(struct run *run, const struct series_spec *spec);
/* The same for values counted elsewhere, which fill each series separately. */
struct wakeups grid_add_counted_series(struct run *run, const struct series_spec *spec);

/* By the worker: the grid that begins this offset after that of the run. */
struct grid grid_begin(const struct run *run, int64_t offset_ns, int64_t period_ns);

/* Whether another act follows; counts it for --loops.  After the end of the run, only an act that was due before follows. */
bool grid_continues(struct worker *self, struct grid *grid);

/* Sleeps until the due time, even if woken earlier; false if the run ends first. */
bool grid_sleep(const struct worker *self, const struct grid *grid);
/* The same, without regard to the end of the run; false if sleeping failed. */
bool grid_sleep_through(const struct grid *grid);

/* Charges the missed periods of an act that began then.  Rare, so it is not inlined into the loop. */
void grid_charge(const struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns, uint64_t missed);

/* Between an act and its account: prefetches the memory of the account, which the caches no longer hold after a sleep. */
static inline void grid_fetch(const struct wakeups *wakeups)
{
	series_fetch(wakeups->uncorrected);
}

/* Records an act that began then and missed a known number of periods.  The next due time follows those. */
static inline void grid_account_missed(struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns, uint64_t missed)
{
	series_add(wakeups->uncorrected, begin_ns - grid->due_ns);
	if (__builtin_expect(missed > 0, 0))
		grid_charge(grid, wakeups, begin_ns, missed);
	grid->due_ns += (int64_t)(missed + 1) * grid->period_ns;
}

/* The same; the number of missed periods follows from the clock. */
static inline void grid_account(struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns)
{
	grid_account_missed(grid, wakeups, begin_ns, fe_periods_missed(grid->due_ns, begin_ns, grid->period_ns));
}

#endif
