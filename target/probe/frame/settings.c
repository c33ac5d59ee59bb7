/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was asked of the machine and what it granted, always as read back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refusal.h"
#include "run.h"

#define DMA_LATENCY "/dev/cpu_dma_latency"

static struct setting *setting_add(struct run *run, const char *name, const struct worker *worker)
{
	struct setting *setting;

	if (run->asked_count == MAX_SETTINGS)
		bad_input("more than %d settings to verify; ask for fewer threads", MAX_SETTINGS);
	setting = &run->asked[run->asked_count++];
	*setting = (struct setting){.name = name, .cpu = worker ? worker->spec.cpu : -1};
	if (worker)
		snprintf(setting->thread, sizeof(setting->thread), "%s", worker->spec.name);
	strcpy(setting->asked, "null");
	strcpy(setting->granted, "null");
	return setting;
}

static void __attribute__((format(printf, 2, 3))) explain(struct setting *setting, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(setting->reason, sizeof(setting->reason), format, arguments);
	va_end(arguments);
}

static void set_int(char text[64], int64_t value)
{
	snprintf(text, 64, "%" PRId64, value);
}

static void set_text(char text[64], const char *value)
{
	snprintf(text, 64, "\"%s\"", value);
}

static bool same(const struct setting *setting)
{
	return !strcmp(setting->asked, setting->granted);
}

/*
 * The whole run ----------------------------------------------------------------------------------
 */

/* "VmLck: N kB" of this process, -1 if it cannot be read. */
static int64_t locked_kib(void)
{
	char line[128];
	long long kib = -1;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmLck: %lld", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib;
}

static void verify_memory_lock(struct run *run)
{
	struct setting *setting = setting_add(run, "memory_lock", NULL);
	int64_t kib = locked_kib();
	char why[REFUSAL_SIZE];

	strcpy(setting->asked, run->settings->lock_memory ? "true" : "false");
	if (kib >= 0)
		strcpy(setting->granted, kib > 0 && !run->lock_error ? "true" : "false");
	setting->differs = run->settings->lock_memory && !same(setting);
	setting->real_time = true;
	if (setting->differs) {
		refusal_of_lock(why, run->lock_error);
		explain(setting, "%s (%s): %s", run->lock_error ? "memory cannot be locked" : "memory_lock cannot be read back",
			run->lock_error ? strerror(run->lock_error) : "no VmLck", why);
	}
}

/* Opens, writes and reads back; the file stays open, for closing it ends the hold. */
static int hold_dma_latency(int32_t us, int32_t *granted)
{
	int fd = open(DMA_LATENCY, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (write(fd, &us, sizeof(us)) != sizeof(us) || pread(fd, granted, sizeof(*granted), 0) != sizeof(*granted))
		return errno ? errno : EIO;
	return 0;
}

static void ask_dma_latency(struct run *run)
{
	struct setting *setting = setting_add(run, "cpu_dma_latency_us", NULL);
	int64_t asked = run->settings->dma_latency_us;
	bool by_default = asked == -2;
	int32_t granted = 0;
	char why[REFUSAL_SIZE];
	int error;

	if (asked == -1)
		return;
	error = hold_dma_latency(by_default ? 0 : (int32_t)asked, &granted);
	if (error == ENOENT && by_default) {
		refusal_of_dma_latency(why, error);
		explain(setting, DMA_LATENCY ": %s", why);
		return;
	}
	set_int(setting->asked, by_default ? 0 : asked);
	if (!error)
		set_int(setting->granted, granted);
	setting->differs = error || granted > (by_default ? 0 : asked);
	if (error) {
		refusal_of_dma_latency(why, error);
		explain(setting, DMA_LATENCY " cannot be held (%s): %s", strerror(error), why);
	} else if (setting->differs) {
		explain(setting, "the kernel holds another value");
	}
}

static void read_throttling(struct run *run)
{
	struct setting *setting = setting_add(run, "rt_throttling_us", NULL);
	int64_t runtime_us;

	if (read_number("/proc/sys/kernel/sched_rt_runtime_us", &runtime_us))
		set_int(setting->granted, runtime_us);
	else
		explain(setting, "this kernel has no sched_rt_runtime_us");
}

void settings_ask(struct run *run)
{
	verify_memory_lock(run);
	ask_dma_latency(run);
	read_throttling(run);
}

/*
 * Each worker ------------------------------------------------------------------------------------
 */

const char *policy_text(int policy)
{
	switch (policy) {
	case SCHED_FIFO:
		return "fifo";
	case SCHED_RR:
		return "rr";
	case 6:
		return "deadline";
	case SCHED_OTHER:
		return "other";
	default:
		return "unknown";
	}
}

/* Why a policy or priority is another than asked, or is not known. */
static void explain_policy(struct setting *setting, const struct worker *worker, const char *asked)
{
	const struct granted *granted = &worker->granted;
	char why[REFUSAL_SIZE];

	if (granted->policy_error) {
		refusal_of_policy(why, granted->policy_error, worker->priority,
				  worker->run->settings->policy == POLICY_DEADLINE);
		explain(setting, "%s %s is refused (%s): %s", setting->name, asked, strerror(granted->policy_error), why);
	} else if (granted->policy < 0) {
		refusal_of_reading(why, granted->policy_unread, "sched_getattr");
		explain(setting, "%s cannot be read back (%s)", setting->name, why);
	} else {
		explain(setting, "the kernel took another %s", setting->name);
	}
}

static void verify_policy(struct run *run, const struct worker *worker, int policy)
{
	struct setting *setting = setting_add(run, "policy", worker);

	set_text(setting->asked, policy_names[policy]);
	if (worker->granted.policy >= 0)
		set_text(setting->granted, policy_text(worker->granted.policy));
	setting->differs = !same(setting);
	setting->real_time = !worker->spec.ordinary;
	if (setting->differs)
		explain_policy(setting, worker, policy_names[policy]);
}

static void verify_priority(struct run *run, const struct worker *worker)
{
	struct setting *setting = setting_add(run, "priority", worker);

	set_int(setting->asked, worker->priority);
	if (worker->granted.policy >= 0)
		set_int(setting->granted, worker->granted.priority);
	setting->differs = !same(setting);
	setting->real_time = true;
	if (setting->differs)
		explain_policy(setting, worker, setting->asked);
}

static void verify_reservation(struct run *run, const struct worker *worker)
{
	const char *const names[] = {"runtime_ns", "deadline_ns", "period_ns"};
	uint64_t granted[] = {worker->granted.runtime_ns, worker->granted.deadline_ns, worker->granted.period_ns};

	for (int i = 0; i < 3; i++)
		set_int(setting_add(run, names[i], worker)->granted, (int64_t)granted[i]);
}

void affinity_text(char text[64], const struct cpu_list *cpus)
{
	size_t used = 0;

	text[used++] = '"';
	for (int i = 0; i < cpus->count && used < 64 - 8; i++)
		used += (size_t)snprintf(text + used, 64 - used, i ? ",%d" : "%d", cpus->cpu[i]);
	strcpy(text + used, "\"");
}

static void verify_affinity(struct run *run, const struct worker *worker, bool pinned)
{
	struct setting *setting = setting_add(run, "affinity", worker);
	char why[REFUSAL_SIZE];

	if (pinned)
		snprintf(setting->asked, sizeof(setting->asked), "\"%d\"", worker->spec.cpu);
	setting->differs = pinned;
	if (worker->granted.affinity.count == 0) {
		refusal_of_reading(why, worker->granted.affinity_unread, "sched_getaffinity");
		explain(setting, "affinity cannot be read back (%s)", why);
		return;
	}
	affinity_text(setting->granted, &worker->granted.affinity);
	setting->differs = pinned && !same(setting);
	if (setting->differs) {
		refusal_of_affinity(why, worker->granted.affinity_error);
		explain(setting, "cannot stay on CPU %d (%s)", worker->spec.cpu, why);
	}
}

/* Only ordinary threads have a slack; from 6.13 on real-time ones say 0 whatever was set, so nothing is asked of them. */
static void verify_slack(struct run *run, const struct worker *worker, bool ordinary)
{
	struct setting *setting = setting_add(run, "timer_slack_ns", worker);

	if (ordinary)
		set_int(setting->asked, run->settings->timer_slack_ns);
	if (worker->granted.timer_slack_ns < 0) {
		explain(setting, "this kernel does not tell");
		return;
	}
	set_int(setting->granted, worker->granted.timer_slack_ns);
	setting->differs = ordinary && !same(setting);
	if (setting->differs)
		explain(setting, "the kernel kept another slack");
}

static void verify_worker(struct run *run, const struct worker *worker)
{
	int policy = worker->spec.ordinary ? POLICY_OTHER : run->settings->policy;

	verify_policy(run, worker, policy);
	if (policy == POLICY_FIFO || policy == POLICY_RR)
		verify_priority(run, worker);
	if (policy == POLICY_DEADLINE)
		verify_reservation(run, worker);
	verify_affinity(run, worker, worker->spec.cpu >= 0 && policy != POLICY_DEADLINE);
	verify_slack(run, worker, policy == POLICY_OTHER);
}

/* The first difference, those that keep a run from being a real-time one before others. */
static const struct setting *first_difference(const struct run *run)
{
	const struct setting *first = NULL;

	for (int i = 0; i < run->asked_count; i++) {
		const struct setting *setting = &run->asked[i];

		if (setting->differs && (!first || (setting->real_time && !first->real_time)))
			first = setting;
	}
	return first;
}

void settings_verify(struct run *run)
{
	const struct setting *difference;

	for_each_worker(worker, run)
		verify_worker(run, worker);
	difference = first_difference(run);
	if (difference && !run->settings->allow_difference)
		bad_input("%s (or measure all the same with --allow-difference)", difference->reason);
}

bool settings_real_time(const struct run *run)
{
	if (run->settings->policy == POLICY_OTHER || !run->settings->lock_memory)
		return false;
	for (int i = 0; i < run->asked_count; i++)
		if (run->asked[i].differs && run->asked[i].real_time)
			return false;
	return true;
}
