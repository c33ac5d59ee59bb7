/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Idle and stolen time out of a file of the test's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "cpu_time.h"

static char path[] = "/tmp/test-cpu-time-XXXXXX";

#define MS 1000000LL /* a tick of the kernel's is 10 ms */

/* CPU 1 is not measured; a negative idle time of CPU 2: it is unplugged. */
static void put(int64_t idle_of_0, int64_t wait_of_0, int64_t idle_of_2, int64_t steal_of_0)
{
	FILE *file = fopen(path, "w");

	check(file != NULL);
	if (!file)
		return;
	fprintf(file, "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 7 7 7 %lld %lld 7 7 %lld 0 0\ncpu1 0 0 0 0 0 0 0 900 0 0\n",
		(long long)idle_of_0, (long long)wait_of_0, (long long)steal_of_0);
	if (idle_of_2 >= 0)
		fprintf(file, "cpu2 9 9 9 %lld 0 9 9 3 0 0\n", (long long)idle_of_2);
	fprintf(file, "intr 5\n");
	fclose(file);
}

static struct counters look(struct cpu_time *cpu_time)
{
	struct counters counters = {0};

	cpu_time_count(cpu_time, &counters);
	return counters;
}

static void close_again(struct cpu_time *cpu_time)
{
	close(cpu_time->stat_fd);
	free(cpu_time->text);
	free(cpu_time->idle_ticks);
}

/* Whichever CPU was idle least, from look to look. */
static void idle(void)
{
	struct cpu_list cpus = {.count = 2, .cpu = {0, 2}};
	struct cpu_time cpu_time;
	struct counters counters;

	put(1000, 100, 500, 1);
	cpu_time_open(&cpu_time, path, &cpus);
	put(1090, 105, 520, 1); /* 95 and 20 ticks */
	counters = look(&cpu_time);
	check(counters.known[COUNTER_LEAST_IDLE_NS] && counters.value[COUNTER_LEAST_IDLE_NS] == 200 * MS);
	check(counters.value[COUNTER_MOST_IDLE_NS] == 950 * MS);
	check(counters.value[COUNTER_STEAL_NS] == 40 * MS);
	put(1100, 105, 620, 1); /* 10 and 100 ticks */
	counters = look(&cpu_time);
	check(counters.value[COUNTER_LEAST_IDLE_NS] == 300 * MS && counters.value[COUNTER_MOST_IDLE_NS] == 1950 * MS);
	put(1100, 104, 630, 1); /* the kernel takes a tick back */
	counters = look(&cpu_time);
	check(counters.value[COUNTER_LEAST_IDLE_NS] == 300 * MS && counters.value[COUNTER_MOST_IDLE_NS] == 2050 * MS);
	close_again(&cpu_time);
}

static void unknown(void)
{
	struct cpu_list cpus = {.count = 2, .cpu = {0, 2}};
	struct counters counters = {0};
	struct cpu_time cpu_time;

	put(1000, 100, -1, 1);
	cpu_time_open(&cpu_time, path, &cpus);
	counters = look(&cpu_time);
	check(!counters.known[COUNTER_LEAST_IDLE_NS] && !counters.known[COUNTER_MOST_IDLE_NS]);
	check(!counters.known[COUNTER_STEAL_NS]);
	close_again(&cpu_time);
	cpu_time_open(&cpu_time, "/nonexistent", &cpus);
	counters = look(&cpu_time);
	check(!counters.known[COUNTER_LEAST_IDLE_NS] && !counters.known[COUNTER_STEAL_NS]);
	close_again(&cpu_time);
}

int main(void)
{
	int made = mkstemp(path);

	if (made < 0)
		return 1;
	close(made);
	idle();
	unknown();
	unlink(path);
	return failures != 0;
}
