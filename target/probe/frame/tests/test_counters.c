/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>

#include "check.h"
#include "counters.h"

static struct counters reading(int64_t steal_ns, int64_t faults)
{
	struct counters counters = {0};

	if (steal_ns >= 0)
		counter_set(&counters, COUNTER_STEAL_NS, steal_ns);
	counter_set(&counters, COUNTER_MAJOR_FAULTS, faults);
	return counters;
}

/* Readings one after the other; the differences to the one before and to the first. */
struct readings {
	struct counters_seen seen;
	struct counters first, now, step, whole;
	int count;
};

static void read_next(struct readings *readings, struct counters counters)
{
	struct counters then = readings->now;

	counters_trust(&readings->seen, &counters);
	readings->now = counters;
	if (readings->count++ == 0)
		readings->first = counters;
	readings->step = counters_since(&counters, &then);
	readings->whole = counters_since(&counters, &readings->first);
}

static void growing(void)
{
	struct readings readings = {0};

	read_next(&readings, reading(100, 1));
	read_next(&readings, reading(150, 1));
	read_next(&readings, reading(250, 4));
	check(readings.step.known[COUNTER_STEAL_NS] && readings.step.value[COUNTER_STEAL_NS] == 100);
	check(readings.whole.known[COUNTER_STEAL_NS] && readings.whole.value[COUNTER_STEAL_NS] == 150);
	check(readings.whole.value[COUNTER_MAJOR_FAULTS] == 3);
	check(!readings.whole.known[COUNTER_SMI]);
}

/* A CPU was unplugged: what it had counted is missing, and grows back when it returns. */
static void backwards(void)
{
	struct readings readings = {0};

	read_next(&readings, reading(1000, 1));
	read_next(&readings, reading(400, 2));
	check(!readings.step.known[COUNTER_STEAL_NS] && !readings.whole.known[COUNTER_STEAL_NS]);
	check(readings.step.known[COUNTER_MAJOR_FAULTS]);
	read_next(&readings, reading(1500, 2));
	check(!readings.step.known[COUNTER_STEAL_NS] && !readings.whole.known[COUNTER_STEAL_NS]);
	check(readings.whole.value[COUNTER_MAJOR_FAULTS] == 1);
}

static void vanished(void)
{
	struct readings readings = {0};

	read_next(&readings, reading(1000, 1));
	read_next(&readings, reading(-1, 1));
	read_next(&readings, reading(1001, 1));
	check(!readings.step.known[COUNTER_STEAL_NS] && !readings.whole.known[COUNTER_STEAL_NS]);
}

int main(void)
{
	growing();
	backwards();
	vanished();
	return failures != 0;
}
