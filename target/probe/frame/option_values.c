/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "option_values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "frame.h"
#include "idle_states.h"
#include "place.h"
#include "units.h"

#define DEFAULT_PRIORITY 98
#define CPU_FOLDER "/sys/devices/system/cpu"
#define LONGEST_CGROUP 60
#define LONGEST_THREAD_NAME 15 /* the kernel cuts longer ones */

/*
 * From text to value ------------------------------------------------------------------------------
 */

static void set_integer(const struct option_spec *option, const char *value)
{
	int64_t number;

	if (!parse_integer(value, &number))
		bad_input("--%s: '%s' is not a whole number", option->name, value);
	if (number < option->low || number > option->high)
		bad_input("--%s: %s is out of range; choose %lld to %lld", option->name, value, (long long)option->low,
			  (long long)option->high);
	*(int64_t *)option->target = number;
}

static void set_duration(const struct option_spec *option, const char *value)
{
	char low[32], high[32];
	int64_t ns;

	if (!parse_duration(value, option->plain, &ns))
		bad_input("--%s: '%s' is not a time; write a number and a unit: ns, us, ms, s, m, min, h or d (without unit: %s)",
			  option->name, value, option->plain_name);
	if (ns < option->low || ns > option->high)
		bad_input("--%s: %s is out of range; choose %s to %s", option->name, value,
			  format_most(low, sizeof(low), option->low), format_least(high, sizeof(high), option->high));
	*(int64_t *)option->target = ns;
}

static void set_choice(const struct option_spec *option, const char *value)
{
	char known[256] = "";
	char *end;
	long number = strtol(value, &end, 10);

	for (int i = 0; option->choices[i]; i++) {
		if (!strcmp(value, option->choices[i]) || (*value && !*end && number == i)) {
			*(int *)option->target = i;
			return;
		}
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "", option->choices[i]);
	}
	bad_input("--%s: '%s' is not known; choose one of %s", option->name, value, known);
}

static void set_text(const struct option_spec *option, const char *value)
{
	if (!*value)
		bad_input("--%s: give a value that is not empty", option->name);
	*(const char **)option->target = value;
}

static bool cpu_exists(long cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld", cpu);
	return access(path, F_OK) == 0 || cpu < sysconf(_SC_NPROCESSORS_CONF);
}

static void add_cpu(const struct option_spec *option, const char *value, long cpu)
{
	struct cpu_list *list = option->target;

	if (cpu >= MAX_CPUS || !cpu_exists(cpu))
		bad_input("--%s %s: there is no CPU %ld; this machine has %ld", option->name, value, cpu,
			  sysconf(_SC_NPROCESSORS_CONF));
	for (int i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return;
	list->cpu[list->count++] = (int)cpu;
}

static void __attribute__((noreturn)) no_cpus(const struct option_spec *option, const char *value)
{
	bad_input("--%s: '%s' is not a list of CPUs; write them as 0-3,5, or !0-3,5 for all but those", option->name, value);
}

/* "0-3,5", or "!0-3,5" for all but those; empty stands for the default where there is one. */
static void set_cpus(const struct option_spec *option, const char *value)
{
	struct cpu_list *list = option->target;
	const char *text = *value == '!' ? value + 1 : value;

	list->count = 0;
	list->except = text > value;
	if (!*text && (list->except || !option->optional))
		no_cpus(option, value);
	while (*text) {
		char *end;
		long first = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
		long last = first;

		if (first >= 0 && *end == '-' && isdigit((unsigned char)end[1]))
			last = strtol(end + 1, &end, 10);
		if (first < 0 || last < first || (*end && (*end != ',' || !end[1])))
			no_cpus(option, value);
		for (long cpu = first; cpu <= last; cpu++)
			add_cpu(option, value, cpu);
		text = *end ? end + 1 : end;
	}
}

void option_set(const struct option_spec *option, const char *value)
{
	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)option->target = true;
		break;
	case OPTION_SET:
		*(int *)option->target = (int)option->low;
		break;
	case OPTION_INTEGER:
		if (option->optional && value == option->optional)
			*(int64_t *)option->target = 0;
		else
			set_integer(option, value);
		break;
	case OPTION_DURATION:
		set_duration(option, value);
		break;
	case OPTION_CHOICE:
		set_choice(option, value);
		break;
	case OPTION_TEXT:
		set_text(option, value);
		break;
	case OPTION_CPUS:
		set_cpus(option, value);
		break;
	}
}

/*
 * Defaults and conflicts --------------------------------------------------------------------------
 */

/* The CPUs that this process may use; for a probe that watches, all. */
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

/* All usable CPUs except the excluded ones; without a list, all. */
static void resolve_cpus(const char *option, struct cpu_list *list, const struct cpu_list *usable)
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

static void resolve_policy(struct settings *settings)
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

/* Before resolve_cpus(): a group may allow other CPUs. */
static void resolve_cgroup(const char *cgroup)
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
static void resolve_thread_name(const char *name)
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

static void resolve_idle_state(struct settings *settings)
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

void options_resolve(const struct probe *probe, struct settings *settings)
{
	struct cpu_list usable;

	resolve_policy(settings);
	check_outputs(settings);
	check_warm_up(settings);
	resolve_cgroup(settings->cgroup);
	resolve_thread_name(settings->thread_name);
	usable = usable_cpus(probe);
	resolve_cpus("affinity", &settings->cpus, &usable);
	if (settings->housekeeping.count)
		resolve_cpus("housekeeping", &settings->housekeeping, &usable);
	if (probe->watches) {
		settings->lock_memory = false;
		settings->dma_latency_us = LATENCY_UNTOUCHED;
	}
	resolve_idle_state(settings);
}
