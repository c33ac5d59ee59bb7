/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requested and effective settings, always as read back, once before the run and once after. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refusal.h"
#include "settings.h"
#include "source.h"

#define DMA_LATENCY "/dev/cpu_dma_latency"

/* "VmLck: N kB" of this process, -1 if it cannot be read. */
static int64_t locked_kib(void)
{
	char line[128];
	long long kib = -1;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmLck:", 6)) {
			sscanf(line, "VmLck: %lld", &kib);
			break;
		}
	if (status)
		fclose(status);
	return kib;
}

static void read_memory_lock(struct run *run, struct settings_read *read)
{
	struct setting *setting = setting_add(read, "memory_lock", NULL);
	int64_t kib = locked_kib();
	char why[REFUSAL_SIZE];

	setting_bool(&setting->requested, run->settings->lock_memory);
	if (kib >= 0)
		setting_bool(&setting->in_effect, kib > 0 && !run->lock_error);
	setting->differs = run->settings->lock_memory && !setting_as_requested(setting);
	setting->real_time = true;
	if (setting->differs) {
		refusal_of_lock(why, run->lock_error);
		setting_explain(setting, "%s (%s): %s",
				run->lock_error ? "memory cannot be locked" : "memory_lock cannot be read back",
				run->lock_error ? strerror(run->lock_error) : "no VmLck", why);
	}
}

/* An errno. */
static int read_dma_latency(const struct run *run, int32_t *us)
{
	return pread(run->dma_latency_fd, us, sizeof(*us), 0) == sizeof(*us) ? 0 : errno ? errno : EIO;
}

/* Opens, writes and reads back; the file stays open, for closing it ends the hold. */
static int hold_dma_latency(struct run *run, int32_t us, int32_t *in_effect)
{
	run->dma_latency_fd = open(DMA_LATENCY, O_RDWR | O_CLOEXEC);
	if (run->dma_latency_fd < 0)
		return errno;
	if (write(run->dma_latency_fd, &us, sizeof(us)) != sizeof(us))
		return errno ? errno : EIO;
	return read_dma_latency(run, in_effect);
}

static void request_dma_latency(struct run *run)
{
	struct setting *setting = setting_add(&run->settings_before, "cpu_dma_latency_us", NULL);
	int64_t requested = run->settings->dma_latency_us;
	bool by_default = requested == LATENCY_DEFAULT;
	int32_t in_effect = 0;
	char why[REFUSAL_SIZE];
	int error;

	if (requested == LATENCY_UNTOUCHED)
		return;
	error = hold_dma_latency(run, by_default ? 0 : (int32_t)requested, &in_effect);
	if (error == ENOENT && by_default) {
		refusal_of_dma_latency(why, error);
		setting_explain(setting, DMA_LATENCY ": %s", why);
		return;
	}
	setting_int(&setting->requested, by_default ? 0 : requested);
	if (!error)
		setting_int(&setting->in_effect, in_effect);
	setting->differs = error || in_effect > (by_default ? 0 : requested);
	if (error) {
		refusal_of_dma_latency(why, error);
		setting_explain(setting, DMA_LATENCY " cannot be held (%s): %s", strerror(error), why);
	} else if (setting->differs) {
		setting_explain(setting, "the kernel holds another value");
	}
}

int64_t settings_held_us(const struct run *run)
{
	int32_t held_us;

	return run->dma_latency_fd >= 0 && !read_dma_latency(run, &held_us) ? held_us : -1;
}

static void read_dma_latency_again(struct run *run)
{
	struct setting *setting = setting_add(&run->settings_after, "cpu_dma_latency_us", NULL);
	int64_t held_us = settings_held_us(run);

	if (held_us >= 0)
		setting_int(&setting->in_effect, held_us);
}

static void read_throttling(struct settings_read *read)
{
	struct setting *setting = setting_add(read, "rt_throttling_us", NULL);
	int64_t runtime_us;

	if (read_number("/proc/sys/kernel/sched_rt_runtime_us", &runtime_us))
		setting_int(&setting->in_effect, runtime_us);
	else
		setting_explain(setting, "this kernel has no sched_rt_runtime_us");
}

/* The first difference, those that keep a run from being a real-time one before others. */
static const struct setting *first_difference(const struct settings_read *read)
{
	const struct setting *first = NULL;

	for (int i = 0; i < read->count; i++) {
		const struct setting *setting = &read->list[i];

		if (setting->differs && (!first || (setting->real_time && !first->real_time)))
			first = setting;
	}
	return first;
}

void settings_read_before(struct run *run)
{
	const struct setting *difference;

	if (!run->probe->watches) {
		read_memory_lock(run, &run->settings_before);
		request_dma_latency(run);
	}
	read_throttling(&run->settings_before);
	settings_place_before(run);
	for_each_worker(worker, run)
		settings_of_thread(&run->settings_before, worker, &worker->before);
	if (run->source && run->source->settings_before)
		run->source->settings_before(run);
	difference = first_difference(&run->settings_before);
	if (difference && !run->settings->allow_difference)
		bad_input("%s (or measure anyway with --allow-difference)", difference->reason);
}

/* A thread that goes on, into a ring's next recording or because it is starved, is looked at from here: but for its slack,
 * which only it can tell. */
static struct thread_state state_after(const struct worker *worker)
{
	struct thread_state state = {.policy = -1, .timer_slack_ns = -1};

	if (atomic_load(&worker->done))
		return worker->after;
	thread_look(worker->tid, &state);
	return state;
}

void settings_read_after(struct run *run)
{
	if (!run->probe->watches) {
		read_memory_lock(run, &run->settings_after);
		read_dma_latency_again(run);
	}
	read_throttling(&run->settings_after);
	settings_place_after(run);
	for_each_worker(worker, run) {
		struct thread_state state = state_after(worker);

		settings_of_thread(&run->settings_after, worker, &state);
	}
}

bool settings_real_time(const struct run *run)
{
	const struct settings_read *read = &run->settings_before;

	if (run->probe->watches)
		return true;
	if (run->settings->policy == POLICY_OTHER || !run->settings->lock_memory)
		return false;
	for (int i = 0; i < read->count; i++)
		if (read->list[i].differs && read->list[i].real_time)
			return false;
	return true;
}

/*
 * Comparing: a run whose threads were changed between the first act and the last has failed ------------
 */

/* Once the machine is open and before the first act; a thread was moved to its CPU once already. */
void settings_remember(struct run *run)
{
	for_each_worker(worker, run)
		worker->migrations_before = machine_migrations(worker);
}

/* Only changed scheduling of a thread fails a run; an unreadable setting does not count as changed. */
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
	setting_int(&setting_add(&run->settings_after, "migrations", worker)->in_effect, moves);
	run_fail(run, "thread %s, pinned to CPU %d, was moved to another CPU during the run (%" PRId64 " times); do not "
		 "change its threads and CPUs", worker->spec.name, worker->before.affinity.cpu[0], moves);
}

/* A real-time core that had to hand a thread to Linux in the middle of its acts measured Linux then. */
static void check_mode_switches(struct run *run, const struct worker *worker)
{
	int64_t mode_switches = worker->mode_switches - worker->mode_switches_before;

	if (worker->spec.ordinary || run->settings->policy == POLICY_OTHER || worker->mode_switches < 0)
		return;
	setting_int(&setting_add(&run->settings_after, "mode_switches", worker)->in_effect, mode_switches);
	if (mode_switches)
		run_fail(run, "thread %s of CPU %d left the real-time core %" PRId64 " times during the run (a signal, a page "
			 "fault or a call of Linux): those acts measured Linux", worker->spec.name,
			 worker->spec.cpu, mode_switches);
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
			check_mode_switches(run, worker);
		}
}

void settings_restart(struct run *run)
{
	struct setting *before = run->settings_before.list;
	struct setting *after = run->settings_after.list;

	for (int i = 0; i < run->settings_after.count && i < run->settings_before.count; i++)
		if (strcmp(after[i].in_effect, "null") != 0) {
			char *in_effect = before[i].in_effect;

			before[i].in_effect = after[i].in_effect;
			after[i].in_effect = in_effect;
		}
	run->settings_after.count = 0;
}
