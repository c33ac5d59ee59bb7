/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A periodic act: its grid of due times, and the two series that every such act has.  Missed periods are
 * counted and charged here, for all acts alike:
 *
 *	struct grid grid = grid_begin(run, 0, period_ns);
 *
 *	while (grid_continues(self, &grid) && grid_sleep(self, &grid)) {
 *		int64_t begin_ns = mono_ns();
 *		... the act ...
 *		grid_account(&grid, &wakeups, begin_ns);
 *	}
 *
 * The first due time is counted from the start of the run, the last one is the last before its end: a thread that is kept
 * from its CPU at either acts as soon as it runs, late as it is.
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
	struct series *each;      /* every act, against its own due time */
	/* every period: those without an act are charged with the delay they suffered; see series_share() */
	struct series *corrected;
};

/* Both series from what is said of the first; its period, where it has one, is that of the grid. */
struct wakeups grid_add_series(struct run *run, const struct series_spec *spec);
/* The same, where each of them is filled by itself with what others counted. */
struct wakeups grid_add_counted_series(struct run *run, const struct series_spec *spec);

/* For the worker: its grid begins so much after the run's. */
struct grid grid_begin(const struct run *run, int64_t offset_ns, int64_t period_ns);

/* Whether another act follows; counts it for --loops.  Where the run has ended, one does if it was due before. */
bool grid_continues(struct worker *self, struct grid *grid);

/* Until the due time has come, whatever wakes the thread before; false when the run ends first. */
bool grid_sleep(const struct worker *self, const struct grid *grid);
/* The same, also where the run ends first; false where sleeping failed. */
bool grid_sleep_through(const struct grid *grid);

/* Of an act that began then.  Rare, so that it is not part of the loop. */
void grid_charge(const struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns, uint64_t missed);

/* Between an act and its account: all of it comes from memory at once, which a sleeping thread's caches no longer hold. */
static inline void grid_fetch(const struct wakeups *wakeups)
{
	series_fetch(wakeups->each);
}

/* An act that began then, where it is known how many periods it missed.  The next due time follows those. */
static inline void grid_account_missed(struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns, uint64_t missed)
{
	series_add(wakeups->each, begin_ns - grid->due_ns);
	if (__builtin_expect(missed > 0, 0))
		grid_charge(grid, wakeups, begin_ns, missed);
	grid->due_ns += (int64_t)(missed + 1) * grid->period_ns;
}

/* The same, where nobody but the clock tells what was missed. */
static inline void grid_account(struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns)
{
	grid_account_missed(grid, wakeups, begin_ns, fe_periods_missed(grid->due_ns, begin_ns, grid->period_ns));
}

#endif
