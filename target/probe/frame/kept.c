/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether what was granted was also kept: each worker read it back once more behind its last act. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

/* before and after are JSON. */
static void note_change(struct run *run, const struct worker *worker, const char *name, const char *before,
			const char *after)
{
	struct json *json = &run->changes;

	json_open(json, '{');
	json_member_text(json, "name", name);
	if (worker->spec.cpu >= 0)
		json_member_int(json, "cpu", worker->spec.cpu);
	json_member_text(json, "thread", worker->spec.name);
	json_key(json, "before");
	json_raw(json, before, strlen(before));
	json_key(json, "after");
	json_raw(json, after, strlen(after));
	json_close(json, '}');
}

static void changed(struct run *run, const struct worker *worker, const char *name, const char *before,
		    const char *after)
{
	char where[32] = "";

	if (worker->spec.cpu >= 0)
		snprintf(where, sizeof(where), " of CPU %d", worker->spec.cpu);
	note_change(run, worker, name, before, after);
	run_fail(run, "%s of thread %s%s was changed while it ran, from %s to %s; leave its threads and CPUs alone", name,
		 worker->spec.name, where, before, after);
}

static void compare_int(struct run *run, const struct worker *worker, const char *name, int64_t before, int64_t after)
{
	char texts[2][32];

	if (before == after)
		return;
	snprintf(texts[0], sizeof(texts[0]), "%" PRId64, before);
	snprintf(texts[1], sizeof(texts[1]), "%" PRId64, after);
	changed(run, worker, name, texts[0], texts[1]);
}

static void compare_policy(struct run *run, const struct worker *worker, const struct granted *after)
{
	const struct granted *before = &worker->granted;
	char texts[2][32];

	snprintf(texts[0], sizeof(texts[0]), "\"%s\"", policy_text(before->policy));
	snprintf(texts[1], sizeof(texts[1]), "\"%s\"", policy_text(after->policy));
	if (before->policy != after->policy)
		changed(run, worker, "policy", texts[0], texts[1]);
	compare_int(run, worker, "priority", before->priority, after->priority);
	if (before->policy != SCHED_DEADLINE || after->policy != SCHED_DEADLINE)
		return; /* others have no reservation */
	compare_int(run, worker, "runtime_ns", (int64_t)before->runtime_ns, (int64_t)after->runtime_ns);
	compare_int(run, worker, "deadline_ns", (int64_t)before->deadline_ns, (int64_t)after->deadline_ns);
	compare_int(run, worker, "period_ns", (int64_t)before->period_ns, (int64_t)after->period_ns);
}

/* A CPU that was away and came back leaves no trace but these. */
static void count_moves(struct run *run, const struct worker *worker)
{
	int64_t moves = worker->migrations - worker->migrations_before;
	char text[32];

	if (worker->granted.affinity.count != 1 || worker->migrations_before < 0 || worker->migrations < 0 || !moves)
		return;
	snprintf(text, sizeof(text), "%" PRId64, moves);
	note_change(run, worker, "migrations", "0", text);
	run_fail(run, "thread %s, pinned to CPU %d, was moved to another CPU while it ran (%s times); leave its threads "
		 "and CPUs alone", worker->spec.name, worker->granted.affinity.cpu[0], text);
}

static void compare_affinity(struct run *run, const struct worker *worker)
{
	const struct cpu_list *before = &worker->granted.affinity, *after = &worker->kept.affinity;
	char texts[2][64];

	if (before->count == after->count && !memcmp(before->cpu, after->cpu, sizeof(*before->cpu) * (size_t)before->count))
		return;
	affinity_text(texts[0], before);
	affinity_text(texts[1], after);
	changed(run, worker, "affinity", texts[0], texts[1]);
}

/* Once the machine is open and before the first act; a thread was moved to its CPU once already. */
void settings_remember(struct run *run)
{
	for_each_worker(worker, run)
		worker->migrations_before = machine_migrations(worker);
}

/* A thread that did not stop may be starved because of what was changed. */
static void compare_stuck(struct run *run, const struct worker *worker)
{
	struct granted now = worker->granted;
	struct sched_param parameters;
	int policy = sched_getscheduler(worker->tid);

	if (policy < 0 || sched_getparam(worker->tid, &parameters))
		return;
	now.policy = policy;
	now.priority = parameters.sched_priority;
	compare_policy(run, worker, &now);
}

void settings_compare(struct run *run)
{
	for_each_worker(worker, run) {
		if (!atomic_load(&worker->done)) {
			compare_stuck(run, worker);
			continue;
		}
		compare_policy(run, worker, &worker->kept);
		compare_affinity(run, worker);
		count_moves(run, worker);
	}
}
