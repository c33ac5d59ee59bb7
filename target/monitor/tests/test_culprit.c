/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cause of wake-ups whose instants are known: the blamed task among those that had the CPU, and the time of interrupts and soft-IRQs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "state.h"

#define US 1000

/* The names of the system, and its counters. */
const char *const station_names[STATIONS];
const char *symbol_of(uint64_t address) { (void)address; return NULL; }
const char *name_of_interrupt(unsigned number) { return number == 7 ? "eth0" : "other"; }
const char *name_of_softirq(unsigned number) { (void)number; return "net_rx"; }
const char *name_of_vector(unsigned vector) { (void)vector; return NULL; }
const char *name_of_policy(int policy) { (void)policy; return "fifo"; }
const char *name_of_idle_state(unsigned cpu, int state) { (void)cpu, (void)state; return "C1"; }
void machine_read_smi(struct machine *machine, struct counters *counters) { (void)machine, (void)counters; }
void cpu_time_count_steal(struct cpu_time *cpu_time, struct counters *counters) { (void)cpu_time, (void)counters; }

static struct run run;

/* A wake-up by a timer with these lengths of its stations; `before` had the CPU until then, `after` preempts the task. */
static struct finding wakeup(uint64_t late_ns, uint64_t handled_ns, uint64_t waited_ns, uint64_t kept_ns)
{
	struct finding finding = {
		.task = {.comm = "late", .pid = 1}, .interrupted = {.pid = -1}, .before = {.comm = "before", .pid = 2},
		.after = {.comm = "after", .pid = 3}};

	finding.wakeup.origin = ORIGIN_TIMER;
	finding.wakeup.expiry_ns = 1000 * US;
	finding.wakeup.interrupt_ns = finding.wakeup.expiry_ns + late_ns;
	finding.wakeup.runnable_ns = finding.wakeup.interrupt_ns + handled_ns;
	finding.wakeup.running_ns = finding.wakeup.runnable_ns + waited_ns;
	finding.wakeup.return_ns = finding.wakeup.running_ns + kept_ns;
	for (unsigned i = 0; i < STATIONS; i++)
		finding.values[i] = -1;
	return finding;
}

static bool has(const struct finding *finding, const char *member)
{
	bool found = strstr(culprit_of(&run, finding), member) != NULL;

	if (!found)
		fprintf(stderr, "%s in %s\n", member, culprit_of(&run, finding));
	return found;
}

static void check_blamed_task(void)
{
	struct finding finding = wakeup(1 * US, 2 * US, 30 * US, 4 * US);

	check(has(&finding, "\"waited_for\":\"before\""));
	finding = wakeup(1 * US, 2 * US, 3 * US, 30 * US);
	check(has(&finding, "\"waited_for\":\"after\""));
	finding = wakeup(30 * US, 2 * US, 3 * US, 4 * US);
	check(has(&finding, "\"waited_for\":\"before\""));
	finding.interrupted = (struct context){.comm = "then", .pid = 4};
	check(has(&finding, "\"waited_for\":\"then\""));
	finding = wakeup(1 * US, 30 * US, 3 * US, 4 * US);
	check(!strstr(culprit_of(&run, &finding), "waited_for"));
}

/* The task that had the CPU between two times after the wake-up. */
static struct holder holder(const struct finding *finding, const char *comm, int pid, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t runnable_ns = finding->wakeup.runnable_ns;
	struct holder holder = {.from_ns = runnable_ns + from_ns, .until_ns = runnable_ns + until_ns, .pid = pid};

	memcpy(holder.comm, comm, strlen(comm));
	return holder;
}

static bool names_none(const struct finding *finding)
{
	return !strstr(culprit_of(&run, finding), "waited_for");
}

/* A wait of 930 us for several tasks, all of them recorded. */
static void check_longest_holder(void)
{
	struct finding finding = wakeup(1 * US, 2 * US, 930 * US, 4 * US);
	uint64_t runnable_ns = finding.wakeup.runnable_ns;

	finding.before_from_ns = runnable_ns + 300 * US;
	finding.holders[0] = holder(&finding, "first", 4, 0, 30 * US);
	finding.holders[1] = holder(&finding, "second", 5, 30 * US, 300 * US);
	finding.holders[HOLDERS - 1] = holder(&finding, "before", 2, 300 * US, 930 * US);
	check(has(&finding, "\"waited_for\":\"before\""));
	finding.before_from_ns = runnable_ns + 600 * US;
	finding.holders[1].until_ns = runnable_ns + 600 * US;
	check(has(&finding, "\"waited_for\":\"second\""));
	/* Time before the wake-up does not count. */
	finding.holders[0].from_ns = 0;
	check(has(&finding, "\"waited_for\":\"second\""));
}

/* A wait of 930 us, of which the records are incomplete. */
static void check_unknown_holder(void)
{
	struct finding finding = wakeup(1 * US, 2 * US, 930 * US, 4 * US);
	uint64_t runnable_ns = finding.wakeup.runnable_ns;

	finding.unknown_until_ns = runnable_ns + 500 * US;
	finding.before_from_ns = runnable_ns + 900 * US;
	finding.holders[0] = holder(&finding, "recent", 4, 500 * US, 900 * US);
	check(names_none(&finding));
	/* The task that had the CPU longer than the unknown ones is known. */
	finding.unknown_until_ns = runnable_ns + 300 * US;
	finding.holders[0].from_ns = runnable_ns + 300 * US;
	check(has(&finding, "\"waited_for\":\"recent\""));
	/* Tasks that had the CPU for less than is recorded had it before the last one, and some had it longer. */
	finding.unknown_until_ns = 0;
	finding.holders[0].until_ns = runnable_ns;
	finding.before_from_ns = runnable_ns + 920 * US;
	check(names_none(&finding));
	finding.before_from_ns = runnable_ns + 900 * US;
	check(has(&finding, "\"waited_for\":\"before\""));
	/* The task was counted on another CPU than that on which it waited: only the last one is known. */
	finding.holders[0] = (struct holder){0};
	finding.before_from_ns = finding.unknown_until_ns = runnable_ns + 500 * US;
	check(names_none(&finding));
	finding.before_from_ns = finding.unknown_until_ns = runnable_ns + 400 * US;
	check(has(&finding, "\"waited_for\":\"before\""));
}

/* An interrupt of 60 us within a soft-IRQ of 80 us, before a wake-up that waits for both. */
static void check_nested_interrupt(void)
{
	struct finding finding = wakeup(1 * US, 2 * US, 97 * US, 0);
	uint64_t begin_ns = finding.wakeup.runnable_ns;

	finding.recent[0] = (struct interruption){begin_ns + 20 * US, begin_ns + 80 * US, INTERRUPTION_IRQ, 7};
	finding.recent[1] = (struct interruption){begin_ns + 10 * US, begin_ns + 90 * US, INTERRUPTION_SOFTIRQ, 3};
	check(has(&finding, "\"interrupt\":\"eth0\",\"interrupt_ns\":60000"));
	check(has(&finding, "\"softirq\":\"net_rx\",\"softirq_ns\":20000"));
	/* Only the part within the wake-up counts, of both. */
	finding.wakeup.running_ns = finding.wakeup.return_ns = begin_ns + 50 * US;
	check(has(&finding, "\"interrupt_ns\":30000"));
	check(has(&finding, "\"softirq_ns\":10000"));
	/* One after the other. */
	finding.wakeup.running_ns = finding.wakeup.return_ns = begin_ns + 97 * US;
	finding.recent[1].end_ns = begin_ns + 20 * US;
	check(has(&finding, "\"interrupt_ns\":60000"));
	check(has(&finding, "\"softirq_ns\":10000"));
}

int main(void)
{
	check_blamed_task();
	check_longest_holder();
	check_unknown_holder();
	check_nested_interrupt();
	return failures != 0;
}
