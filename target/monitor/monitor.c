/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * monitor: time at each station in the kernel, from the event that wakes a task to its return to user space.
 *
 * BPF programs in the kernel measure the selected tasks; the monitor reads their counts.
 */
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "state.h"
#include "registry.h"

#define POLL_NS (100 * NS_PER_MS)

/* Of linux/proc_ns.h: PROC_PID_INIT_INO and PROC_CGROUP_INIT_INO. */
#define INITIAL_PID_NAMESPACE 0xeffffffcu
#define INITIAL_CGROUP_NAMESPACE 0xeffffffbu

/* Capabilities of <linux/capability.h>. */
enum { ADMIN = 21, PERFMON = 38, BPF = 39 };

enum { REAL_TIME, ONLY_FIFO, ONLY_RR, ONLY_DEADLINE, ONLY_OTHER, ANY };
static const char *const policies[] = {"real-time", "fifo", "rr", "deadline", "other", "any", NULL};
static const fe_u32 policy_bits[] = {
	[REAL_TIME] = BIT_FIFO | BIT_RR | BIT_DEADLINE, [ONLY_FIFO] = BIT_FIFO, [ONLY_RR] = BIT_RR,
	[ONLY_DEADLINE] = BIT_DEADLINE, [ONLY_OTHER] = ~(BIT_FIFO | BIT_RR | BIT_DEADLINE), [ANY] = ~0u,
};

static struct {
	int policy;
	int64_t priority, pid, k;
	const char *comm, *cgroup, *samples;
	bool noise;
} chosen = {.k = 8};

static const struct option_spec monitor_options[] = {
	{"policy", 0, OPTION_CHOICE, &chosen.policy, .choices = policies,
	 .help = "tasks of this policy: real-time (default), fifo, rr, deadline, other or any"},
	{"priority", 0, OPTION_INTEGER, &chosen.priority, .low = 1, .high = 99, .help = "tasks of this real-time priority or above"},
	{"pid", 0, OPTION_INTEGER, &chosen.pid, .low = 1, .high = INT32_MAX, .help = "this thread, or all of this process"},
	{"comm", 0, OPTION_TEXT, &chosen.comm, .help = "tasks whose name begins with this, as ps -L -o comm shows it"},
	{"cgroup", 0, OPTION_TEXT, &chosen.cgroup, .help = "tasks in or below this control group, as /proc/PID/cgroup shows it"},
	{"samples", 0, OPTION_TEXT, &chosen.samples,
	 .help = "write every wake-up by a timer, by station, with its expiry, to this new file"},
	{"noise", 0, OPTION_FLAG, &chosen.noise,
	 .help = "also the time that interrupts, soft-IRQs and other threads take from each CPU"},
	{"k", 0, OPTION_INTEGER, &chosen.k, .low = BANK_K_LEAST, .high = BANK_K_MOST,
	 .help = "histograms of 2^k buckets per octave: 8 are 0.8 MB a CPU (8)"},
	{0},
};

static bool capable(unsigned long long capabilities, int which)
{
	return capabilities >> which & 1;
}

/* The capabilities that it needs until the end, to read the maps of its programs; bad input without them. */
static uint64_t check_rights(void)
{
	unsigned long long capabilities = 0;
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &capabilities) == 1)
			break;
	if (status)
		fclose(status);
	if (!capable(capabilities, ADMIN) && !(capable(capabilities, PERFMON) && capable(capabilities, BPF)))
		bad_input("the monitor needs root, or the capabilities CAP_BPF and CAP_PERFMON; run it with sudo");
	return capable(capabilities, BPF) ? 1ULL << BPF | 1ULL << PERFMON : 1ULL << ADMIN; /* before Linux 5.8 there is no other */
}

static bool is_version_2(const char *path)
{
	struct statfs system;

	return !statfs(path, &system) && system.f_type == CGROUP2_SUPER_MAGIC;
}

/* The mount point of the control groups of version 2, of which a task is in exactly one. */
static const char *cgroup_root(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		if (is_version_2(roots[i]))
			return roots[i];
	bad_input("--cgroup: this machine has no control groups of version 2 at %s", roots[0]);
}

static bool has_dots(const char *path)
{
	for (const char *name = path; name; name = strchr(name, '/')) {
		size_t length;

		name += strspn(name, "/");
		length = strcspn(name, "/");
		if (length && length <= 2 && !strncmp(name, "..", length))
			return true;
	}
	return false;
}

/* Selects a group by its folder, or by the path in /proc/PID/cgroup after 0::.  Its ID is the inode of its folder. */
static void choose_cgroup(struct filter *filter, const char *path)
{
	const char *root = cgroup_root(), *below = strncmp(path, root, strlen(root)) ? path : path + strlen(root);
	char whole[512];
	struct stat folder;

	if (has_dots(below))
		bad_input("--cgroup: write the path without . and .., not %s", path);
	snprintf(whole, sizeof(whole), "%s/%s", root, below);
	if (stat(whole, &folder) || !S_ISDIR(folder.st_mode))
		bad_input("no such control group: %s; name a folder of %s", path, root);
	filter->cgroup = folder.st_ino;
	for (const char *letter = below; *letter; letter++)
		filter->cgroup_level += *letter != '/' && (letter == below || letter[-1] == '/');
}

static struct filter choose_tasks(const struct settings *settings)
{
	struct filter filter = {
		.policies = policy_bits[chosen.policy],
		.prio_most = chosen.priority ? 99 - (int)chosen.priority : INT32_MAX,
		.pid = (int)chosen.pid,
		.k = (fe_u32)chosen.k,
		.buckets = FE_HIST_BUCKETS(BANK_BITS, chosen.k),
		.threshold_ns = (fe_u64)settings->threshold_ns,
		.store_samples = chosen.samples != NULL,
	};

	if (chosen.comm && strlen(chosen.comm) >= COMM_SIZE)
		bad_input("--comm: the kernel stores only the first %d characters of a name; omit the rest", COMM_SIZE - 1);
	if (chosen.comm) {
		filter.comm_size = (fe_u32)strlen(chosen.comm);
		memcpy(filter.comm, chosen.comm, filter.comm_size);
	}
	return filter;
}

static void add_parameters(struct run *run)
{
	const struct settings *settings = run_settings(run);

	run_parameter_text(run, "policy", policies[chosen.policy]);
	if (chosen.priority)
		run_parameter_int(run, "priority", chosen.priority);
	if (chosen.pid)
		run_parameter_int(run, "pid", chosen.pid);
	if (chosen.comm)
		run_parameter_text(run, "comm", chosen.comm);
	if (chosen.cgroup)
		run_parameter_text(run, "cgroup", chosen.cgroup);
	if (settings->threshold_ns)
		run_parameter_int(run, "threshold_ns", settings->threshold_ns);
	run_parameter_int(run, "k", chosen.k);
}

static void add_stations(struct monitor *monitor, int cpu)
{
	static const struct { const char *name, *from, *to; } stations[] = {
#define STATION(NAME, TEXT, FROM, TO, ...) {TEXT, FROM, TO},
#include "stations.inc"
#undef STATION
	};

	for (unsigned i = 0; i < STATIONS; i++) {
		if (is_noise(stations[i].name) && !monitor->noise)
			continue;
		*monitor_series(monitor, (unsigned)cpu, i) = run_add_series(monitor->run, &(struct series_spec){
			.name = stations[i].name, .from = stations[i].from, .to = stations[i].to, .cpu = cpu, .k = monitor->filter.k,
			.role = SERIES_DIAGNOSTIC, .labels = {{"station", stations[i].name}}});
	}
}

static void add_series(struct monitor *monitor)
{
	const struct cpu_list *cpus = &run_settings(monitor->run)->cpus;

	for (int i = 0; i < cpus->count; i++)
		if ((unsigned)cpus->cpu[i] >= monitor->cpus)
			monitor->cpus = (unsigned)cpus->cpu[i] + 1;
	monitor->filter.cpus = monitor->cpus;
	monitor->series = run_allocate(monitor->run, monitor->cpus * STATIONS * sizeof(*monitor->series));
	for (int i = 0; i < cpus->count; i++)
		add_stations(monitor, cpus->cpu[i]);
}

static const struct source monitor_source = {
	.probe = "monitor",
	.implementation = "linux-user",
	.cpu = -1,
	.poll_ns = POLL_NS,
	.begin = monitor_begin,
	.poll = monitor_poll,
	.stop = monitor_stop,
	.collect = monitor_collect,
	.interval_counters = monitor_interval_counters,
	.total_counters = monitor_total_counters,
	.begin_totals = monitor_begin_totals,
};

static bool in_namespace(const char *path, ino_t inode)
{
	struct stat namespace;

	return stat(path, &namespace) || namespace.st_ino == inode;
}

/* True if process IDs and control groups here are those that BPF programs see: of the initial namespaces. */
static bool knows_tasks(struct run *run)
{
	if (chosen.pid && !in_namespace("/proc/self/ns/pid", INITIAL_PID_NAMESPACE)) {
		run_not_applicable(run, "--pid: process IDs of this PID namespace (of a container) are not those of the kernel; run "
				   "the monitor outside it, or select tasks by --comm");
		return false;
	}
	if (chosen.cgroup && !in_namespace("/proc/self/ns/cgroup", INITIAL_CGROUP_NAMESPACE)) {
		run_not_applicable(run, "--cgroup: paths of this cgroup namespace (of a container) are not those of the kernel; run "
				   "the monitor outside it, or select tasks by --comm");
		return false;
	}
	return true;
}

static void monitor_setup(struct run *run)
{
	struct monitor *monitor = run_allocate(run, sizeof(*monitor));

	monitor->source = monitor_source;
	monitor->source.capabilities = check_rights();
	monitor->run = run;
	monitor->noise = chosen.noise;
	monitor->filter = choose_tasks(run_settings(run));
	add_parameters(run);
	add_series(monitor);
	if (chosen.samples)
		samples_begin(monitor, chosen.samples);
	if (!knows_tasks(run))
		return;
	if (chosen.cgroup)
		choose_cgroup(&monitor->filter, chosen.cgroup);
	if (!programs_load(monitor))
		return;
	symbols_read();
	run->source = &monitor->source;
}

static const struct probe monitor_probe = {
	.name = "monitor",
	.summary = "time spent at each kernel station from waking a task until it runs, with causes",
	.watches = true,
	.options = monitor_options,
	.setup = monitor_setup,
};

const struct probe *const probes[] = {
	&monitor_probe,
	NULL,
};
