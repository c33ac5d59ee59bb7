/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timerlat: latencies by the kernel's tracer of that name, which has a thread on each CPU: from the expiry of a timer to its
 * interrupt, and to the thread.  The tracer numbers its samples, so overwritten ones are counted.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracefs.h"

#define LOOK_MS 100
#define LINE_SIZE 512
#define TEXT_SIZE (1 << 16)

enum { INTERRUPT, THREAD, STATIONS };

struct place {
	struct series *series[STATIONS];
	unsigned next[STATIONS]; /* number of the sample that comes next; 0: none has come yet */
};

static struct {
	struct place *places;
	int fd;
	char *text; /* TEXT_SIZE */
	size_t used;
} timerlat;

static const struct option_spec timerlat_options[] = {TRACEFS_OPTION, {0}};

/* Stores a sample; missing numbers are samples that were overwritten before they could be read. */
static void take(struct place *place, int station, unsigned number, int64_t value_ns)
{
	unsigned *next = &place->next[station];

	if (*next && number > *next)
		series_add_lost(place->series[station], number - *next);
	if (*next && number < *next)
		return;
	*next = number + 1;
	series_add(place->series[station], value_ns);
}

static void take_line(struct run *run, const char *line)
{
	const char *text = strstr(line, ": #"), *cpu_text = strchr(line, '[');
	unsigned number;
	long long value_ns;
	char context[8];
	int cpu, place;

	if (!text || !cpu_text || sscanf(cpu_text, "[%d]", &cpu) != 1)
		return;
	if (sscanf(text, ": #%u context %7s timer_latency %lld ns", &number, context, &value_ns) != 3)
		return;
	place = tracefs_place(run, cpu);
	if (place >= 0)
		take(&timerlat.places[place], strcmp(context, "irq") ? THREAD : INTERRUPT, number, value_ns);
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
	ssize_t got = read(timerlat.fd, timerlat.text + timerlat.used, TEXT_SIZE - timerlat.used);

	if (got > 0)
		timerlat.used += (size_t)got;
	return got > 0;
}

static void reader(struct worker *self, void *unused)
{
	struct pollfd readable = {.fd = timerlat.fd, .events = POLLIN};

	(void)unused;
	while (read_some() && run_is_active(self)) /* from before the run */
		timerlat.used = 0;
	timerlat.used = 0;
	while (run_continues(self)) {
		poll(&readable, 1, LOOK_MS);
		while (read_some() && run_is_active(self))
			take_text(worker_run(self));
	}
}

static void timerlat_setup(struct run *run)
{
	const struct cpu_list *cpus = &run_settings(run)->cpus;

	timerlat.fd = tracefs_open(run, "trace_pipe");
	if (timerlat.fd < 0)
		return;
	timerlat.text = run_allocate(run, TEXT_SIZE);
	timerlat.places = run_allocate(run, (size_t)cpus->count * sizeof(*timerlat.places));
	for (int i = 0; i < cpus->count; i++) {
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
