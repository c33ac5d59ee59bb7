/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sleep.h"

struct wakeups grid_add_counted_series(struct run *run, const struct series_spec *spec)
{
	struct series_spec uncorrected = *spec, corrected = *spec;
	struct wakeups wakeups;
	char *name;

	if (asprintf(&name, "%s_corrected", spec->name) < 0)
		abort();
	uncorrected.role = SERIES_DIAGNOSTIC;
	wakeups.uncorrected = run_add_series(run, &uncorrected);
	corrected.name = name;
	corrected.corrected = true;
	corrected.relative = false; /* each missed period counts, as on a grid */
	corrected.silent = true;
	corrected.to = "the same; periods in which the act never took place are charged from their own due time";
	wakeups.corrected = run_add_series(run, &corrected);
	return wakeups;
}

struct wakeups grid_add_series(struct run *run, const struct series_spec *spec)
{
	struct wakeups wakeups = grid_add_counted_series(run, spec);

	series_share(wakeups.corrected, wakeups.uncorrected);
	return wakeups;
}

struct grid grid_begin(const struct run *run, int64_t offset_ns, int64_t period_ns)
{
	return (struct grid){.due_ns = run_first_due_ns(run, offset_ns, period_ns), .period_ns = period_ns};
}

/* The act moves the grid beyond the present, and so beyond the end: only one follows. */
bool grid_continues(struct worker *self, struct grid *grid)
{
	if (run_continues(self))
		return true;
	if (!grid->end_ns)
		grid->end_ns = mono_ns();
	return run_ended_early(self) && grid->due_ns <= grid->end_ns;
}

bool grid_sleep(const struct worker *self, const struct grid *grid)
{
	int error;

	do {
		error = sleep_until(grid->due_ns);
	} while (error == EINTR && run_is_active(self));
	return error == 0;
}

bool grid_sleep_through(const struct grid *grid)
{
	int error;

	do {
		error = sleep_until(grid->due_ns);
	} while (error == EINTR);
	return error == 0;
}

void grid_charge(const struct grid *grid, const struct wakeups *wakeups, int64_t begin_ns, uint64_t missed)
{
	struct fe_charges charges = fe_charges_of(grid->due_ns, begin_ns, grid->period_ns, missed);

	series_add_charges(wakeups->corrected, &charges);
	series_add_missed(wakeups->uncorrected, missed);
}
