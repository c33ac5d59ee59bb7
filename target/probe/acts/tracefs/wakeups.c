/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wakeups: scheduling latency of all real-time tasks, from runnable to running, in whole us, from the kernel's histograms
 * (hist triggers).
 *
 * The kernel's counts are never reset, so none is lost: an interval is their growth since the last reading.  The order of
 * its values is unknown.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefs.h"

#define HISTOGRAM "events/synthetic/fastenough_wakeup/hist"
#define WAKINGS "events/sched/sched_waking/hist"
#define SWITCHES "events/sched/sched_switch/hist"
#define LOOK_US 250000
#define TABLE_BITS 18 /* twice what any of the kernel's histograms holds */
#define TABLE_SIZE (1u << TABLE_BITS)
#define TEXT_SIZE (1u << 22)

struct known {
	uint64_t key; /* CPU and value, and 1; 0: free */
	uint64_t count;
};

static struct {
	struct series **series;
	struct known *known;
	uint64_t unseen;
	char *text;
	const char *comm;
} wakeups;

static const struct option_spec wakeups_options[] = {
	TRACEFS_OPTION,
	{"comm", 0, OPTION_TEXT, &wakeups.comm, .help = "tasks whose name begins with this; the bench makes the kernel count only those"},
	{0},
};

static struct known *find(uint64_t key)
{
	uint64_t place = key * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS);

	while (wakeups.known[place % TABLE_SIZE].key && wakeups.known[place % TABLE_SIZE].key != key)
		place++;
	wakeups.known[place % TABLE_SIZE].key = key;
	return &wakeups.known[place % TABLE_SIZE];
}

static void add(struct series *series, int64_t value_ns)
{
	series_add(series, value_ns);
	series_gap(series, series_enter(series));
	series_leave(series);
}

static void take_line(const struct run *run, const char *line, bool counts)
{
	unsigned long long value_us, count, dropped;
	struct known *known;
	int cpu, place;

	if (sscanf(line, " Dropped: %llu", &dropped) == 1)
		wakeups.unseen += dropped;
	if (sscanf(line, "{ common_cpu: %d, lat: %llu } hitcount: %llu", &cpu, &value_us, &count) != 3)
		return;
	known = find(((uint64_t)cpu << 48 | value_us) + 1);
	place = tracefs_place(run, cpu);
	for (uint64_t i = known->count; counts && place >= 0 && i < count; i++)
		add(wakeups.series[place], (int64_t)value_us * NS_PER_US);
	known->count = count;
}

/* The whole of a file, NULL where it cannot be read. */
static char *read_whole(struct run *run, const char *name)
{
	int fd = tracefs_open(run, name);
	size_t used = 0;
	ssize_t got = 0;

	if (fd < 0)
		return NULL;
	while (used < TEXT_SIZE - 1 && (got = read(fd, wakeups.text + used, TEXT_SIZE - 1 - used)) > 0)
		used += (size_t)got;
	close(fd);
	wakeups.text[used] = '\0';
	if (used == TEXT_SIZE - 1)
		errno = EFBIG;
	return got < 0 || used == TEXT_SIZE - 1 ? NULL : wakeups.text;
}

static bool look(struct run *run, bool counts)
{
	char *text = read_whole(run, HISTOGRAM), *rest = text;

	if (!text)
		return false;
	wakeups.unseen = 0;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		take_line(run, line, counts);
	return true;
}

/* Wake-ups that one of the kernel's histograms had no room for. */
static uint64_t dropped_by(struct run *run, const char *name)
{
	char *text = read_whole(run, name), *dropped = text ? strstr(text, "Dropped:") : NULL;

	if (!dropped)
		run_fail(run, "%s/%s cannot be read: wake-ups may be missing", tracefs_instance, name);
	return dropped ? strtoull(dropped + strlen("Dropped:"), NULL, 10) : 0;
}

/* Fails the run if the kernel's histograms were full: the maximum may be among the missing wake-ups. */
static void check_room(struct run *run)
{
	uint64_t unseen = wakeups.unseen + dropped_by(run, WAKINGS) + dropped_by(run, SWITCHES);

	if (unseen)
		run_fail(run, "the kernel's histograms were full: %llu wake-ups are missing", (unsigned long long)unseen);
}

static void reader(struct worker *self, void *unused)
{
	struct run *run = worker_run(self);

	(void)unused;
	if (!look(run, false)) {
		run_fail(run, "%s/%s: %s", tracefs_instance, HISTOGRAM, strerror(errno));
		return;
	}
	while (run_continues(self)) {
		usleep(LOOK_US);
		if (!look(run, true))
			run_fail(run, "%s/%s: %s", tracefs_instance, HISTOGRAM, strerror(errno));
	}
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
	wakeups.text = run_allocate(run, TEXT_SIZE);
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
