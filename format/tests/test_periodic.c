/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check.h"
#include "periodic.h"

int main(void)
{
	/* in time, early, late within the period */
	check(fe_periods_missed(1000, 1000, 100) == 0);
	check(fe_periods_missed(1000, 900, 100) == 0);
	check(fe_periods_missed(1000, 500, 100) == 0);
	check(fe_periods_missed(1000, 1099, 100) == 0);
	/* as late as the next due time: that one did not take place */
	check(fe_periods_missed(1000, 1100, 100) == 1);
	check(fe_delay_charged(1000, 1100, 100, 1) == 0);
	check(fe_periods_missed(1000, 1199, 100) == 1);
	check(fe_periods_missed(1000, 1250, 100) == 2);
	check(fe_delay_charged(1000, 1250, 100, 1) == 150);
	check(fe_delay_charged(1000, 1250, 100, 2) == 50);
	/* where an act follows at once, the period that has begun is not missed */
	check(fe_periods_over(1000, 900, 100) == 0);
	check(fe_periods_over(1000, 1099, 100) == 0);
	check(fe_periods_over(1000, 1100, 100) == 0);
	check(fe_periods_over(1000, 1250, 100) == 1);
	/* a stall of 100 ms at 200 us: its own act and 500 missed, or 499 if it began off the grid */
	check(fe_periods_missed(0, 100000000, 200000) == 500);
	check(fe_periods_missed(0, 99999999, 200000) == 499);
	/* every delay charged lies within the stall, and the next due time is in the future */
	for (fe_s64 begin = 0; begin < 2000; begin++) {
		fe_u64 missed = fe_periods_missed(7, begin, 13);

		for (fe_u64 n = 1; n <= missed; n++)
			check(fe_delay_charged(7, begin, 13, n) >= 0 && fe_delay_charged(7, begin, 13, n) < begin - 7);
		check(7 + (fe_s64)(missed + 1) * 13 > begin);
	}
	/* an hour asleep at 20 us does not overflow */
	check(fe_periods_missed(0, 3600000000000, 20000) == 180000000);
	/* whoever is ready late begins on the same grid, later */
	check(fe_due_after(1000, 999, 100) == 1000);
	check(fe_due_after(1000, 1000, 100) == 1100);
	check(fe_due_after(1000, 1099, 100) == 1100);
	check(fe_due_after(1000, 1250, 100) == 1300);
	return failures != 0;
}
