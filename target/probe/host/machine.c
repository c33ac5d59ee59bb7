/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clocks.h"
#include "run.h"
#include "source.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define MSR_SMI_COUNT 0x34
#define SCHED_SIZE 2048 /* what is looked for stands near the top */
/* From this share on of what real-time tasks are granted, it counts as used up. */
#define NEARLY 0.98

/*
 * System management interrupts -------------------------------------------------------------------
 */

static bool has_smi_counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b = 0, c = 0, d = 0;

	return __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx && c == signature_INTEL_ecx;
#else
	return false;
#endif
}

static int open_msr(int cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Every CPU sees every SMI, so the greatest count is the count. */
void machine_read_smi(struct machine *machine, struct counters *counters)
{
	uint64_t count, most = 0;

	for (int i = 0; i < machine->cpus.count; i++) {
		if (machine->msr_fd[i] < 0 || pread(machine->msr_fd[i], &count, sizeof(count), MSR_SMI_COUNT) != sizeof(count))
			return;
		most = count > most ? count : most;
	}
	counter_set(counters, COUNTER_SMI, (int64_t)most);
}

/*
 * What befell the measuring threads --------------------------------------------------------------
 */

/* The reporter may be switched between the two readings, which then say too little of the others: never less than
 * before, and right again with the next reading. */
static void count_others(struct machine *machine, struct counters *counters, enum counter counter, int64_t others)
{
	int64_t *seen = &machine->usage[counter];

	*seen = others > *seen ? others : *seen;
	counter_set(counters, counter, *seen);
}

static void read_usage(struct run *run, struct counters *counters)
{
	struct machine *machine = &run->machine;
	struct rusage all, reporter;

	getrusage(RUSAGE_SELF, &all);
	getrusage(RUSAGE_THREAD, &reporter);
	count_others(machine, counters, COUNTER_MAJOR_FAULTS, all.ru_majflt - reporter.ru_majflt);
	count_others(machine, counters, COUNTER_MINOR_FAULTS, all.ru_minflt - reporter.ru_minflt);
	if (run->source)
		return;
	count_others(machine, counters, COUNTER_VOLUNTARY_SWITCHES, all.ru_nvcsw - reporter.ru_nvcsw);
	count_others(machine, counters, COUNTER_INVOLUNTARY_SWITCHES, all.ru_nivcsw - reporter.ru_nivcsw);
}

static int open_sched(const struct worker *worker)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/sched", (int)worker->tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int64_t machine_migrations(const struct worker *worker)
{
	static const char name[] = "se.nr_migrations";
	char text[SCHED_SIZE];
	ssize_t length = worker->sched_fd < 0 ? -1 : pread(worker->sched_fd, text, sizeof(text) - 1, 0);
	const char *line;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	line = strstr(text, name);
	line = line ? strchr(line, ':') : NULL;
	return line ? strtoll(line + 1, NULL, 10) : -1;
}

static void read_migrations(struct run *run, struct counters *counters)
{
	int64_t sum = 0;

	if (run->source)
		return;
	for_each_worker(worker, run) {
		int64_t count = atomic_load(&worker->done) ? worker->migrations : machine_migrations(worker);

		if (count < 0)
			return;
		sum += count;
	}
	counter_set(counters, COUNTER_MIGRATIONS, sum);
}

/*
 * Throttling ---------------------------------------------------------------------------------------
 *
 * The kernel does not say when it held back real-time tasks.  But it does so only once they used up what
 * sched_rt_runtime_us or their control group grants them on a CPU, and the time our own threads took is known.
 */

static int64_t worker_cpu_ns(const struct worker *worker)
{
	clockid_t clock;

	if (atomic_load(&worker->done))
		return worker->cpu_end_ns;
	return pthread_getcpuclockid(worker->thread, &clock) ? 0 : clock_ns(clock);
}

/* CPUs on which real-time threads took what they are granted, or nearly so; threads that are not pinned count as one. */
static int cpus_used_up(const struct run *run, int64_t granted_ns)
{
	int64_t used_ns[MAX_CPUS + 1] = {0};
	int count = 0;

	for_each_worker(worker, run)
		if (!worker->spec.ordinary)
			used_ns[worker->spec.cpu < 0 ? MAX_CPUS : worker->spec.cpu] += worker_cpu_ns(worker) - worker->cpu_ns;
	for (int cpu = 0; cpu <= MAX_CPUS; cpu++)
		count += (double)used_ns[cpu] >= NEARLY * (double)granted_ns;
	return count;
}

static void restart_comparison(struct run *run, int64_t now_ns)
{
	run->machine.rt_since_ns = now_ns;
	for_each_worker(worker, run)
		worker->cpu_ns = worker_cpu_ns(worker);
}

/* At least what one period grants must have been taken: a burst may take it in less time than the period. */
static void read_throttled(struct run *run, struct counters *counters)
{
	struct machine *machine = &run->machine;
	int64_t now_ns = mono_ns(), elapsed_ns = now_ns - machine->rt_since_ns;
	bool real_time = run->settings->policy == POLICY_FIFO || run->settings->policy == POLICY_RR;

	if (real_time && machine->rt_period_ns) {
		double periods = (double)elapsed_ns / (double)machine->rt_period_ns;
		int cpus = cpus_used_up(run, (int64_t)((double)machine->rt_runtime_ns * (periods > 1 ? periods : 1)));

		machine->throttled += cpus;
		if (cpus)
			record_event(run, "throttled", NULL, now_ns, elapsed_ns,
				     "threads used up the real-time budget (sched_rt_runtime_us, or that of their control group)");
		if (cpus || periods > 1)
			restart_comparison(run, now_ns);
	}
	counter_set(counters, COUNTER_THROTTLED, machine->throttled);
}

/* Growth means that the probe, or a load beside it, had to wait for a quota to be filled again. */
static void read_cgroup_throttled(const struct machine *machine, struct counters *counters)
{
	int64_t periods;

	if (cgroup_throttled(&machine->cgroup, &periods))
		counter_set(counters, COUNTER_CGROUP_THROTTLED, periods);
}

/* The tightest of what the system and the control groups grant real-time tasks; -1 of the system ends all throttling. */
static void open_budget(struct machine *machine)
{
	const struct cgroup *cgroup = &machine->cgroup;
	int64_t runtime_us, period_us;

	if (!read_number("/proc/sys/kernel/sched_rt_runtime_us", &runtime_us) || runtime_us < 0 ||
	    !read_number("/proc/sys/kernel/sched_rt_period_us", &period_us))
		return;
	if (cgroup->rt_period_us && cgroup->rt_runtime_us * period_us < runtime_us * cgroup->rt_period_us) {
		runtime_us = cgroup->rt_runtime_us;
		period_us = cgroup->rt_period_us;
	}
	machine->rt_runtime_ns = runtime_us * NS_PER_US;
	machine->rt_period_ns = period_us * NS_PER_US;
}

void machine_open(struct run *run)
{
	struct machine *machine = &run->machine;

	machine->cpus = run->settings->cpus;
	if (run->source && run->source->cpu >= 0)
		machine->cpus = (struct cpu_list){.count = 1, .cpu = {run->source->cpu}};
	cpu_time_open(&machine->cpu_time, "/proc/stat", &machine->cpus);
	machine->msr_fd = malloc(sizeof(int) * (size_t)(machine->cpus.count + 1));
	if (!machine->msr_fd)
		abort();
	for (int i = 0; i < machine->cpus.count; i++)
		machine->msr_fd[i] = has_smi_counter() ? open_msr(machine->cpus.cpu[i]) : -1;
	clocks_open(machine);
	for_each_worker(worker, run)
		worker->sched_fd = open_sched(worker);
	cgroup_open(&machine->cgroup, "/proc/self");
	frequency_open(&machine->frequency, "/sys/devices/system/cpu", &machine->cpus);
	open_budget(machine);
	restart_comparison(run, mono_ns());
}

void machine_restart_comparison(struct run *run)
{
	restart_comparison(run, mono_ns());
}

void machine_read(struct run *run, struct counters *counters)
{
	*counters = (struct counters){0};
	cpu_time_count(&run->machine.cpu_time, counters);
	machine_read_smi(&run->machine, counters);
	clocks_read(run, counters);
	read_usage(run, counters);
	read_migrations(run, counters);
	if (run->source && run->source->thread)
		run->source->thread(run, counters);
	read_throttled(run, counters);
	read_cgroup_throttled(&run->machine, counters);
	frequency_count(&run->machine.frequency, counters);
	counters_trust(&run->machine.seen, counters);
}

bool machine_is_virtual(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c = 0, d;

	if (__get_cpuid(1, &a, &b, &c, &d) && c >> 31)
		return true;
#endif
	return !access("/sys/hypervisor/type", F_OK) || !access("/proc/device-tree/hypervisor", F_OK);
}
