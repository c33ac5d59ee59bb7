/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether what was in effect before the first act still was behind the last: a run whose threads were changed failed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"

/* Once the machine is open and before the first act; a thread was moved to its CPU once already. */
void settings_remember(struct run *run)
{
	for_each_worker(worker, run)
		worker->migrations_before = machine_migrations(worker);
}

/* How a thread is scheduled is all that fails a run; what cannot be read is not known to have changed. */
static bool changed(const struct setting *before, const struct setting *after)
{
	static const char *const names[] = {"policy", "priority", "runtime_ns", "deadline_ns", "period_ns", "affinity"};

	if (!*before->thread || !strcmp(after->in_effect, "null") || !strcmp(before->in_effect, after->in_effect))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(before->name, names[i]))
			return true;
	return false;
}

static void fail_for(struct run *run, const struct setting *before, const struct setting *after)
{
	char where[32] = "";

	if (before->cpu >= 0)
		snprintf(where, sizeof(where), " of CPU %d", before->cpu);
	run_fail(run, "%s of thread %s%s changed during the run, from %s to %s; do not change its threads and CPUs",
		 before->name, before->thread, where, before->in_effect, after->in_effect);
}

/* A CPU that was away and came back leaves no trace but these. */
static void count_moves(struct run *run, const struct worker *worker)
{
	int64_t moves = worker->migrations - worker->migrations_before;

	if (worker->before.affinity.count != 1 || worker->migrations_before < 0 || worker->migrations < 0 || !moves)
		return;
	setting_int(setting_add(&run->settings_after, "migrations", worker)->in_effect, moves);
	run_fail(run, "thread %s, pinned to CPU %d, was moved to another CPU during the run (%" PRId64 " times); do not "
		 "change its threads and CPUs", worker->spec.name, worker->before.affinity.cpu[0], moves);
}

/* A real-time core that had to hand a thread to Linux in the middle of its acts measured Linux then. */
static void count_strays(struct run *run, const struct worker *worker)
{
	int64_t strays = worker->strays - worker->strays_before;

	if (worker->spec.ordinary || run->settings->policy == POLICY_OTHER || worker->strays < 0)
		return;
	setting_int(setting_add(&run->settings_after, "mode_switches", worker)->in_effect, strays);
	if (strays)
		run_fail(run, "thread %s of CPU %d left the real-time core %" PRId64 " times during the run (a signal, a page "
			 "fault or a call of Linux): those acts measured Linux", worker->spec.name,
			 worker->spec.cpu, strays);
}

void settings_compare(struct run *run)
{
	const struct setting *before = run->settings_before.list, *after = run->settings_after.list;

	/* Both were read in one order; those of a task in the kernel come last, and are compared when its last bank is read. */
	for (int i = 0; i < run->settings_after.count; i++)
		if (changed(&before[i], &after[i]))
			fail_for(run, &before[i], &after[i]);
	for_each_worker(worker, run)
		if (atomic_load(&worker->done)) {
			count_moves(run, worker);
			count_strays(run, worker);
		}
}

void settings_begin_anew(struct run *run)
{
	struct setting *before = run->settings_before.list;
	const struct setting *after = run->settings_after.list;

	for (int i = 0; i < run->settings_after.count && i < run->settings_before.count; i++)
		if (strcmp(after[i].in_effect, "null") != 0)
			strcpy(before[i].in_effect, after[i].in_effect);
	run->settings_after.count = 0;
}
