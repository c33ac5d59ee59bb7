/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing to a reader that may have stopped: it must not make the probe unstoppable.
 *
 * The descriptor may be shared with the caller's shell, so it is never made non-blocking.  A timer interrupts
 * a blocking write periodically, and each interruption decides whether to continue.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc.h"
#include "run.h"

/* Time after which a reader that takes nothing is given up. */
#ifndef WRITE_LIMIT_S
#define WRITE_LIMIT_S 20
#endif
/* The same after a signal, or after a reader has been given up. */
#define SHORT_WRITE_LIMIT_NS NS_PER_S
#define TICK_MS 20

static timer_t tick;
static bool prepared;
static int64_t write_limit_ns = WRITE_LIMIT_S * NS_PER_S;

void output_prepare(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};

	event.sigev_notify_thread_id = thread_id();
	if (timer_create(CLOCK_MONOTONIC, &event, &tick))
		bad_input("cannot create the output's timer: %s; raise ulimit -i", strerror(errno));
	prepared = true;
}

static void interrupt_each(int64_t period_ns)
{
	struct itimerspec when = {timespec_of(period_ns), timespec_of(period_ns)};

	if (prepared)
		timer_settime(tick, 0, &when, NULL);
}

/* After a second signal, the wait is a tenth. */
static bool must_hurry(int64_t begin_ns)
{
	int64_t signalled_ns;
	int signals = prepared ? signals_taken(&signalled_ns) : 0;
	int64_t from_ns = signals && begin_ns < signalled_ns ? signalled_ns : begin_ns;

	return signals && mono_ns() - from_ns > (signals > 1 ? SHORT_WRITE_LIMIT_NS / 10 : SHORT_WRITE_LIMIT_NS);
}

static int give_up(int64_t begin_ns, int64_t progress_ns, int64_t wait_ns)
{
	if (must_hurry(begin_ns))
		return EINTR;
	return mono_ns() - progress_ns >= wait_ns ? ETIMEDOUT : 0;
}

/* Someone else may have made it non-blocking. */
static void wait_writable(int fd)
{
	struct pollfd output = {.fd = fd, .events = POLLOUT};

	poll(&output, 1, TICK_MS);
}

static size_t write_for(int fd, const char *text, size_t size, int64_t wait_ns, int *error)
{
	int64_t begin_ns = mono_ns(), progress_ns = begin_ns;
	size_t done = 0;

	*error = 0;
	interrupt_each(TICK_MS * NS_PER_MS);
	while (done < size && !*error) {
		ssize_t written = write(fd, text + done, size - done);

		if (written > 0) {
			done += (size_t)written;
			progress_ns = mono_ns();
		} else if (written == 0 || errno == EAGAIN) {
			wait_writable(fd);
		} else if (errno != EINTR) {
			*error = errno;
		}
		if (done < size && !*error)
			*error = give_up(begin_ns, progress_ns, wait_ns);
	}
	interrupt_each(0);
	return done;
}

size_t output_write(int fd, const char *text, size_t size, int *error)
{
	size_t done = write_for(fd, text, size, write_limit_ns, error);

	if (*error == ETIMEDOUT)
		write_limit_ns = SHORT_WRITE_LIMIT_NS; /* further output may meet the same reader */
	return done;
}

size_t output_try(int fd, const char *text, size_t size)
{
	int error;

	return write_for(fd, text, size, 0, &error);
}

int output_open(const char *path, int flags)
{
	int64_t begin_ns = mono_ns();
	int fd, error = 0;

	interrupt_each(TICK_MS * NS_PER_MS);
	do {
		fd = open(path, flags, 0644);
		if (fd < 0)
			error = errno == EINTR ? give_up(begin_ns, begin_ns, write_limit_ns) : errno;
	} while (fd < 0 && !error);
	interrupt_each(0);
	errno = error;
	return fd;
}

const char *output_error_text(int error)
{
	static char text[64];

	if (error == EINTR)
		return "its reader does not read";
	if (error != ETIMEDOUT)
		return strerror(error);
	snprintf(text, sizeof(text), "its reader has read nothing for %d s", WRITE_LIMIT_S);
	return text;
}
