/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of one thread, as it read them back. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"
#include "settings.h"

/* A value of any length takes the place of the former one. */
static void __attribute__((format(printf, 2, 3))) put(char **value, const char *format, ...)
{
	va_list arguments;

	free(*value);
	va_start(arguments, format);
	if (vasprintf(value, format, arguments) < 0)
		abort();
	va_end(arguments);
}

struct setting *setting_add(struct settings_read *read, const char *name, const struct worker *worker)
{
	struct setting *setting;

	if (read->count == read->most)
		bad_input("more than %d settings to verify; use fewer threads", read->most);
	setting = &read->list[read->count++];
	*setting = (struct setting){.name = name, .cpu = worker ? worker->spec.cpu : -1,
				    .requested = setting->requested, .in_effect = setting->in_effect};
	if (worker)
		snprintf(setting->thread, sizeof(setting->thread), "%s", worker->spec.name);
	put(&setting->requested, "null");
	put(&setting->in_effect, "null");
	return setting;
}

void setting_explain(struct setting *setting, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(setting->reason, sizeof(setting->reason), format, arguments);
	va_end(arguments);
}

bool setting_as_requested(const struct setting *setting)
{
	return !strcmp(setting->requested, setting->in_effect);
}

void setting_bool(char **setting, bool value)
{
	put(setting, "%s", value ? "true" : "false");
}

void setting_int(char **setting, int64_t value)
{
	put(setting, "%" PRId64, value);
}

void setting_text(char **setting, const char *value)
{
	put(setting, "\"%s\"", value);
}

void setting_cpus(char **setting, const struct cpu_list *cpus)
{
	char text[CPU_LIST_SIZE];

	setting_text(setting, format_cpus(text, cpus));
}

const char *policy_text(int policy)
{
	return policy >= 0 && policy < POLICIES ? policy_names[policy] : "unknown";
}

/* Why a policy or priority is another than requested, or is not known. */
static void explain_policy(struct setting *setting, const struct worker *worker, const struct thread_state *state,
			   const char *requested)
{
	char why[REFUSAL_SIZE];

	if (state->policy_error) {
		refusal_of_policy(why, state->policy_error, worker->priority, worker->run->settings->policy == POLICY_DEADLINE);
		setting_explain(setting, "%s %s is refused (%s): %s", setting->name, requested, strerror(state->policy_error),
				why);
	} else if (state->policy < 0) {
		refusal_of_reading(why, state->policy_unread, "sched_getattr");
		setting_explain(setting, "%s cannot be read back (%s)", setting->name, why);
	} else {
		setting_explain(setting, "the kernel took another %s", setting->name);
	}
}

static void read_policy(struct settings_read *read, const struct worker *worker, const struct thread_state *state, int policy)
{
	struct setting *setting = setting_add(read, "policy", worker);

	setting_text(&setting->requested, policy_names[policy]);
	if (state->policy >= 0)
		setting_text(&setting->in_effect, policy_text(state->policy));
	setting->differs = !setting_as_requested(setting);
	setting->real_time = !worker->spec.ordinary;
	if (setting->differs)
		explain_policy(setting, worker, state, policy_names[policy]);
}

static void read_priority(struct settings_read *read, const struct worker *worker, const struct thread_state *state)
{
	struct setting *setting = setting_add(read, "priority", worker);

	setting_int(&setting->requested, worker->priority);
	if (state->policy >= 0)
		setting_int(&setting->in_effect, state->priority);
	setting->differs = !setting_as_requested(setting);
	setting->real_time = true;
	if (setting->differs)
		explain_policy(setting, worker, state, setting->requested);
}

/* Only a thread with a reservation reports one. */
static void read_reservation(struct settings_read *read, const struct worker *worker, const struct thread_state *state)
{
	const char *const names[] = {"runtime_ns", "deadline_ns", "period_ns"};
	uint64_t in_effect[] = {state->runtime_ns, state->deadline_ns, state->period_ns};

	for (int i = 0; i < 3; i++) {
		struct setting *setting = setting_add(read, names[i], worker);

		if (in_effect[i])
			setting_int(&setting->in_effect, (int64_t)in_effect[i]);
	}
}

static void read_affinity(struct settings_read *read, const struct worker *worker, const struct thread_state *state,
			  bool pinned)
{
	struct setting *setting = setting_add(read, "affinity", worker);
	char why[REFUSAL_SIZE];

	if (pinned)
		setting_cpus(&setting->requested, &(struct cpu_list){.count = 1, .cpu = {worker->spec.cpu}});
	setting->differs = pinned;
	if (state->affinity.count == 0) {
		refusal_of_reading(why, state->affinity_unread, "sched_getaffinity");
		setting_explain(setting, "affinity cannot be read back (%s)", why);
		return;
	}
	setting_cpus(&setting->in_effect, &state->affinity);
	setting->differs = pinned && !setting_as_requested(setting);
	if (setting->differs) {
		refusal_of_affinity(why, state->affinity_error);
		setting_explain(setting, "cannot be pinned to CPU %d (%s)", worker->spec.cpu, why);
	}
}

/* Only ordinary threads have a slack; from 6.13 on real-time ones say 0 whatever was set, so none is requested for them. */
static void read_slack(struct settings_read *read, const struct worker *worker, const struct thread_state *state,
		       bool ordinary)
{
	struct setting *setting = setting_add(read, "timer_slack_ns", worker);

	if (ordinary)
		setting_int(&setting->requested, worker->run->settings->timer_slack_ns);
	if (state->timer_slack_ns < 0) {
		setting_explain(setting, "this kernel does not report it");
		return;
	}
	setting_int(&setting->in_effect, state->timer_slack_ns);
	setting->differs = ordinary && !setting_as_requested(setting);
	if (setting->differs)
		setting_explain(setting, "the kernel kept another slack");
}

void settings_of_thread(struct settings_read *read, const struct worker *worker, const struct thread_state *state)
{
	int policy = worker->spec.ordinary ? POLICY_OTHER : worker->run->settings->policy;

	read_policy(read, worker, state, policy);
	if (policy == POLICY_FIFO || policy == POLICY_RR)
		read_priority(read, worker, state);
	if (policy == POLICY_DEADLINE)
		read_reservation(read, worker, state);
	read_affinity(read, worker, state, worker->spec.cpu >= 0 && policy != POLICY_DEADLINE);
	read_slack(read, worker, state, policy == POLICY_OTHER);
}
