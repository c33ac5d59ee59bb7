/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "options_settle.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

#define DEFAULT_PRIORITY 98

/* Those this process may use; to watch, all. */
static void default_cpus(const struct probe *probe, struct cpu_list *list)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	cpu_set_t set;

	CPU_ZERO(&set);
	if (probe->watches)
		for (int cpu = 0; cpu < configured; cpu++)
			CPU_SET(cpu, &set);
	else if (sched_getaffinity(0, sizeof(set), &set))
		CPU_SET(0, &set);
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			list->cpu[list->count++] = cpu;
}

static void settle_policy(struct settings *settings)
{
	bool has_priority = settings->policy == POLICY_FIFO || settings->policy == POLICY_RR;

	if (settings->policy < 0) {
		settings->policy = POLICY_FIFO;
		has_priority = true;
	}
	if (settings->priority && !has_priority)
		bad_input("--priority means nothing to --policy %s; leave it out", policy_names[settings->policy]);
	if (!settings->priority && has_priority)
		settings->priority = DEFAULT_PRIORITY;
	if ((settings->runtime_ns || settings->deadline_ns) && settings->policy != POLICY_DEADLINE)
		bad_input("--runtime and --deadline are for --policy deadline");
}

void options_settle(const struct probe *probe, struct settings *settings)
{
	settle_policy(settings);
	if (probe->watches) {
		settings->lock_memory = false;
		settings->dma_latency_us = -1;
	}
	if (!settings->cpus.count)
		default_cpus(probe, &settings->cpus);
	if (settings->ring && (settings->record || settings->run_id))
		bad_input("--ring names its recordings itself; leave --record and --run-id out");
	if (settings->json && settings->record && !strcmp(settings->record, "-"))
		bad_input("--json and --record - both want standard output; record to a file");
}
