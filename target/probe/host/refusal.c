/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cgroup.h"

#define CAPABILITY_IPC_LOCK 14
#define CAPABILITY_SYS_NICE 23
#define WHOLE_RANGE 4294967295u /* of user numbers: a user namespace maps fewer */

struct privileges {
	bool root;
	bool nice, ipc_lock;  /* capabilities */
	bool filtered;	      /* by seccomp */
	bool user_namespace;  /* not the system's own: its capabilities count for little */
};

static void __attribute__((format(printf, 2, 3))) say(char text[REFUSAL_SIZE], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, REFUSAL_SIZE, format, arguments);
	va_end(arguments);
}

static bool in_user_namespace(void)
{
	unsigned inside, outside, count;
	FILE *file = fopen("/proc/self/uid_map", "re");
	bool mapped = file && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3 && count != WHOLE_RANGE;

	if (file)
		fclose(file);
	return mapped;
}

static struct privileges own_privileges(void)
{
	struct privileges own = {.root = geteuid() == 0, .user_namespace = in_user_namespace()};
	unsigned long long effective = 0;
	char line[256];
	int filter = 0;
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &effective) != 1)
			sscanf(line, "Seccomp: %d", &filter);
	if (status)
		fclose(status);
	own.nice = effective >> CAPABILITY_SYS_NICE & 1;
	own.ipc_lock = effective >> CAPABILITY_IPC_LOCK & 1;
	own.filtered = filter != 0;
	return own;
}

static rlim_t limit_of(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) ? 0 : limit.rlim_cur;
}

/* Explains a refusal although the capability is present or not required. */
static void refusal_despite_rights(char text[REFUSAL_SIZE], const struct privileges *own, const char *call)
{
	if (own->user_namespace)
		say(text, "root of a user namespace may not do this; start outside it, or raise the limit (ulimit) first");
	else if (own->filtered)
		say(text, "a seccomp filter refuses it; let %s through (a container's seccomp profile, RestrictRealtime=no "
			  "of a service)", call);
	else
		say(text, "the kernel gives no reason");
}

void refusal_of_policy(char text[REFUSAL_SIZE], int error, int priority, bool deadline)
{
	struct privileges own = own_privileges();
	bool by_limit = !deadline && limit_of(RLIMIT_RTPRIO) >= (rlim_t)priority;
	struct cgroup cgroup;

	cgroup_open(&cgroup, "/proc/self");
	if (error == EBUSY && deadline)
		say(text, "the CPUs do not have that much time left; use a shorter --runtime per period");
	else if (error != EPERM)
		say(text, deadline ? "use --runtime <= --deadline <= period"
				   : "the kernel took another value");
	else if (!own.nice && !by_limit && !own.root)
		say(text, deadline ? "run as root" : "run as root or allow it with ulimit -r %d", priority);
	else if (!own.nice && !by_limit)
		say(text, deadline ? "root lacks CAP_SYS_NICE here; grant it (--cap-add SYS_NICE)"
				   : "root lacks CAP_SYS_NICE here; grant it (--cap-add SYS_NICE) or allow it with ulimit -r %d "
				     "(--ulimit rtprio=%d)", priority, priority);
	else if (!deadline && cgroup.rt_period_us && cgroup.rt_runtime_us == 0)
		say(text, "its control group grants no time to real-time tasks; write a number of us into %.90s, or start outside it",
		    cgroup.rt_path);
	else if (deadline && !own.filtered && !own.user_namespace)
		say(text, "a deadline task must be allowed all CPUs; start it without affinity and cpuset");
	else
		refusal_despite_rights(text, &own, "sched_setattr");
}

void refusal_of_affinity(char text[REFUSAL_SIZE], int error)
{
	struct privileges own = own_privileges();

	if (error == EPERM && own.filtered)
		say(text, "Operation not permitted: a seccomp filter refuses sched_setaffinity; let it through");
	else if (error)
		say(text, "%s: choose CPUs in use that this process may use with --affinity", strerror(error));
	else
		say(text, "the kernel allows other CPUs: the cpuset was changed; start again");
}

void refusal_of_lock(char text[REFUSAL_SIZE], int error)
{
	struct privileges own = own_privileges();
	long long limit_kib = (long long)(limit_of(RLIMIT_MEMLOCK) / 1024);

	if (!error)
		say(text, "/proc/self/status does not show it; mount /proc");
	else if (!own.ipc_lock && !own.root)
		say(text, "run as root or raise ulimit -l, which is %lld", limit_kib);
	else if (!own.ipc_lock)
		say(text, "root lacks CAP_IPC_LOCK here and ulimit -l is %lld; grant it (--cap-add IPC_LOCK) or raise that "
			  "(--ulimit memlock=-1)", limit_kib);
	else if (error == EPERM || error == ENOMEM || error == EAGAIN)
		refusal_despite_rights(text, &own, "mlock");
	else
		say(text, "the kernel gives no reason");
}

void refusal_of_dma_latency(char text[REFUSAL_SIZE], int error)
{
	if (error == ENOENT)
		say(text, "it does not exist: the kernel lacks it, or the container has no access to it (--device "
			  "/dev/cpu_dma_latency)");
	else if (geteuid())
		say(text, "run as root, or use --latency off");
	else
		say(text, "give it to the container (--device /dev/cpu_dma_latency), or use --latency off");
}

void refusal_of_reading(char text[REFUSAL_SIZE], int error, const char *call)
{
	struct privileges own = own_privileges();

	if (own.filtered)
		say(text, "%s: a seccomp filter refuses %s; let it through", strerror(error), call);
	else
		say(text, "%s: %s is refused", strerror(error), call);
}
