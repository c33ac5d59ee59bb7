/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "options_settle.h"

#include <ctype.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "frame.h"
#include "idle_states.h"
#include "place.h"

#define DEFAULT_PRIORITY 98
#define CPU_FOLDER "/sys/devices/system/cpu"
#define LONGEST_CGROUP 60
#define LONGEST_THREAD_NAME 15 /* the kernel cuts longer ones */

/* Those this process may use; to watch, all. */
static struct cpu_list usable_cpus(const struct probe *probe)
{
	struct cpu_list list;
	long configured;

	if (!probe->watches && !place_read(&list))
		return list;
	list = (struct cpu_list){.count = 1};
	configured = probe->watches ? sysconf(_SC_NPROCESSORS_CONF) : 1;
	for (int cpu = 1; cpu < configured && cpu < MAX_CPUS; cpu++)
		list.cpu[list.count++] = cpu;
	return list;
}

static bool holds(const struct cpu_list *list, int cpu)
{
	for (int i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return true;
	return false;
}

/* What is left of all where some are to be left out, or none was named. */
static void settle_cpus(const char *option, struct cpu_list *list, const struct cpu_list *usable)
{
	struct cpu_list named = *list;

	if (named.count && !named.except)
		return;
	*list = (struct cpu_list){0};
	for (int i = 0; i < usable->count; i++)
		if (!holds(&named, usable->cpu[i]))
			list->cpu[list->count++] = usable->cpu[i];
	if (!list->count)
		bad_input("--%s excludes all CPUs that this process may use; exclude fewer", option);
}

static void settle_policy(struct settings *settings)
{
	bool has_priority = settings->policy == POLICY_FIFO || settings->policy == POLICY_RR;

	if (settings->policy < 0) {
		settings->policy = POLICY_FIFO;
		has_priority = true;
	}
	if (settings->priority && !has_priority)
		bad_input("--priority has no effect with --policy %s; omit it", policy_names[settings->policy]);
	if (!settings->priority && has_priority)
		settings->priority = DEFAULT_PRIORITY;
	if ((settings->runtime_ns || settings->deadline_ns) && settings->policy != POLICY_DEADLINE)
		bad_input("--runtime and --deadline are for --policy deadline");
}

/* Before the CPUs are settled: a group may grant others. */
static void settle_cgroup(const char *cgroup)
{
	int error;

	for (const char *letter = cgroup; letter && *letter; letter++)
		if (!isprint((unsigned char)*letter) || *letter == '"' || *letter == '\\' || letter - cgroup == LONGEST_CGROUP)
			bad_input("--cgroup: use a path of at most %d printable characters without quotes and backslashes",
				  LONGEST_CGROUP);
	error = cgroup ? place_join(cgroup) : 0;
	if (error)
		bad_input("--cgroup %s cannot be joined: %s; name a control group that this user may write to", cgroup,
			  strerror(error));
}

/* Threads that are created later inherit it. */
static void settle_thread_name(const char *name)
{
	if (!name)
		return;
	for (const char *letter = name; *letter; letter++)
		if (!isalnum((unsigned char)*letter) && *letter != '-' && *letter != '_')
			bad_input("--thread-name %s: use letters, digits, - and _ only", name);
	if (strlen(name) > LONGEST_THREAD_NAME)
		bad_input("--thread-name %s is longer than %d characters", name, LONGEST_THREAD_NAME);
	prctl(PR_SET_NAME, name);
}

static void settle_idle_state(struct settings *settings)
{
	if (settings->deepest_idle_state == IDLE_STATE_ANY)
		return;
	if (settings->dma_latency_us != LATENCY_DEFAULT)
		bad_input("--deepest-idle-state conflicts with --latency and --default-system; give only one of them");
	settings->dma_latency_us = idle_states_hold_us(CPU_FOLDER, &settings->cpus, settings->deepest_idle_state);
	if (settings->dma_latency_us < 0)
		bad_input("--deepest-idle-state: this kernel manages no idle states (no cpuidle); omit it");
}

static void check_outputs(const struct settings *settings)
{
	if (settings->ring && (settings->record || settings->run_id))
		bad_input("--ring chooses the names of its recordings; omit --record and --run-id");
	if (settings->json && settings->record && !strcmp(settings->record, "-"))
		bad_input("--json and --record - both use standard output; record to a file");
	if (settings->histogram_file && !settings->histogram_us)
		bad_input("--histfile needs the upper limit of a histogram; add it, as in --histogram 400");
}

static void check_warm_up(const struct settings *settings)
{
	if (settings->warm_up_ns && settings->loops)
		bad_input("--warm-up cannot be combined with --loops; use --duration instead of --loops");
	if (settings->warm_up_ns && settings->ring)
		bad_input("--warm-up cannot be combined with --ring; omit one of them");
}

void options_settle(const struct probe *probe, struct settings *settings)
{
	struct cpu_list usable;

	settle_policy(settings);
	check_outputs(settings);
	check_warm_up(settings);
	settle_cgroup(settings->cgroup);
	settle_thread_name(settings->thread_name);
	usable = usable_cpus(probe);
	settle_cpus("affinity", &settings->cpus, &usable);
	if (settings->housekeeping.count)
		settle_cpus("housekeeping", &settings->housekeeping, &usable);
	if (probe->watches) {
		settings->lock_memory = false;
		settings->dma_latency_us = LATENCY_UNTOUCHED;
	}
	settle_idle_state(settings);
}
