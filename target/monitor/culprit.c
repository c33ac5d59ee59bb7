/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cause of a late wake-up, as a flat JSON object of the recording. */
#include <stdio.h>
#include <string.h>

#include "state.h"

#define USER_PRIORITY_LEAST 99 /* of the kernel's numbers, for real-time priorities 1 to 99: 98 to 0 */

static void json_task(struct json *json, const char *prefix, const struct context *task)
{
	char key[32], comm[COMM_SIZE + 1] = "";

	if (task->pid < 0)
		return;
	memcpy(comm, task->comm, COMM_SIZE);
	json_member_text(json, prefix, comm);
	snprintf(key, sizeof(key), "%s_pid", prefix);
	json_member_int(json, key, task->pid);
	snprintf(key, sizeof(key), "%s_policy", prefix);
	json_member_text(json, key, name_of_policy(task->policy));
	snprintf(key, sizeof(key), "%s_priority", prefix);
	json_member_int(json, key, task->prio >= 0 && task->prio < USER_PRIORITY_LEAST ? USER_PRIORITY_LEAST - task->prio : 0);
}

/* A span of time, clipped to that in which the woken task waited. */
static uint64_t waited_ns(const struct wakeup *wakeup, uint64_t from_ns, uint64_t until_ns)
{
	from_ns = from_ns > wakeup->runnable_ns ? from_ns : wakeup->runnable_ns;
	until_ns = until_ns < wakeup->running_ns ? until_ns : wakeup->running_ns;
	return until_ns > from_ns ? until_ns - from_ns : 0;
}

/* The task that had the CPU longest at a stretch while the woken task waited; without a PID if it is unknown: its
 * record was overwritten, too short to be made, or is of another CPU than that which counted. The stack of a task
 * before the last one is unknown. */
static const struct context *longest_holder(const struct finding *finding)
{
	static struct context other;
	static const struct context unknown = {.pid = -1};
	const struct wakeup *wakeup = &finding->wakeup;
	uint64_t longest_ns = waited_ns(wakeup, finding->before_from_ns, wakeup->running_ns), known_ns = longest_ns;
	uint64_t overwritten_ns = waited_ns(wakeup, 0, finding->unknown_until_ns), short_ns;
	const struct holder *longest = NULL;

	for (int i = 0; i < HOLDERS; i++) {
		const struct holder *holder = &finding->holders[i];
		uint64_t ns = holder->until_ns < wakeup->running_ns ? waited_ns(wakeup, holder->from_ns, holder->until_ns) : 0;

		known_ns += ns;
		if (ns > longest_ns) {
			longest_ns = ns;
			longest = holder;
		}
	}
	short_ns = wakeup->running_ns - wakeup->runnable_ns - known_ns;
	if (longest_ns < overwritten_ns || (longest_ns < short_ns && longest_ns < HOLDER_LEAST_NS))
		return &unknown;
	if (!longest || longest->pid == finding->before.pid)
		return &finding->before;
	other = (struct context){.pid = longest->pid, .policy = longest->policy, .prio = longest->prio};
	memcpy(other.comm, longest->comm, COMM_SIZE);
	return &other;
}

/* The blamed task, by the longest station:
 * - until the interrupt: the task that was interrupted;
 * - from the interrupt until the task is runnable: none, handlers of timers took the time;
 * - until it runs: the task that had the CPU longest;
 * - until its return to user space: the task that preempted it, none if it kept the CPU. */
static const struct context *blamed_task(const struct finding *finding)
{
	static const struct context none = {.pid = -1};
	const struct wakeup *wakeup = &finding->wakeup;
	uint64_t late_ns = wakeup->expiry_ns ? wakeup->interrupt_ns - wakeup->expiry_ns : 0;
	uint64_t handled_ns = wakeup->expiry_ns ? wakeup->runnable_ns - wakeup->interrupt_ns : 0;
	uint64_t waited_ns = wakeup->running_ns - wakeup->runnable_ns;
	uint64_t kept_ns = wakeup->return_ns ? wakeup->return_ns - wakeup->running_ns : 0;

	if (handled_ns > late_ns && handled_ns > waited_ns && handled_ns > kept_ns)
		return &none;
	if (kept_ns > waited_ns && kept_ns > late_ns)
		return &finding->after;
	return late_ns > waited_ns && finding->interrupted.pid >= 0 ? &finding->interrupted : longest_holder(finding);
}

/* Functions through which the monitor is called; they are on top of the stack. */
static bool is_monitor_function(const char *name)
{
	static const char *const prefixes[] = {"bpf_", "__bpf_", "__traceiter_", "perf_trace_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void json_stack(struct json *json, const struct context *task)
{
	char text[1024] = "";
	size_t used = 0;

	for (int i = 0; i < task->stack_bytes / (int)sizeof(*task->stack) && i < STACK_DEPTH; i++) {
		const char *name = symbol_of(task->stack[i]);

		if (name && !(!used && is_monitor_function(name)) && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " < " : "", name);
	}
	if (used)
		json_member_text(json, "stack", text);
}

static uint64_t overlap_ns(const struct interruption *interruption, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t begin_ns = interruption->begin_ns > from_ns ? interruption->begin_ns : from_ns;
	uint64_t end_ns = interruption->end_ns < to_ns ? interruption->end_ns : to_ns;

	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* As overlap_ns(), without the device interrupts nested in a soft-IRQ, which are counted as interrupts. */
static uint64_t own_ns(const struct finding *finding, const struct interruption *own, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = overlap_ns(own, from_ns, to_ns), nested_ns = 0;

	if (own->kind != INTERRUPTION_SOFTIRQ)
		return ns;
	from_ns = own->begin_ns > from_ns ? own->begin_ns : from_ns;
	to_ns = own->end_ns < to_ns ? own->end_ns : to_ns;
	for (int i = 0; i < RECENT; i++)
		if (finding->recent[i].kind == INTERRUPTION_IRQ)
			nested_ns += overlap_ns(&finding->recent[i], from_ns, to_ns);
	return ns > nested_ns ? ns - nested_ns : 0;
}

/* Total time of the interruptions of a kind between first and last instant of the wake-up, and the number of the longest. */
static uint64_t interrupted_ns(const struct finding *finding, enum interruption_kind kind, unsigned *number)
{
	const struct wakeup *wakeup = &finding->wakeup;
	uint64_t from_ns = wakeup->expiry_ns ? wakeup->expiry_ns : wakeup->interrupt_ns ? wakeup->interrupt_ns : wakeup->runnable_ns;
	uint64_t to_ns = wakeup->return_ns ? wakeup->return_ns : wakeup->running_ns, sum_ns = 0, longest_ns = 0;

	for (int i = 0; i < RECENT; i++) {
		uint64_t ns = finding->recent[i].kind == kind ? own_ns(finding, &finding->recent[i], from_ns, to_ns) : 0;

		if (ns > longest_ns) {
			longest_ns = ns;
			*number = finding->recent[i].number;
		}
		sum_ns += ns;
	}
	return sum_ns;
}

static void json_interruptions(struct json *json, const struct finding *finding)
{
	unsigned number = 0;
	uint64_t ns = interrupted_ns(finding, INTERRUPTION_IRQ, &number);

	if (ns) {
		json_member_text(json, "interrupt", name_of_interrupt(number));
		json_member_uint(json, "interrupt_ns", ns);
	}
	ns = interrupted_ns(finding, INTERRUPTION_SOFTIRQ, &number);
	if (ns) {
		json_member_text(json, "softirq", name_of_softirq(number));
		json_member_uint(json, "softirq_ns", ns);
	}
	if (name_of_vector(finding->vector))
		json_member_text(json, "last_vector", name_of_vector(finding->vector));
}

static void json_stations(struct json *json, const struct finding *finding)
{
	for (unsigned station = 0; station < STATIONS; station++) {
		char key[64];

		if (finding->values[station] < 0)
			continue;
		snprintf(key, sizeof(key), "%s_ns", station_names[station]);
		for (char *letter = key; *letter; letter++)
			*letter = *letter == '-' ? '_' : *letter;
		json_member_int(json, key, finding->values[station]);
	}
}

/* SMIs and steal time of all CPUs since the interval began.  Their instants are unknown, so they may not belong to this
 * wake-up. */
static void json_taken_time(struct json *json, struct run *run)
{
	struct counters now = {0}, since;

	machine_read_smi(&run->machine, &now);
	cpu_time_count_steal(&run->machine.cpu_time, &now);
	since = counters_since(&now, &run->at_begin);
	if (since.known[COUNTER_SMI] && since.value[COUNTER_SMI])
		json_member_int(json, "interval_smi", since.value[COUNTER_SMI]);
	if (since.known[COUNTER_STEAL_NS] && since.value[COUNTER_STEAL_NS])
		json_member_int(json, "interval_steal_ns", since.value[COUNTER_STEAL_NS]);
}

const char *culprit_of(struct run *run, const struct finding *finding)
{
	static struct json json;
	const struct context *by = blamed_task(finding);

	json_clear(&json);
	json_open(&json, '{');
	json_task(&json, "task", &finding->task);
	json_task(&json, "waited_for", by);
	if (finding->wakeup.origin == ORIGIN_DEVICE)
		json_member_text(&json, "device", name_of_interrupt(finding->wakeup.device));
	json_interruptions(&json, finding);
	if (finding->frequency_khz)
		json_member_int(&json, "frequency_khz", finding->frequency_khz);
	if (finding->idle_state)
		json_member_text(&json, "idle_state", name_of_idle_state(finding->cpu, (int)finding->idle_state - 1));
	json_taken_time(&json, run);
	json_stack(&json, by);
	if (finding->wakeup.expiry_ns)
		json_member_uint(&json, "expiry_mono_ns", finding->wakeup.expiry_ns);
	json_stations(&json, finding);
	json_close(&json, '}');
	json_raw(&json, "", 1);
	return json.text;
}
