/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a run, from its probe's setup to the exit status. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "periodic.h"
#include "run.h"

/* Workers are told to stop this often, this far apart, before they count as stuck.  Counted in tries: when the
 * whole machine stood still, its workers were not stuck. */
#define STOP_TRIES 1000
#define STOP_APART_NS (5 * NS_PER_MS)
/* How often the reporter looks whether all workers are ready, should their word be lost. */
#define READY_APART_NS (100 * NS_PER_MS)

struct instant instant_now(void)
{
	int64_t now_ns = mono_ns();

	return (struct instant){now_ns, now_ns + wall_offset_ns()};
}

/*
 * Setup ------------------------------------------------------------------------------------------
 */

static void name_run(struct run *run)
{
	time_t now = time(NULL);
	uint32_t random = 0;
	struct tm utc;
	size_t used;

	if (run->settings->run_id) {
		snprintf(run->run_id, sizeof(run->run_id), "%s", run->settings->run_id);
		return;
	}
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)getpid();
	used = strftime(run->run_id, sizeof(run->run_id), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	snprintf(run->run_id + used, sizeof(run->run_id) - used, "-%08x", random);
}

/* All that exists so far: code and data.  What workers touch of what comes later is locked piece by piece;
 * the reporter's own memory need not be. */
static void lock_program(struct run *run)
{
	if (run->settings->lock_memory && mlockall(MCL_CURRENT))
		run->lock_error = errno;
}

void run_lock(struct run *run, const void *memory, size_t size)
{
	if (run->settings->lock_memory && mlock(memory, size) && !run->lock_error)
		run->lock_error = errno;
}

struct run *run_new(const struct probe *probe, const struct settings *settings)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		abort();
	run->probe = probe;
	run->settings = settings;
	lock_program(run);
	run->series_end = &run->series;
	run->workers_end = &run->workers;
	run->asked = calloc(MAX_SETTINGS, sizeof(*run->asked));
	run->record_fd = -1;
	run->samples_fd = -1;
	if (!run->asked)
		abort();
	name_run(run);
	return run;
}

const struct settings *run_settings(const struct run *run)
{
	return run->settings;
}

int run_threads(const struct run *run)
{
	return run->settings->threads ? (int)run->settings->threads : run->settings->cpus.count;
}

int run_cpu(const struct run *run, int index)
{
	return run->settings->cpus.cpu[index % run->settings->cpus.count];
}

int run_other_cpu(const struct run *run, int cpu)
{
	for (int i = 0; i < run->settings->cpus.count; i++)
		if (run->settings->cpus.cpu[i] != cpu)
			return run->settings->cpus.cpu[i];
	return -1;
}

void *run_allocate(struct run *run, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		bad_input("no memory for %zu bytes; free some or measure less", size);
	run_lock(run, memory, size);
	return memory;
}

struct series *run_add_series(struct run *run, const struct series_spec *spec)
{
	struct series_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		abort();
	entry->series = series_new(run->series_count++, spec, run->settings->threshold_ns);
	if (!entry->series)
		bad_input("no memory for a histogram; free some or measure fewer CPUs");
	if (run->settings->lock_memory && !run->lock_error)
		run->lock_error = series_lock(entry->series);
	if (run->settings->stop_at_threshold)
		entry->series->stop_at_threshold = &run->stop;
	*run->series_end = entry;
	run->series_end = &entry->next;
	return entry->series;
}

void run_keep_samples(struct run *run, const char *path)
{
	run->samples_path = path;
}

struct samples *run_add_samples(struct run *run, const struct series *series)
{
	return samples_new(run, series->id);
}

struct worker *run_add_worker(struct run *run, const struct worker_spec *spec)
{
	struct worker *worker = run_allocate(run, sizeof(*worker));

	worker->run = run;
	worker->spec = *spec;
	worker->priority = (int)run->settings->priority + spec->priority_offset;
	if (!spec->ordinary && run->settings->priority && (worker->priority < 1 || worker->priority > 99))
		bad_input("probe %s needs a thread at priority %d; choose --priority so that it lies within 1 to 99",
			  run->probe->name, worker->priority);
	*run->workers_end = worker;
	run->workers_end = &worker->next;
	run->worker_count++;
	return worker;
}

void run_parameter_text(struct run *run, const char *name, const char *value)
{
	json_member_text(&run->parameters, name, value);
}

void run_parameter_int(struct run *run, const char *name, int64_t value)
{
	json_member_int(&run->parameters, name, value);
}

void run_self_measured(struct run *run)
{
	run->self_measured = true;
}

/*
 * While it runs ----------------------------------------------------------------------------------
 */

struct run *worker_run(const struct worker *self)
{
	return self->run;
}

bool run_going(const struct worker *self)
{
	return !atomic_load_explicit(&self->run->stop, memory_order_relaxed);
}

bool run_continues(struct worker *self)
{
	return run_going(self) && (self->run->settings->loops == 0 || self->acts++ < self->run->settings->loops);
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

void run_unwritten(struct run *run, const char *what, int error)
{
	snprintf(run->trouble, sizeof(run->trouble), "%s: %s", what, output_trouble(error));
	if (error == EINTR)
		run_abort(run, "ended by signal %s", sigabbrev_np(run->signal));
	else
		run_fail(run, "%s", run->trouble);
}

/*
 * The run ----------------------------------------------------------------------------------------
 */

/* A thread may be kept from its CPU for as long as others like: a signal ends the waiting for it. */
static void start_workers(struct run *run)
{
	pthread_barrier_init(&run->go, NULL, (unsigned)run->worker_count + 1);
	for_each_worker(worker, run)
		worker_start(worker);
	while (atomic_load(&run->workers_ready) < run->worker_count && !atomic_load(&run->stop))
		signals_await(mono_ns() + READY_APART_NS);
}

static void release_workers(struct run *run)
{
	machine_read(run, &run->at_start);
	run->at_begin = run->at_start;
	pthread_barrier_wait(&run->go);
	run_begin_at_start(run);
}

static void begin_recording(struct run *run)
{
	record_open(run);
	samples_open(run);
	run_announce(run);
	record_head(run);
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The next instant of a grid that is still to come. */
static int64_t next_after(int64_t instant_ns, int64_t period_ns)
{
	return instant_ns + (int64_t)(fe_periods_missed(instant_ns, mono_ns(), period_ns) + 1) * period_ns;
}

static void report_until_end(struct run *run)
{
	int64_t end_ns = run->settings->duration_ns ? run->start_ns + run->settings->duration_ns : INT64_MAX;
	int64_t live_ns = live_period_ns(run);
	int64_t next_interval_ns = run->start_ns + run->settings->report_ns;
	int64_t next_live_ns = live_ns ? run->start_ns + live_ns : INT64_MAX;
	int64_t next_samples_ns = run->samples ? run->start_ns + samples_every_ns(run) : INT64_MAX;
	timer_t watchdog = watchdog_start();

	while (!atomic_load(&run->stop) && atomic_load(&run->workers_done) < run->worker_count) {
		int64_t until_ns = earliest(earliest(end_ns, next_samples_ns), earliest(next_interval_ns, next_live_ns));
		bool reached;

		watchdog_feed(watchdog, until_ns - mono_ns());
		signals_await(until_ns);
		reached = mono_ns() >= end_ns;
		if (reached)
			run_stop(run, OUTCOME_COMPLETED);
		if (!reached && mono_ns() >= next_interval_ns) {
			record_interval(run);
			next_interval_ns = next_after(next_interval_ns, run->settings->report_ns);
		}
		if (!reached && mono_ns() >= next_live_ns) {
			live_draw(run);
			next_live_ns = next_after(next_live_ns, live_ns);
		}
		if (mono_ns() >= next_samples_ns) {
			samples_drain(run);
			next_samples_ns = next_after(next_samples_ns, samples_every_ns(run));
		}
	}
	timer_delete(watchdog);
}

static bool all_done(const struct run *run)
{
	return atomic_load(&run->workers_done) == run->worker_count;
}

static void stop_workers(struct run *run)
{
	atomic_store(&run->stop, true);
	for (int tries = 0; !all_done(run) && tries < STOP_TRIES; tries++) {
		for_each_worker(worker, run)
			worker_kick(worker);
		signals_await(mono_ns() + STOP_APART_NS);
	}
	for_each_worker(worker, run)
		if (!atomic_load(&worker->done))
			run_fail(run, "thread %s on CPU %d did not stop in time", worker->spec.name, worker->spec.cpu);
}

static int exit_status(const struct run *run)
{
	static const int statuses[] = {
		[OUTCOME_COMPLETED] = STATUS_DONE,
		[OUTCOME_FAILED] = STATUS_FAILED,
		[OUTCOME_NOT_APPLICABLE] = STATUS_NOT_APPLICABLE,
	};

	return run->outcome == OUTCOME_ABORTED ? STATUS_SIGNAL + run->signal : statuses[run->outcome];
}

/* One line, on a terminal or pipe that may be as stuck as the others. */
static void say_why(const struct run *run)
{
	bool also = run->outcome == OUTCOME_ABORTED && *run->trouble;
	char text[3 * REASON_SIZE];
	int error, size;

	size = snprintf(text, sizeof(text), "fastenough-probe: %s: %s%s%s\n", outcome_names[run->outcome], run->reason,
			also ? "; " : "", also ? run->trouble : "");
	output_write(STDERR_FILENO, text, (size_t)size, &error);
}

static int conclude(struct run *run)
{
	record_end(run);
	summary_print(run);
	if (run->outcome != OUTCOME_COMPLETED)
		say_why(run);
	/* Threads that did not stop must not outlive this either. */
	quick_exit(exit_status(run));
}

static void measure(struct run *run)
{
	start_workers(run);
	if (atomic_load(&run->stop))
		return;
	settings_ask(run);
	settings_verify(run);
	machine_open(run);
	settings_remember(run);
	begin_recording(run);
	release_workers(run);
	run_await_start(run);
	report_until_end(run);
	stop_workers(run);
	samples_close(run);
	settings_compare(run);
	record_interval(run);
}

static void skip(struct run *run)
{
	machine_open(run);
	begin_recording(run);
	run->start_ns = run->announced_ns;
	machine_read(run, &run->at_start);
	run->at_begin = run->at_start;
}

int run_execute(struct run *run)
{
	signals_prepare(run);
	if (run->outcome == OUTCOME_NOT_APPLICABLE) {
		skip(run);
	} else {
		cost_measure(run);
		measure(run);
	}
	return conclude(run);
}
