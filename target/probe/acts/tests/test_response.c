/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edges from before the run are followed and not counted; those of the run are. */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "gpio.h"

extern const struct probe response_probe;

#define START_NS (50 * NS_PER_MS)

struct gpio_options gpio_options = {.in = 0, .out = 1};
const char *const gpio_way_names[] = {"auto", NULL};

/* A machine of one input and one output, and a run on it. */
static struct {
	const struct gpio_edge *edges; /* pending ones */
	int count;
	bool in, out, pending;
	const struct gpio_way *way;
	struct series *series;
	struct worker_spec worker;
} machine;

bool gpio_queue_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	(void)line;
	errno = EINTR;
	if (!machine.count)
		return false;
	machine.count--;
	*edge = *machine.edges++;
	return true;
}

bool gpio_queue_write(struct gpio_line *line, bool high)
{
	(void)line;
	machine.out = high;
	return true;
}

bool gpio_level_wait_edge(struct gpio_line *line, struct gpio_edge *edge)
{
	(void)line;
	errno = EINTR;
	if (!machine.pending)
		return false;
	machine.pending = false;
	*edge = (struct gpio_edge){.at_mono_ns = mono_ns(), .high = machine.in};
	return true;
}

bool gpio_level_write(struct gpio_line *line, bool high)
{
	return gpio_queue_write(line, high);
}

static bool read_level(struct gpio_line *line, bool *high)
{
	(void)line;
	*high = machine.in;
	machine.pending = false;
	return true;
}

static const struct gpio_way queue = {.name = "queue", .series = "response", .stamped = true, .read = read_level};
static const struct gpio_way level = {.name = "level", .series = "answer", .read = read_level};

const struct gpio_way *gpio_open(struct run *run, struct gpio_chip *chip, int *number)
{
	(void)run;
	(void)chip;
	*number = machine.way == &level;
	return machine.way;
}

struct gpio_line gpio_line(const struct gpio_chip *chip, const char *option, int64_t offset)
{
	(void)option;
	return (struct gpio_line){.chip = chip, .offset = (unsigned)offset};
}

void gpio_request_input(const struct gpio_way *way, struct gpio_line *line)
{
	(void)way;
	(void)line;
}

void gpio_request_output(const struct gpio_way *way, struct gpio_line *line, bool high)
{
	(void)way;
	gpio_queue_write(line, high);
}

void *run_allocate(struct run *run, size_t size)
{
	(void)run;
	return calloc(1, size);
}

struct series *run_add_series(struct run *run, const struct series_spec *spec)
{
	(void)run;
	return machine.series = series_new(0, spec, 0);
}

struct worker *run_add_worker(struct run *run, const struct worker_spec *spec)
{
	(void)run;
	machine.worker = *spec;
	return NULL;
}

int run_cpu(const struct run *run, int index)
{
	(void)run;
	return index;
}

void run_parameter_int(struct run *run, const char *name, int64_t value)
{
	(void)run;
	(void)name;
	(void)value;
}

struct run *worker_run(const struct worker *self)
{
	(void)self;
	return NULL;
}

int64_t run_start_ns(const struct run *run)
{
	(void)run;
	return START_NS;
}

bool run_continues(struct worker *self)
{
	(void)self;
	return machine.count || machine.pending;
}

void run_fail(struct run *run, const char *format, ...)
{
	(void)run;
	(void)format;
	check(!"the run failed");
}

void bad_input(const char *format, ...)
{
	(void)format;
	abort();
}

struct answers {
	uint64_t stored, lost, missed;
};

/* Edges that come between the request of the lines and the end of the run. */
static struct answers respond(const struct gpio_way *way, const struct gpio_edge *edges, int count, bool high)
{
	const struct epoch *epoch;
	struct answers answers;

	machine.way = way;
	machine.in = false;
	response_probe.setup(NULL);
	machine.in = high;
	machine.edges = edges;
	machine.count = count;
	machine.pending = way == &level;
	machine.worker.function(NULL, machine.worker.argument);
	check(machine.out == high);
	epoch = &machine.series->epochs[0];
	answers = (struct answers){epoch->stats.count, epoch->lost, epoch->missed};
	series_free(machine.series);
	free(machine.worker.argument);
	return answers;
}

static void edges_from_before_the_run(void)
{
	static const struct gpio_edge edges[] = {
		{.at_mono_ns = START_NS - 3, .high = true},
		{.at_mono_ns = START_NS - 2, .high = false, .dropped = 4},
		{.at_mono_ns = START_NS - 1, .high = true},
		{.at_mono_ns = START_NS, .high = false},
		{.at_mono_ns = START_NS + 1, .high = true, .dropped = 2},
		{.at_mono_ns = START_NS + 2, .high = true},
	};
	struct answers answers = respond(&queue, edges, 6, true);

	check(answers.stored == 2 && answers.lost == 2 && answers.missed == 1);
}

static void a_pending_edge_without_time_stamp(void)
{
	struct answers answers = respond(&level, NULL, 0, true);

	check(answers.stored == 0 && answers.lost == 0 && answers.missed == 0);
}

int main(void)
{
	edges_from_before_the_run();
	a_pending_edge_without_time_stamp();
	return failures != 0;
}
