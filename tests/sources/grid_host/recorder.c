// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module's two banks as an ordinary program: a task acts every 100 us while the reader parts the banks, and the
 * reader's CPU is stopped for 5 ms as it reads the clock for the nth time, before or after it has read.  Fails where an act
 * lies outside of the time of the bank it was counted in.  Arguments: N before|after
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastenough.h"

#define ACTS 2000
#define APART_NS 100000
#define STOP_NS 5000000
#define READING_NS 100
#define PARTINGS 3

static struct {
	s64 at;
	struct fe_bank *bank;
	bool in_its_time;
} acts[ACTS];
static int acted, readings, stopped_at;
static bool before;
static s64 clock_ns;

static void pass(s64 ns)
{
	for (clock_ns += ns; acted < ACTS && (acted + 1) * APART_NS <= clock_ns; acted++) {
		acts[acted].at = (acted + 1) * APART_NS;
		acts[acted].bank = fe_recorder_bank_at(acts[acted].at);
	}
}

static ktime_t now(void)
{
	bool stops = ++readings == stopped_at;
	s64 read;

	pass(stops && before ? STOP_NS : READING_NS);
	read = clock_ns;
	pass(stops && !before ? STOP_NS : 0);
	return read;
}

static void settle(void)
{
}

const struct fe_core fe_core = {.now = now, .settle = settle};

void fe_tally_clear(struct fe_tally *tally)
{
	(void)tally;
}

/* The task ends by itself, and the reader comes later: by how much the last bank's end is wrong. */
static s64 ended_too_late_ns(void)
{
	s64 ended_ns = clock_ns;
	ktime_t begin, end;

	fe_recorder_end(ended_ns);
	fe_recorder_end(ended_ns + 1);
	clock_ns += STOP_NS;
	fe_recorder_switch(&begin, &end);
	return end - ended_ns;
}

int main(int argc, char **argv)
{
	ktime_t begin, end;
	int outside = 0, counted = 0;
	s64 late_ns;

	if (argc != 3 || fe_recorder_create(1))
		return 2;
	readings = 0;
	stopped_at = atoi(argv[1]);
	before = !strcmp(argv[2], "before");
	for (int switch_at = 0; switch_at < PARTINGS; switch_at++) {
		struct fe_bank *bank = fe_recorder_switch(&begin, &end);
		int last = acted;

		for (int i = counted; i < last; i++) {
			if (acts[i].bank != bank)
				continue;
			outside += acts[i].at < begin || acts[i].at >= end;
			counted = i + 1;
		}
		for (int i = counted; i < last; i++)
			outside += acts[i].at < end;
		fe_recorder_clear(bank);
	}
	late_ns = ended_too_late_ns();
	printf("%d acts, %d outside; the end %lld ns too late\n", counted, outside, (long long)late_ns);
	return counted < 20 || outside || late_ns;
}
