/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spin: time that interrupts, system management and hypervisors take from a thread that never yields.
 *
 * A loop reads the clock; the time between two readings, less the shortest iteration of the loop, was taken away.  The
 * thread spins for `width` of each window and sleeps for the rest.  With a real-time policy neighbouring CPUs alternate, so
 * that never all CPUs are busy at once.
 */
#include <errno.h>

#include "frame.h"
#include "sleep.h"

/* Longer intervals would overflow the 32-bit buckets. */
#define REPORT_MOST_NS (60 * NS_PER_S)
#define FLOOR_NS (2 * NS_PER_MS)

static struct {
	int64_t width_ns, window_ns;
} chosen = {10 * NS_PER_MS, 20 * NS_PER_MS};

static const struct option_spec spin_options[] = {
	{"width", 0, OPTION_DURATION, &chosen.width_ns, .low = NS_PER_MS, .high = NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .help = "time to spin in each window (10ms)"},
	{"window", 0, OPTION_DURATION, &chosen.window_ns, .low = 2 * NS_PER_MS, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .help = "time from the start of one spin to the next (20ms)"},
	{0},
};

struct spin_act {
	struct series *gap;
	int64_t offset_ns, floor_ns;
};

/* Spins until an instant. */
static void spin_until(struct series *gap, int64_t until_ns, int64_t floor_ns)
{
	int64_t last_ns = mono_ns();

	while (last_ns < until_ns) {
		int64_t now_ns = mono_ns();

		series_add(gap, now_ns - last_ns - floor_ns);
		last_ns = now_ns;
	}
}

static void spin_worker(struct worker *self, void *argument)
{
	const struct spin_act *act = argument;
	int64_t begin_ns = run_start_ns(worker_run(self)) + act->offset_ns;

	while (run_continues(self)) {
		if (sleep_until(begin_ns) == EINTR)
			continue;
		spin_until(act->gap, begin_ns + chosen.width_ns, act->floor_ns);
		begin_ns += chosen.window_ns;
	}
}

/* Measures the shortest iteration of the measuring loop itself. */
static int64_t measure_floor_ns(void)
{
	struct series *scratch = series_new(0, &(struct series_spec){.silent = true}, 0);
	int64_t floor_ns;

	if (!scratch)
		bad_input("no memory for a histogram; free some");
	spin_until(scratch, mono_ns() + FLOOR_NS, 0);
	floor_ns = scratch->epochs[0].stats.min;
	series_free(scratch);
	return floor_ns;
}

static void check(const struct settings *settings)
{
	if (chosen.width_ns > chosen.window_ns)
		bad_input("--width must not exceed --window");
	if (settings->policy != POLICY_OTHER && chosen.width_ns > chosen.window_ns / 2)
		bad_input("a real-time policy may spin for half of each window at most; choose a shorter --width or --policy other");
	if (settings->policy == POLICY_DEADLINE)
		bad_input("spin supports fifo, rr and other; a deadline task is stopped when its runtime is used up");
	if (settings->report_ns > REPORT_MOST_NS)
		bad_input("spin takes too many readings for an interval of more than a minute; choose a shorter --report");
}

static void add_thread(struct run *run, int index, int64_t floor_ns)
{
	struct spin_act *act = run_allocate(run, sizeof(*act));
	int cpu = run_cpu(run, index);

	act->floor_ns = floor_ns;
	act->offset_ns = index % 2 ? chosen.window_ns / 2 : 0;
	act->gap = run_add_series(run, &(struct series_spec){
		.name = "gap", .cpu = cpu, .from = "a reading of the clock",
		.to = "the next reading, less the shortest turn of the loop (floor_ns)"});
	run_add_worker(run, &(struct worker_spec){.name = "spin", .cpu = cpu, .function = spin_worker, .argument = act});
}

static void spin_setup(struct run *run)
{
	int64_t floor_ns;

	check(run_settings(run));
	floor_ns = measure_floor_ns();
	run_parameter_int(run, "width_ns", chosen.width_ns);
	run_parameter_int(run, "window_ns", chosen.window_ns);
	run_parameter_int(run, "floor_ns", floor_ns);
	for (int index = 0; index < run_threads(run); index++)
		add_thread(run, index, floor_ns);
}

const struct probe spin_probe = {
	.name = "spin",
	.summary = "time taken from a thread that never yields its CPU",
	.options = spin_options,
	.setup = spin_setup,
};
