/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakeups: scheduling latency of all real-time tasks, from runnable to running, in whole us, from the kernel's histograms
 * (hist triggers).
 *
 * The kernel's counts are never reset, so none is lost: an interval is their growth since the last reading.  The order of
 * its values is unknown.
 */
#include <stdio.h>
#include <unistd.h>

#include "tracefs.h"

#define HISTOGRAM "events/synthetic/fastenough_wakeup/hist"
#define WAKINGS "events/sched/sched_waking/hist"
#define SWITCHES "events/sched/sched_switch/hist"
#define LOOK_US 250000
#define ENTRIES_MOST (1u << 17) /* the most that one of the kernel's histograms holds */
#define TABLE_BITS 18
#define TABLE_SIZE (1u << TABLE_BITS)
#define LINE_SIZE 512

_Static_assert(TABLE_SIZE >= 2 * ENTRIES_MOST, "searches of the table would be long");

struct known {
	uint64_t key; /* CPU and value, and 1; 0: free */
	uint64_t count;
};

static struct {
	struct series **series;
	struct known *known;
	unsigned entries; /* of known */
	bool counts;      /* growth is of the run */
	uint64_t dropped; /* by the histogram that was read last */
	bool complete;    /* it was read up to the number of dropped wake-ups, at its end */
	const char *comm;
} wakeups;

static const struct option_spec wakeups_options[] = {
	TRACEFS_OPTION,
	{"comm", 0, OPTION_TEXT, &wakeups.comm, .help = "tasks whose name begins with this; the bench makes the kernel count only those"},
	{0},
};

/* The entry of a key, a new one if need be; NULL where the table is full. */
static struct known *find(uint64_t key)
{
	uint64_t place = key * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS);
	struct known *known;

	while (wakeups.known[place % TABLE_SIZE].key && wakeups.known[place % TABLE_SIZE].key != key)
		place++;
	known = &wakeups.known[place % TABLE_SIZE];
	if (!known->key && wakeups.entries++ >= ENTRIES_MOST)
		return NULL;
	known->key = key;
	return known;
}

static void add(struct series *series, int64_t value_ns)
{
	series_add(series, value_ns);
	series_gap(series, series_enter(series));
	series_leave(series);
}

/* Adds the growth of an entry. */
static void grow(struct run *run, int cpu, uint64_t value_us, uint64_t count)
{
	struct known *known = find(((uint64_t)cpu << 48 | value_us) + 1);
	int place = tracefs_place(run, cpu);

	if (!known) {
		run_fail(run, "%s/%s has more than %u entries, the most that a kernel's histogram holds", tracefs_instance, HISTOGRAM,
			 ENTRIES_MOST);
		return;
	}
	for (uint64_t i = known->count; wakeups.counts && place >= 0 && i < count; i++)
		add(wakeups.series[place], (int64_t)value_us * NS_PER_US);
	known->count = count;
}

static void take_line(struct run *run, const char *line)
{
	unsigned long long value_us, count, dropped;
	int cpu;

	if (sscanf(line, " Dropped: %llu", &dropped) == 1) {
		wakeups.dropped += dropped;
		wakeups.complete = true;
	}
	if (sscanf(line, "{ common_cpu: %d, lat: %llu } hitcount: %llu", &cpu, &value_us, &count) == 3)
		grow(run, cpu, value_us, count);
}

/* Takes the lines of a histogram, whatever its length; a run fails if its end is missing. */
static void read_histogram(struct run *run, const char *name)
{
	int fd = tracefs_open(run, name);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_SIZE];

	wakeups.dropped = 0;
	wakeups.complete = false;
	while (file && fgets(line, sizeof(line), file))
		take_line(run, line);
	if (!wakeups.complete)
		run_fail(run, "%s/%s cannot be read: wake-ups may be missing", tracefs_instance, name);
	if (file)
		fclose(file);
}

/* Fails the run if the kernel's histograms were full: the maximum may be among the missing wake-ups. */
static void check_room(struct run *run)
{
	uint64_t missing = wakeups.dropped;

	read_histogram(run, WAKINGS);
	missing += wakeups.dropped;
	read_histogram(run, SWITCHES);
	missing += wakeups.dropped;
	if (missing)
		run_fail(run, "the kernel's histograms were full: %llu wake-ups are missing", (unsigned long long)missing);
}

/* The last reading begins after the end of the run. */
static void reader(struct worker *self, void *unused)
{
	struct run *run = worker_run(self);

	(void)unused;
	read_histogram(run, HISTOGRAM);
	wakeups.counts = wakeups.complete;
	while (run_continues(self)) {
		read_histogram(run, HISTOGRAM);
		usleep(LOOK_US);
	}
	read_histogram(run, HISTOGRAM);
	check_room(run);
}

static void wakeups_setup(struct run *run)
{
	const struct cpu_list *cpus = &run_settings(run)->cpus;
	int fd = tracefs_open(run, HISTOGRAM);

	if (fd < 0)
		return;
	close(fd);
	if (wakeups.comm)
		run_parameter_text(run, "comm", wakeups.comm);
	wakeups.known = run_allocate(run, TABLE_SIZE * sizeof(*wakeups.known));
	wakeups.series = run_allocate(run, (size_t)cpus->count * sizeof(*wakeups.series));
	for (int i = 0; i < cpus->count; i++)
		wakeups.series[i] = run_add_series(run, &(struct series_spec){STATION("runnable-to-running"), .cpu = cpus->cpu[i],
			.from = "task made runnable, by whom is not known", .to = "task switched in"});
	run_add_worker(run, &(struct worker_spec){.name = "reader", .cpu = -1, .ordinary = true, .function = reader});
}

const struct probe wakeups_probe = {
	.name = "wakeups",
	.summary = "scheduling latency of real-time tasks, from the kernel's own histograms",
	.watches = true,
	.options = wakeups_options,
	.setup = wakeups_setup,
};
