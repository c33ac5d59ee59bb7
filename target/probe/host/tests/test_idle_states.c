/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Idle states, as files in a folder of the test's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "idle_states.h"

static char folder[] = "/tmp/test-idle-states-XXXXXX";

static void make_folder(const char *format, int cpu, int state)
{
	char name[64], path[256];

	snprintf(name, sizeof(name), format, cpu, state);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	mkdir(path, 0700);
}

static void put(int cpu, int state, int64_t latency_us)
{
	char path[256];
	FILE *file;

	make_folder("cpu%d", cpu, state);
	make_folder("cpu%d/cpuidle", cpu, state);
	make_folder("cpu%d/cpuidle/state%d", cpu, state);
	snprintf(path, sizeof(path), "%s/cpu%d/cpuidle/state%d/latency", folder, cpu, state);
	file = fopen(path, "w");
	check(file && fprintf(file, "%lld\n", (long long)latency_us) > 0);
	if (file)
		fclose(file);
}

static const struct cpu_list both = {.count = 2, .cpu = {0, 3}}, first = {.count = 1, .cpu = {0}};

static void as_numbered(void)
{
	check(idle_states_hold_us(folder, &first, -1) == 0);
	check(idle_states_hold_us(folder, &first, 0) == 0);
	check(idle_states_hold_us(folder, &first, 1) == 2);
	check(idle_states_hold_us(folder, &first, 2) == 133);
	check(idle_states_hold_us(folder, &first, 9) == 133);
}

/* The stricter CPU decides: what is held is for all. */
static void of_two_kinds(void)
{
	check(idle_states_hold_us(folder, &both, 2) == 40);
	check(idle_states_hold_us(folder, &both, 0) == 0); /* CPU 3 has no state that polls: 1 us would let CPU 0 into none deeper */
	check(idle_states_deepest(folder, &both, 40) == 2);
	check(idle_states_deepest(folder, &both, 39) == 1);
	check(idle_states_deepest(folder, &first, 0) == 0);
}

/* Where a deeper state says that it is left as soon, no hold tells the two apart: neither is allowed. */
static void alike(void)
{
	struct cpu_list cpus = {.count = 1, .cpu = {5}};

	put(5, 0, 0);
	put(5, 1, 7);
	put(5, 2, 7);
	check(idle_states_hold_us(folder, &cpus, 1) == 6);
	check(idle_states_deepest(folder, &cpus, 6) == 0);
}

static void nothing_to_see(void)
{
	struct cpu_list cpus = {.count = 1, .cpu = {7}};

	check(idle_states_hold_us(folder, &cpus, 1) == -1);
	check(idle_states_deepest(folder, &cpus, 1000) == -1);
}

int main(void)
{
	char remove[64];

	if (!mkdtemp(folder))
		return 1;
	put(0, 0, 0);
	put(0, 1, 2);
	put(0, 2, 133);
	put(3, 0, 1);
	put(3, 1, 20);
	put(3, 2, 40);
	as_numbered();
	of_two_kinds();
	alike();
	nothing_to_see();
	snprintf(remove, sizeof(remove), "rm -r %s", folder);
	return system(remove) != 0 || failures != 0;
}
