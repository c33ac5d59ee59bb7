/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Linked into a probe of its own (--wrap), so that the tests can see each hand-over fail: FAULT=KIND:CALL:N,
 * where KIND is "nothing" (the N-th call claims success and does nothing), "never" (nor does any later one),
 * "die" (the thread that makes the N-th call ends) or "slow" (each call from the N-th on keeps its CPU 20 us longer).
 */
#define _GNU_SOURCE
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex
#define SYS_futex SYS_futex_time64
#endif

static char kind[16], call[32];
static long at;
static _Atomic long calls;

static void __attribute__((constructor)) read_fault(void)
{
	const char *fault = getenv("FAULT");

	if (fault && sscanf(fault, "%15[^:]:%31[^:]:%ld", kind, call, &at) != 3)
		abort();
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void keep_cpu(void)
{
	int64_t end_ns = now_ns() + 20000;

	while (now_ns() < end_ns)
		;
}

/* Whether this call is to do nothing. */
static bool faulty(const char *name)
{
	long n;

	if (strcmp(name, call))
		return false;
	n = atomic_fetch_add(&calls, 1) + 1;
	if (n == at && !strcmp(kind, "die"))
		pthread_exit(NULL);
	if (n >= at && !strcmp(kind, "slow"))
		keep_cpu();
	return !strcmp(kind, "never") ? n >= at : n == at && !strcmp(kind, "nothing");
}

#define WRAP(type, name, parameters, arguments, success)                                                           \
	type __real_##name parameters;                                                                             \
	type __wrap_##name parameters;                                                                             \
	type __wrap_##name parameters                                                                              \
	{                                                                                                          \
		return faulty(#name) ? (success) : __real_##name arguments;                                        \
	}

WRAP(int, sem_post, (sem_t * sem), (sem), 0)
WRAP(int, sem_wait, (sem_t * sem), (sem), 0)
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), 0)
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), 0)
WRAP(int, pthread_mutexattr_setprotocol, (pthread_mutexattr_t * attributes, int protocol), (attributes, protocol), 0)
WRAP(int, pthread_cond_signal, (pthread_cond_t * condition), (condition), 0)
WRAP(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier), 0)
WRAP(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock), 0)
WRAP(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), 0)
WRAP(int, pthread_sigqueue, (pthread_t thread, int signal, union sigval value), (thread, signal, value), 0)
WRAP(int, sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), SIGRTMIN)
WRAP(int, mq_send, (mqd_t queue, const char *text, size_t size, unsigned int priority), (queue, text, size, priority), 0)
WRAP(ssize_t, mq_receive, (mqd_t queue, char *text, size_t size, unsigned int *priority), (queue, text, size, priority),
     (ssize_t)size)
WRAP(int, sched_yield, (void), (), 0)

/* Those on the standard streams are no hand-overs. */
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	return fd > 2 && faulty("read") ? (ssize_t)size : __real_read(fd, buffer, size);
}

ssize_t __real_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
	return fd > 2 && faulty("write") ? (ssize_t)size : __real_write(fd, buffer, size);
}

/* Only what fills shared memory copies exactly so much. */
void *__real_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	return size == 4096 && faulty("memcpy") ? to : __real_memcpy(to, from, size);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_futex && faulty("futex"))
		return 0;
	return __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
