/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moved due times: one in each interval, everywhere in it, and so a periodic stall is seen in its share of the acts. */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "dither.h"
#include "periodic.h"

#define PERIOD_NS 1000000
#define ACTS 400000
#define BINS 20
#define STALL_EVERY 4
#define STALL_NS 50000
#define PHASE_NS 500000 /* of the stall, behind a grid point */

static struct dither of_width(int64_t width_ns)
{
	return (struct dither){.width_ns = width_ns, .state = 1};
}

static void without_width(void)
{
	struct dither dither = of_width(0);

	for (int i = 0; i < 1000; i++)
		check(dither_move_ns(&dither, PERIOD_NS) == 0);
}

static void same_by_seed(void)
{
	struct dither one = of_width(100), same = of_width(100), other = of_width(100);
	int differ = 0;

	other.state = 2;
	for (int i = 0; i < 1000; i++) {
		int64_t move_ns = dither_move_ns(&one, 1000);

		check(move_ns == dither_move_ns(&same, 1000));
		differ += move_ns != dither_move_ns(&other, 1000);
	}
	check(differ > 900);
}

/* The n-th due time lies in (n - 1, n] periods; all twentieths of an interval are met alike, to within a tenth. */
static void one_in_each_interval(int64_t width_ns, int64_t period_ns)
{
	struct dither dither = of_width(width_ns);
	int64_t due_ns = period_ns, least_ns = period_ns, most_ns = period_ns;
	int bins[BINS] = {0};

	for (int64_t n = 1; n <= ACTS; n++) {
		int64_t ahead_ns = n * period_ns - due_ns, next_ns = due_ns + period_ns + dither_move_ns(&dither, period_ns);

		check(ahead_ns >= 0 && ahead_ns < period_ns);
		bins[ahead_ns * BINS / period_ns]++;
		least_ns = next_ns - due_ns < least_ns ? next_ns - due_ns : least_ns;
		most_ns = next_ns - due_ns > most_ns ? next_ns - due_ns : most_ns;
		due_ns = next_ns;
	}
	check(least_ns >= period_ns - width_ns && least_ns < period_ns - width_ns / 2);
	check(most_ns <= period_ns + width_ns && most_ns > period_ns + width_ns / 2);
	for (int i = 0; i < BINS; i++)
		check(abs(bins[i] - ACTS / BINS) < ACTS / BINS / 10);
}

/* The instant at which a thread that is due then begins: at once, or after the stall that it lies in. */
static int64_t begin_of(int64_t due_ns, int64_t stall_ns)
{
	int64_t within_ns = (due_ns - PHASE_NS) % (STALL_EVERY * PERIOD_NS);

	return within_ns >= 0 && within_ns < stall_ns ? due_ns + stall_ns - within_ns : due_ns;
}

/* Acts of a thread beside that stall as timer's loop makes them: how many were late; each period is one value. */
static int late_acts(int64_t width_ns, int64_t stall_ns)
{
	struct dither dither = of_width(width_ns);
	int64_t due_ns = PERIOD_NS, begin_ns = 0, values = 0;
	int late = 0;

	for (int i = 0; i < ACTS; i++) {
		uint64_t missed;

		begin_ns = begin_of(due_ns > begin_ns ? due_ns : begin_ns, stall_ns);
		missed = fe_periods_over(due_ns, begin_ns, PERIOD_NS);
		values += 1 + (int64_t)missed;
		late += begin_ns > due_ns;
		due_ns += (int64_t)(missed + 1) * PERIOD_NS + dither_move_ns(&dither, PERIOD_NS);
		check(due_ns > values * PERIOD_NS && due_ns <= (values + 1) * PERIOD_NS);
	}
	return late;
}

/* A stall of 5 % of every fourth interval is in 1.25 % of the acts, or, in phase with the grid, in none at all. */
static void periodic_stall(void)
{
	int share = ACTS / STALL_EVERY / (PERIOD_NS / STALL_NS);

	check(late_acts(0, STALL_NS) == 0);
	check(abs(late_acts(PERIOD_NS / 2, STALL_NS) - share) < share / 10);
	check(abs(late_acts(PERIOD_NS / 10, STALL_NS) - share) < share / 5);
	check(late_acts(PERIOD_NS / 10, 5 * PERIOD_NS / 2) > 0); /* one that is longer than two periods */
}

int main(void)
{
	without_width();
	same_by_seed();
	one_in_each_interval(PERIOD_NS / 2, PERIOD_NS);
	one_in_each_interval(PERIOD_NS / 10, PERIOD_NS);
	one_in_each_interval(DITHER_MOST_NS, 10 * (int64_t)DITHER_MOST_NS);
	one_in_each_interval(2500, 5000);
	periodic_stall();
	return failures != 0;
}
