/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between glibc and musl. */
#ifndef LIBC_H
#define LIBC_H

#include <signal.h>
#include <sys/types.h>

/* Of struct sigevent, for SIGEV_THREAD_ID: glibc has no public name for it, musl has only that. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* "TERM"; "unknown" for a signal that ends no program of ours. */
const char *signal_name(int signal);
/* "EPERM"; "another error" for one that neither pipes nor files give. */
const char *error_name(int error);

/* As sigwaitinfo(), which musl begins anew where another signal ends it. */
int signal_wait(const sigset_t *set, siginfo_t *info);
/* As pthread_sigqueue(), which musl has not. */
int signal_queue(pthread_t thread, pid_t tid, int signal, union sigval value);

#endif
