/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "libc.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

struct name {
	int number;
	const char *text;
};

static const struct name signals[] = {
	{SIGHUP, "HUP"}, {SIGINT, "INT"}, {SIGQUIT, "QUIT"}, {SIGILL, "ILL"}, {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"},
	{SIGBUS, "BUS"}, {SIGFPE, "FPE"}, {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
	{SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}, {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"}, {SIGSYS, "SYS"},
	{0, "unknown"},
};

static const struct name errors[] = {
	{EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {EINTR, "EINTR"}, {EIO, "EIO"}, {EBADF, "EBADF"}, {EAGAIN, "EAGAIN"},
	{ENOMEM, "ENOMEM"}, {EACCES, "EACCES"}, {EBUSY, "EBUSY"}, {EEXIST, "EEXIST"}, {EINVAL, "EINVAL"}, {ENFILE, "ENFILE"},
	{EMFILE, "EMFILE"}, {ENOSPC, "ENOSPC"}, {EROFS, "EROFS"}, {ENOSYS, "ENOSYS"}, {EDQUOT, "EDQUOT"},
	{0, "another error"},
};

static const char *name_of(const struct name *names, int number)
{
	while (names->number && names->number != number)
		names++;
	return names->text;
}

const char *signal_name(int signal)
{
	return name_of(signals, signal);
}

const char *error_name(int error)
{
	return name_of(errors, error);
}

#ifdef __GLIBC__
int signal_wait(const sigset_t *set, siginfo_t *info)
{
	return sigwaitinfo(set, info);
}

int signal_queue(pthread_t thread, pid_t tid, int signal, union sigval value)
{
	(void)tid;
	return pthread_sigqueue(thread, signal, value);
}
#else
/* The kernel's sets have a bit for each of its signals, those of C libraries have more. */
int signal_wait(const sigset_t *set, siginfo_t *info)
{
	return (int)syscall(SYS_rt_sigtimedwait, set, info, NULL, _NSIG / 8);
}

int signal_queue(pthread_t thread, pid_t tid, int signal, union sigval value)
{
	siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};

	(void)thread;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value = value;
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, signal, &info) ? errno : 0;
}
#endif
