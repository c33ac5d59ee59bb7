/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every period is one value of the corrected series, whatever is late; and charges have one limit for all acts. */
#include "check.h"
#include "grid.h"

#define PERIOD_NS 100

static struct series *added[2];
static int added_count;

/* What of the frame the grid uses. */
struct series *run_add_series(struct run *run, const struct series_spec *spec)
{
	(void)run;
	added[added_count] = series_new(added_count, spec, 0);
	return added[added_count++];
}

int64_t run_first_due_ns(const struct run *run, int64_t offset_ns, int64_t period_ns)
{
	(void)run;
	return 1000 + offset_ns + period_ns;
}

bool run_going(const struct worker *self)
{
	(void)self;
	return false;
}

static void read_all(void)
{
	for (int i = 0; i < 2; i++) {
		series_flip(added[i]);
		series_settle(added[i], series_flipped(added[i]));
	}
}

static void late_by_periods(void)
{
	struct wakeups wakeups = grid_add_series(NULL, &(struct series_spec){.name = "wakeup", .period_ns = PERIOD_NS});
	struct grid grid = grid_begin(NULL, 7, PERIOD_NS);

	check(grid.due_ns == 1107);
	grid_account(&grid, &wakeups, 1110);
	check(grid.due_ns == 1207);
	grid_account(&grid, &wakeups, 1207 + 350); /* three due times passed meanwhile */
	check(grid.due_ns == 1607);
	grid_account_missed(&grid, &wakeups, 1607 + 350, 2); /* as its kernel says: the period that has begun is not over */
	check(grid.due_ns == 1907);
	read_all();
	check(wakeups.each->total.count == 3 && wakeups.each->total_missed == 5);
	check(wakeups.corrected->total.count == 8 && wakeups.corrected->total_missed == 5);
	check(wakeups.corrected->total.sum == 3 + (350 + 250 + 150 + 50) + (350 + 250 + 150));
	check(wakeups.corrected->spec.silent && !wakeups.each->spec.silent);
}

static void more_than_are_charged(void)
{
	struct wakeups wakeups = {added[0], added[1]};
	struct grid grid = {0, PERIOD_NS};
	uint64_t before = added[1]->total.count;

	grid_account(&grid, &wakeups, (int64_t)(CHARGED_MOST + 10) * PERIOD_NS);
	read_all();
	check(added[1]->total.count - before == CHARGED_MOST + 1 && added[1]->total_lost == 10);
	check(grid.due_ns == (int64_t)(CHARGED_MOST + 11) * PERIOD_NS);
}

int main(void)
{
	late_by_periods();
	more_than_are_charged();
	return failures != 0;
}
