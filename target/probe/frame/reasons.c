/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a run continues, and why it ended: set by workers, the reporter and signals alike. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libc.h"
#include "run.h"

struct run *worker_run(const struct worker *self)
{
	return self->run;
}

bool run_is_active(const struct worker *self)
{
	return !atomic_load_explicit(&self->run->stop, memory_order_relaxed);
}

bool run_continues(struct worker *self)
{
	return run_is_active(self) && (self->run->settings->loops == 0 || self->acts++ < self->run->settings->loops);
}

bool run_ended_early(const struct worker *self)
{
	return !run_is_active(self) && (self->run->settings->loops == 0 || self->acts < self->run->settings->loops);
}

void run_stop(struct run *run, enum outcome outcome)
{
	int expected = OUTCOME_COMPLETED;

	atomic_compare_exchange_strong(&run->outcome, &expected, (int)outcome);
	atomic_store(&run->stop, true);
}

/* The first reason stays. */
static void run_reason(struct run *run, enum outcome outcome, const char *format, va_list arguments)
{
	if (!atomic_exchange(&run->reason_taken, true)) {
		vsnprintf(run->reason, sizeof(run->reason), format, arguments);
		atomic_store(&run->reason_written, true);
	}
	run_stop(run, outcome);
}

void run_finish(struct run *run)
{
	run_stop(run, OUTCOME_COMPLETED);
	pthread_kill(run->reporter, SIGUSR1);
}

void run_fail(struct run *run, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	run_reason(run, OUTCOME_FAILED, format, arguments);
	va_end(arguments);
	if (run->reporter)
		pthread_kill(run->reporter, SIGUSR1);
}

void run_not_applicable(struct run *run, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	run_reason(run, OUTCOME_NOT_APPLICABLE, format, arguments);
	va_end(arguments);
}

void run_abort(struct run *run, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	run_reason(run, OUTCOME_ABORTED, format, arguments);
	va_end(arguments);
}

void run_write_failed(struct run *run, const char *what, int error)
{
	snprintf(run->write_error, sizeof(run->write_error), "%s: %s", what, output_error_text(error));
	if (error == EINTR)
		run_abort(run, "ended by signal %s", signal_name(run->signal));
	else
		run_fail(run, "%s", run->write_error);
}
