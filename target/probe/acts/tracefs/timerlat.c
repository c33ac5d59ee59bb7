/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timerlat: latencies by the kernel's tracer of that name, which has a thread on each CPU: from the expiry of a timer to its
 * interrupt, and to the thread.  The tracer numbers its samples, so overwritten ones are counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracefs.h"

#define LOOK_MS 100
#define LINE_SIZE 512
#define TEXT_SIZE (1 << 16)
#define DRAIN_NS (2 * NS_PER_S) /* after the end of a run */

enum { INTERRUPT, THREAD, STATIONS };

struct place {
	struct series *series[STATIONS];
	unsigned next[STATIONS]; /* number of the sample that comes next; the first is 1 */
	bool ended[STATIONS];    /* a sample from after the run was read */
};

static struct {
	struct place *places;
	int fd;
	char *text; /* TEXT_SIZE */
	size_t used;
	int64_t end_ns; /* of the run; INT64_MAX until it is known */
} timerlat;

static const struct option_spec timerlat_options[] = {TRACEFS_OPTION, {0}};

/* Stores a sample of the run.  Missing numbers are samples that were overwritten before they could be read; those before
 * the first sample from after the run may be of the run, so they count. */
static void take(struct place *place, int station, unsigned number, bool ended, int64_t value_ns)
{
	int32_t missing = (int32_t)(number - place->next[station]);

	if (missing < 0 || place->ended[station])
		return;
	if (missing)
		series_add_lost(place->series[station], (uint64_t)missing);
	if (!ended)
		series_add(place->series[station], value_ns);
	place->ended[station] = ended;
	place->next[station] = number + 1;
}

/* A sample from before the run shows which number comes next. */
static void take_line(struct run *run, const char *line)
{
	const char *text = strstr(line, ": #"), *cpu_text = text ? memrchr(line, '[', (size_t)(text - line)) : NULL;
	long long s, us, value_ns, at_ns;
	unsigned number;
	char context[8];
	int cpu, place, station;

	if (!cpu_text || sscanf(cpu_text, "[%d] %*s %lld.%lld: #%u context %7s timer_latency %lld ns", &cpu, &s, &us, &number,
				context, &value_ns) != 6)
		return;
	place = tracefs_place(run, cpu);
	if (place < 0)
		return;
	station = strcmp(context, "irq") ? THREAD : INTERRUPT;
	at_ns = s * NS_PER_S + us * NS_PER_US;
	if (at_ns < run_start_ns(run))
		timerlat.places[place].next[station] = number + 1;
	else
		take(&timerlat.places[place], station, number, at_ns > timerlat.end_ns, value_ns);
}

/* Parses complete lines; an incomplete one waits for its rest. */
static void take_text(struct run *run)
{
	char *line = timerlat.text, *end;

	while ((end = memchr(line, '\n', timerlat.used - (size_t)(line - timerlat.text)))) {
		*end = '\0';
		take_line(run, line);
		line = end + 1;
	}
	timerlat.used -= (size_t)(line - timerlat.text);
	if (timerlat.used > LINE_SIZE)
		timerlat.used = 0;
	memmove(timerlat.text, line, timerlat.used);
}

static bool read_some(void)
{
	ssize_t got;

	do {
		got = read(timerlat.fd, timerlat.text + timerlat.used, TEXT_SIZE - timerlat.used);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		timerlat.used += (size_t)got;
	return got > 0;
}

static bool all_ended(const struct run *run)
{
	for (int i = 0; i < run_settings(run)->cpus.count; i++)
		if (!timerlat.places[i].ended[INTERRUPT] || !timerlat.places[i].ended[THREAD])
			return false;
	return true;
}

/* Takes the samples of the run that are still in the pipe: until it is empty, or gives only later ones. */
static void drain(struct run *run)
{
	timerlat.end_ns = mono_ns();
	while (!all_ended(run) && read_some()) {
		take_text(run);
		if (mono_ns() - timerlat.end_ns > DRAIN_NS) {
			run_fail(run, "%s/trace_pipe was not read to the end of the run within %lld s: samples may be missing",
				 tracefs_instance, (long long)(DRAIN_NS / NS_PER_S));
			return;
		}
	}
}

static void reader(struct worker *self, void *unused)
{
	struct pollfd readable = {.fd = timerlat.fd, .events = POLLIN};

	(void)unused;
	while (run_continues(self)) {
		while (run_is_active(self) && read_some())
			take_text(worker_run(self));
		poll(&readable, 1, LOOK_MS);
	}
	drain(worker_run(self));
}

/* Time stamps of another clock do not show which samples are of the run. */
static bool has_monotonic_stamps(struct run *run)
{
	int fd = tracefs_open(run, "trace_clock");
	char clocks[LINE_SIZE] = "";
	bool monotonic;

	if (fd < 0)
		return false;
	monotonic = read(fd, clocks, sizeof(clocks) - 1) > 0 && strstr(clocks, "[mono]");
	close(fd);
	if (!monotonic)
		run_not_applicable(run, "the clock of %s is not mono; write mono to its trace_clock", tracefs_instance);
	return monotonic;
}

static void timerlat_setup(struct run *run)
{
	const struct cpu_list *cpus = &run_settings(run)->cpus;

	if (!has_monotonic_stamps(run))
		return;
	timerlat.fd = tracefs_open(run, "trace_pipe");
	if (timerlat.fd < 0)
		return;
	timerlat.end_ns = INT64_MAX;
	timerlat.text = run_allocate(run, TEXT_SIZE);
	timerlat.places = run_allocate(run, (size_t)cpus->count * sizeof(*timerlat.places));
	for (int i = 0; i < cpus->count; i++) {
		timerlat.places[i].next[INTERRUPT] = timerlat.places[i].next[THREAD] = 1;
		timerlat.places[i].series[INTERRUPT] = run_add_series(run, &(struct series_spec){STATION("expiry-to-interrupt"),
			.cpu = cpus->cpu[i], .from = "programmed expiry of the tracer's timer", .to = "timer interrupt"});
		timerlat.places[i].series[THREAD] = run_add_series(run, &(struct series_spec){STATION("expiry-to-running"),
			.cpu = cpus->cpu[i], .from = "programmed expiry of the tracer's timer", .to = "the tracer's thread runs"});
	}
	run_add_worker(run, &(struct worker_spec){.name = "reader", .cpu = -1, .ordinary = true, .function = reader});
}

const struct probe timerlat_probe = {
	.name = "timerlat",
	.summary = "latency measured by the kernel's own timerlat tracer",
	.watches = true,
	.options = timerlat_options,
	.setup = timerlat_setup,
};
