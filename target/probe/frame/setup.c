/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions by which a probe's setup() describes its run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "run.h"

#define STACK_ROOM (64 * 1024)

void run_name(struct run *run)
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

/* A locked stack cannot grow where no more memory may be locked: it is grown before, to more than the reporter needs. */
static void grow_stack(void)
{
	volatile char room[STACK_ROOM];

	for (size_t at = 0; at < sizeof(room); at += 1024)
		room[at] = 0;
}

/* All that exists so far: code and data.  What workers touch of what comes later is locked piece by piece;
 * the reporter's own memory need not be. */
static void lock_program(struct run *run)
{
	grow_stack();
	if (run->settings->lock_memory && mlockall(MCL_CURRENT))
		run->lock_error = errno;
}

void run_lock(struct run *run, const void *memory, size_t size)
{
	if (run->settings->lock_memory && mlock(memory, size) && !run->lock_error)
		run->lock_error = errno;
}

static struct settings_read settings_room(int most)
{
	struct settings_read room = {.list = calloc((size_t)most, sizeof(struct setting)), .most = most};

	if (!room.list)
		abort();
	return room;
}

/* File descriptor of the trace's switch; -1 if there is none. */
static int open_trace(const struct settings *settings)
{
	int fd = settings->trace_switch ? open(settings->trace_switch, O_WRONLY | O_CLOEXEC) : -1;

	if (settings->trace_switch && !settings->stop_at_threshold)
		bad_input("--trace-switch needs --breaktrace; add it, or omit --trace-switch");
	if (settings->trace_switch && fd < 0)
		bad_input("--trace-switch %s: %s; name a file that may be written", settings->trace_switch, strerror(errno));
	return fd;
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
	run->settings_before = settings_room(MAX_SETTINGS);
	run->settings_after = settings_room(3 * MAX_SETTINGS); /* the same, and what happened to threads */
	run->dma_latency_fd = -1;
	run->trace_fd = open_trace(settings);
	run->record_fd = -1;
	run->samples_fd = -1;
	run->histogram_fd = -1;
	run_name(run);
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
	if (!entry->series || (run->settings->ring && !series_prefault(entry->series)))
		bad_input("no memory for a histogram; free some or measure fewer CPUs");
	if (run->settings->lock_memory && !run->lock_error)
		run->lock_error = series_lock(entry->series);
	if (run->settings->limit_ns && spec->role != SERIES_THROUGHPUT)
		entry->series->limit_ns = (uint64_t)run->settings->limit_ns;
	if (run->settings->warm_up_ns)
		series_warm_up(entry->series);
	if (run->settings->stop_at_threshold) {
		entry->series->stop_at_threshold = &run->stop;
		entry->series->trace_fd = run->trace_fd;
	}
	*run->series_end = entry;
	run->series_end = &entry->next;
	return entry->series;
}

void run_record_samples(struct run *run, const char *path)
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
