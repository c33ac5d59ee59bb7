/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "placement.h"

#include <stdio.h>

#include "machine.h"

const char *const placement_names[] = {"same", "smt", "core", "socket", NULL};

static const char *const relations[] = {
	[PLACEMENT_SAME] = "the same CPU",
	[PLACEMENT_SMT] = "the other thread of one core",
	[PLACEMENT_CORE] = "another core of the same socket",
	[PLACEMENT_SOCKET] = "another socket",
};

struct site {
	int64_t socket, core;
};

static bool read_site(int cpu, struct site *site)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
	if (!read_number(path, &site->socket))
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
	return read_number(path, &site->core);
}

/* The relation of two different CPUs; -1 if the kernel does not provide it. */
static int relation(int a, int b)
{
	struct site first, second;

	if (!read_site(a, &first) || !read_site(b, &second))
		return -1;
	if (first.socket != second.socket)
		return PLACEMENT_SOCKET;
	return first.core == second.core ? PLACEMENT_SMT : PLACEMENT_CORE;
}

static bool find(const struct cpu_list *list, int placement, struct cpu_pair *cpus)
{
	for (int i = 0; i < list->count; i++) {
		for (int j = 0; j < list->count; j++) {
			*cpus = (struct cpu_pair){list->cpu[i], list->cpu[j]};
			if (placement == (i == j ? PLACEMENT_SAME : relation(cpus->first, cpus->second)))
				return true;
		}
	}
	return false;
}

bool placement_find(struct run *run, int placement, struct cpu_pair *cpus)
{
	if (run_settings(run)->policy == POLICY_DEADLINE) {
		run_not_applicable(run, "threads of --policy deadline cannot be pinned; omit --placement");
		return false;
	}
	if (!find(&run_settings(run)->cpus, placement, cpus)) {
		run_not_applicable(run, "--placement %s: no two of the %d selected CPUs are placed so (%s)",
				   placement_names[placement], run_settings(run)->cpus.count, relations[placement]);
		return false;
	}
	run_parameter_text(run, "placement", placement_names[placement]);
	run_parameter_int(run, "first_cpu", cpus->first);
	run_parameter_int(run, "second_cpu", cpus->second);
	return true;
}

bool placement_same_cpu(struct run *run, int *cpu)
{
	struct cpu_pair cpus;

	if (!placement_find(run, PLACEMENT_SAME, &cpus))
		return false;
	*cpu = cpus.first;
	return true;
}
