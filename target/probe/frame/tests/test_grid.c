/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every period is one value of the corrected series, however late an act is: as if each had been added by itself. */
#include <string.h>

#include "check.h"
#include "grid.h"
#include "random.h"

#define PERIOD_NS 100
#define LIMIT_NS 12345
#define STALLS 3000

static struct series *added[6];
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

static bool going, ended_early;

bool run_is_active(const struct worker *self)
{
	(void)self;
	return going;
}

bool run_continues(struct worker *self)
{
	return run_is_active(self);
}

bool run_ended_early(const struct worker *self)
{
	(void)self;
	return ended_early;
}

/* One flip and one reading, as the reporter does them. */
static void read_series(struct series *const *series, int count)
{
	for (int i = 0; i < count; i++)
		series_flip(series[i]);
	for (int i = 0; i < count; i++) {
		series_complete(series[i], series_flipped(series[i]));
		series_accumulate(series[i], series_flipped(series[i]));
	}
}

static void read_one(struct series *series)
{
	read_series(&series, 1);
}

static void read_all(void)
{
	read_series(added, added_count);
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
	check(wakeups.uncorrected->total.count == 3 && wakeups.uncorrected->total_missed == 5);
	check(wakeups.corrected->total.count == 8 && wakeups.corrected->total_missed == 5);
	check(wakeups.corrected->total.sum == 3 + (350 + 250 + 150 + 50) + (350 + 250 + 150));
	check(wakeups.corrected->spec.silent && !wakeups.uncorrected->spec.silent);
}

/* A thread that sees the end of the run late acts once more, for all that was due until then. */
static void ended_while_late(void)
{
	struct wakeups wakeups = grid_add_series(NULL, &(struct series_spec){.name = "wakeup", .period_ns = PERIOD_NS});
	struct grid grid = {.due_ns = mono_ns() - 100 * PERIOD_NS, .period_ns = PERIOD_NS};
	int acts = 0;

	going = true;
	check(grid_continues(NULL, &grid) && !grid.end_ns);
	going = false;
	check(!grid_continues(NULL, &grid));
	ended_early = true;
	for (; grid_continues(NULL, &grid) && acts < 5; acts++)
		grid_account(&grid, &wakeups, mono_ns());
	read_all();
	check(acts == 1 && wakeups.uncorrected->total.count == 1 && wakeups.uncorrected->total_missed >= 100);
	check(wakeups.corrected->total.count == wakeups.uncorrected->total_missed + 1 && grid.due_ns > grid.end_ns);
	ended_early = false;
}

static bool same(const struct series *a, const struct series *b)
{
	int32_t low = series_bucket(a->total.min), high = series_bucket(a->total.max);

	return !memcmp(&a->total, &b->total, sizeof(a->total)) && !memcmp(&a->total_over, &b->total_over, sizeof(a->total_over)) &&
	       !memcmp(a->total_rises, b->total_rises, sizeof(a->total_rises)) && a->total_lost == b->total_lost &&
	       a->total_gaps == b->total_gaps && a->magnitudes == b->magnitudes && a->before == b->before &&
	       a->run_length == b->run_length &&
	       a->totals && b->totals && !memcmp(a->totals + low, b->totals + low, (size_t)(high - low + 1) * sizeof(*a->totals));
}

static struct series *limited(void)
{
	struct series *series = series_new(0, &(struct series_spec){.name = "x", .corrected = true, .silent = true}, 0);

	series->limit_ns = LIMIT_NS;
	return series;
}

/* Short stalls and long ones, of short periods and long ones; a full bucket and lost values between them. */
static void as_one_by_one(void)
{
	struct series *at_once = limited(), *each = limited();

	for (int i = 0; i < STALLS; i++) {
		int64_t period_ns = 1 + (int64_t)(next_random() >> (40 + next_random() % 23));
		struct fe_charges charges = {(int64_t)(next_random() >> (36 + next_random() % 28)), period_ns, 0};

		charges.count = 1 + next_random() % 4096;
		if (charges.count > (uint64_t)(charges.first / period_ns) + 2)
			charges.count = (uint64_t)(charges.first / period_ns) + 2; /* the last one may lie below 0 */
		series_add_charges(at_once, &charges);
		for (uint64_t n = 0; n < charges.count; n++)
			series_add(each, charges.first - (int64_t)n * period_ns);
		if (i % 16 == 0) {
			series_add_lost(at_once, 3);
			series_add_lost(each, 3);
		}
		read_one(at_once);
		read_one(each);
		check(same(at_once, each));
	}
	check(at_once->total_over.runs > 100 && at_once->total_over.exceeded > 10000 && at_once->total.min < 0);
	series_free(at_once);
	series_free(each);
}

/* What each reader demands of a series in an interval: runs are at most as many as values, and never fewer than none. */
static void possible(struct series *series)
{
	const struct epoch *epoch = series_flipped(series);
	int64_t runs = 0;

	for (size_t edge = 1; edge <= SERIES_EDGES; edge++) {
		runs += epoch->rises[edge];
		check(runs >= 0 && (uint64_t)runs <= epoch->stats.count);
	}
	check(runs == 0);
}

/* The next value of an act, and what the periods that it missed are charged with: about the limit, now above it, now below. */
static int64_t random_charges(struct fe_charges *charges)
{
	int64_t late_ns = (int64_t)(next_random() >> (46 + next_random() % 12)) - 40;

	*charges = (struct fe_charges){late_ns - PERIOD_NS, PERIOD_NS, late_ns < PERIOD_NS ? 0 : (uint64_t)(late_ns / PERIOD_NS)};
	if (next_random() % 3 == 0)
		charges->count = charges->count ? 1 + next_random() % charges->count : 0;
	return late_ns;
}

static bool same_buckets(const struct series *a, const struct series *b)
{
	for (int32_t i = series_bucket(a->total.min); i <= series_bucket(a->total.max); i++)
		if (series_stored(a, i) != series_stored(b, i))
			return false;
	return true;
}

static bool same_totals(const struct series *a, const struct series *b)
{
	return !memcmp(&a->total, &b->total, sizeof(a->total)) && !memcmp(&a->total_over, &b->total_over, sizeof(a->total_over)) &&
	       !memcmp(a->total_rises, b->total_rises, sizeof(a->total_rises)) && a->total_lost == b->total_lost &&
	       a->total_gaps == b->total_gaps && same_buckets(a, b);
}

static void read_interval(struct series *const *shared, struct series *const *apart)
{
	for (int n = 0; n < 2; n++)
		series_flip(shared[n]);
	for (int n = 0; n < 2; n++) {
		series_complete(shared[n], series_flipped(shared[n]));
		possible(shared[n]);
		series_accumulate(shared[n], series_flipped(shared[n]));
		read_one(apart[n]);
		if (apart[n]->total.count)
			check(same_totals(shared[n], apart[n]));
	}
}

static void read_recording(struct series *const *shared, struct series *const *apart)
{
	for (int n = 0; n < 2; n++) {
		series_begin_with_flip(shared[n]);
		series_begin_with_flip(apart[n]);
	}
	read_interval(shared, apart);
}

static void lose_two(struct series *const *shared, struct series *const *apart)
{
	series_add_lost(shared[0], 2);
	series_add_lost(apart[0], 2);
	series_add_lost(apart[1], 2);
}

/* Between what belongs to an act, and between acts. */
static void disturb(struct series *const *shared, struct series *const *apart)
{
	if (next_random() % 64 == 0)
		lose_two(shared, apart);
	if (next_random() % 64 == 0)
		read_recording(shared, apart);
	if (next_random() % 64 == 0)
		read_interval(shared, apart);
}

static void one_act(struct series *const *shared, struct series *const *apart)
{
	struct fe_charges charges;
	int64_t late_ns = random_charges(&charges);

	series_add(shared[0], late_ns);
	series_add(apart[0], late_ns);
	series_add(apart[1], late_ns);
	disturb(shared, apart);
	if (charges.count) {
		series_add_charges(shared[1], &charges);
		series_add_charges(apart[1], &charges);
	}
	disturb(shared, apart);
}

/* A series that holds only its charges has the totals of one that holds its values, too: in each recording. */
static void shared_as_apart(void)
{
	struct series *shared[] = {limited(), limited()}, *apart[] = {limited(), limited()};

	series_share(shared[1], shared[0]);
	for (int i = 0; i < STALLS; i++) {
		for (uint64_t acts = next_random() % 4; acts; acts--)
			one_act(shared, apart);
		read_interval(shared, apart);
	}
	check(shared[1]->total_over.runs > 100 && shared[1]->total.count > 2 * shared[0]->total.count);
}

/* The values of an interval without a charge are counted once, and no memory of the other series is touched for them. */
static void nothing_charged(void)
{
	struct series *shared[] = {limited(), limited()};
	struct epoch *charged;

	series_share(shared[1], shared[0]);
	for (int64_t late_ns = -3; late_ns < 300; late_ns += 3)
		series_add(shared[0], late_ns);
	series_flip(shared[0]);
	series_complete(shared[0], series_flipped(shared[0]));
	charged = series_flipped(shared[1]);
	check(charged->stats.count == 101 && series_repeats(shared[1], charged) && !series_repeats(shared[0], charged));
	check(epoch_next_filled(charged, series_bucket(-3), series_bucket(300)) > series_bucket(300));
	for (int n = 0; n < 2; n++)
		series_accumulate(shared[n], series_flipped(shared[n]));
	check(!shared[1]->totals && series_stored(shared[1], 297) == 1 && series_stored(shared[1], 298) == 0);
	check(!series_repeats(shared[1], series_flipped(shared[1])));
	for (int n = 0; n < 2; n++)
		series_free(shared[n]);
}

/* 2^32 values in one bucket: as many as are counted there. */
static void no_room_in_a_bucket(void)
{
	struct series *series = limited();
	struct fe_charges charges = {1000, 1, 3};

	series->epochs[0].buckets[999] = UINT32_MAX;
	series_add_charges(series, &charges);
	check(series->epochs[0].lost == 1 && series->epochs[0].gaps == 1 && series->epochs[0].stats.count == 2);
	check(series->epochs[0].stats.sum == 1998 && series->magnitudes == 1998);
	series_free(series);
}

/* A minute and a half at 5 us is charged period by period; after it another of two minutes might be more than the sum of
 * a run can hold, and a clock set from 1970 is more than any sum. */
static void the_longest(void)
{
	struct wakeups wakeups = grid_add_series(NULL, &(struct series_spec){.name = "wakeup", .period_ns = 5000});
	struct grid grid = {.due_ns = 0, .period_ns = 5000};
	int64_t late_ns = 90000000000, later_ns = 140000000000, since_1970_ns = 1790000000000000000;
	uint64_t periods = (uint64_t)late_ns / 5000;
	const struct series *corrected = wakeups.corrected;

	grid_account(&grid, &wakeups, late_ns);
	check(grid.due_ns == late_ns + 5000);
	read_all();
	check(corrected->total.count == periods + 1 && corrected->total_lost == 0);
	check(corrected->total.sum == (int64_t)(periods * (periods + 1) / 2 * 5000));
	grid_account(&grid, &wakeups, grid.due_ns + later_ns);
	read_all();
	check(corrected->total_lost == (uint64_t)later_ns / 5000);
	grid_account(&grid, &wakeups, since_1970_ns);
	read_all();
	check(corrected->total_lost == corrected->total_missed - periods && wakeups.uncorrected->total_lost == 0);
	check(corrected->total.count == periods + 3 && corrected->total_gaps == 2 && wakeups.uncorrected->total_gaps == 0);
	grid_account(&grid, &wakeups, grid.due_ns + 3);
	read_all();
	check(corrected->total.count == periods + 4 && wakeups.uncorrected->total.count == 4);
}

int main(void)
{
	late_by_periods();
	ended_while_late();
	as_one_by_one();
	shared_as_apart();
	nothing_charged();
	no_room_in_a_bucket();
	the_longest();
	return failures != 0;
}
