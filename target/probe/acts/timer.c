/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timer: wake-up latency of a thread that sleeps until a due time. */
#include <errno.h>
#include <string.h>

#include "dither.h"
#include "frame.h"
#include "grid.h"
#include "sleep.h"
#include "units.h"

static const char *const clock_names[] = {"monotonic", "realtime", NULL};
static const clockid_t clock_ids[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};

#define NAME_OF(NAME, TEXT, ...) TEXT,
static const char *const method_names[] = {SLEEP_METHODS(NAME_OF) NULL};

static struct {
	int method, clock;
	int64_t offset_ns, distance_ns;
	int64_t second_ns; /* -1: wherever the grid lies */
	int64_t dither_ns; /* 0: due times stay on the grid */
	int64_t seed;      /* of how they move */
	const char *samples;
} chosen = {.second_ns = -1, .seed = 1};

static const struct option_spec timer_options[] = {
	{"method", 0, OPTION_CHOICE, &chosen.method, .choices = method_names, .help = SLEEP_METHODS_HELP},
	SLEEP_SHORTCUTS(&chosen.method),
	{"clock", 'c', OPTION_CHOICE, &chosen.clock, .choices = clock_names, .help = "monotonic (default) or realtime"},
	{"offset", 0, OPTION_DURATION, &chosen.offset_ns, .low = 0, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .help = "start each thread this much after the previous one (0)"},
	{"aligned", 'A', OPTION_DURATION, &chosen.offset_ns, .low = 0, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .optional = "0", .help = "same as --offset: all threads are on one grid anyway"},
	{"secaligned", 0, OPTION_DURATION, &chosen.second_ns, .low = 0, .high = NS_PER_S - 1, .plain = NS_PER_US,
	 .plain_name = "us", .optional = "0", .help = "align the grid with the full seconds of the clock, or this much after them"},
	{"distance", 'd', OPTION_DURATION, &chosen.distance_ns, .low = 0, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .help = "make each thread's interval this much longer than the previous one's (0)"},
	{"dither", 0, OPTION_DURATION, &chosen.dither_ns, .low = 0, .high = DITHER_MOST_NS, .plain = NS_PER_US,
	 .plain_name = "us", .help = "move each due time by up to this, at random; 1 to 50 % of the interval (0)"},
	{"seed", 0, OPTION_INTEGER, &chosen.seed, .low = 0, .high = INT64_MAX, .help = "of the sequence of --dither (1)"},
	{"samples", 0, OPTION_TEXT, &chosen.samples, .help = "write every sample, with its due time, to this new file"},
	{0},
};

struct timer_act {
	struct sleep sleep;
	const struct way *way;
	int64_t offset_ns;
	struct dither dither; /* alike in all threads: those that are due together still are */
	struct wakeups wakeups;
	struct samples *samples; /* of each wake-up, where they are kept */
};

/* One method, and its loops. */
struct way {
	struct sleep_method method;
	int (*begin)(struct sleep *sleep);
	int (*act)(struct worker *self, struct timer_act *act);
	int (*act_and_keep)(struct worker *self, struct timer_act *act); /* every sample */
	void (*finish)(struct sleep *sleep);
};

/* Moves the grid by less than a period, so that it is aligned with the full seconds of the clock, plus the offset. */
static int64_t on_seconds(int64_t due_ns, int64_t period_ns)
{
	int64_t behind_ns = (due_ns - chosen.second_ns) % period_ns;

	return due_ns + (period_ns - behind_ns) % period_ns;
}

static void lay_grid(struct timer_act *act, struct run *run)
{
	int64_t to_clock_ns = act->sleep.clock == CLOCK_REALTIME ? wall_offset_ns() : 0;

	act->sleep.grid = grid_begin(run, act->offset_ns, act->sleep.grid.period_ns);
	act->sleep.grid.due_ns += to_clock_ns;
	if (chosen.second_ns >= 0)
		act->sleep.grid.due_ns = on_seconds(act->sleep.grid.due_ns - act->offset_ns, act->sleep.grid.period_ns) +
					 act->offset_ns;
	act->sleep.begin_ns = act->sleep.grid.due_ns - act->sleep.grid.period_ns;
}

static bool is_late(const struct timer_act *act)
{
	return clock_ns(act->sleep.clock) >= act->sleep.grid.due_ns;
}

/*
 * A thread that got no CPU at the start or at the end of the run does not sleep until due times in the past: it acts at
 * once, and the periods before are missed.  This applies to all methods: none counts periods before its setup.
 */
static void act_late(struct timer_act *act)
{
	int64_t begin_ns = clock_ns(act->sleep.clock);

	if (act->samples)
		samples_add(act->samples, act->sleep.grid.due_ns, begin_ns - act->sleep.grid.due_ns);
	grid_account(&act->sleep.grid, &act->wakeups, begin_ns);
	act->sleep.begin_ns = begin_ns;
}

/*
 * Compiled for each method with its own functions, with and without samples: the loop has no branches for them and no calls
 * by pointer.  A wake-up before the due time is no act, so it does not count for --loops.
 */
static inline __attribute__((always_inline)) int act_on(struct worker *self, struct timer_act *act,
							int (*const wait)(struct sleep *sleep),
							uint64_t (*const missed)(const struct sleep *sleep, int64_t begin_ns),
							const bool keep)
{
	int error = 0;

	while (!error && run_continues(self)) {
		int64_t begin_ns;

		do {
			error = wait(&act->sleep);
		} while (error == EINTR && run_is_active(self));
		begin_ns = clock_ns(act->sleep.clock);
		if (error)
			break;
		grid_fetch(&act->wakeups);
		if (keep) {
			samples_fetch(act->samples);
			samples_add(act->samples, act->sleep.grid.due_ns, begin_ns - act->sleep.grid.due_ns);
		}
		grid_account_missed(&act->sleep.grid, &act->wakeups, begin_ns, missed(&act->sleep, begin_ns));
		act->sleep.grid.due_ns += dither_move_ns(&act->dither, act->sleep.grid.period_ns);
		act->sleep.begin_ns = begin_ns;
	}
	return error;
}

#define LOOPS_OF(NAME, ...)                                                                                        \
	static int act_##NAME(struct worker *self, struct timer_act *act)                                          \
	{                                                                                                          \
		return act_on(self, act, sleep_wait_##NAME, sleep_missed_##NAME, false);                           \
	}                                                                                                          \
	static int act_and_keep_##NAME(struct worker *self, struct timer_act *act)                                 \
	{                                                                                                          \
		return act_on(self, act, sleep_wait_##NAME, sleep_missed_##NAME, true);                            \
	}
SLEEP_METHODS(LOOPS_OF)

#define WAY_OF(NAME, TEXT, ...) {{TEXT, __VA_ARGS__}, sleep_begin_##NAME, act_##NAME, act_and_keep_##NAME, sleep_finish_##NAME},
static const struct way ways[] = {SLEEP_METHODS(WAY_OF)};

static void timer_worker(struct worker *self, void *argument)
{
	struct timer_act *act = argument;
	int error;

	lay_grid(act, worker_run(self));
	if (is_late(act) && run_continues(self))
		act_late(act);
	error = act->way->begin(&act->sleep);
	if (!error)
		error = act->samples ? act->way->act_and_keep(self, act) : act->way->act(self, act);
	if ((!error || error == EINTR) && run_ended_early(self) && is_late(act))
		act_late(act);
	if (error && error != EINTR)
		run_fail(worker_run(self), "%s failed: %s", act->way->method.name, strerror(error));
	act->way->finish(&act->sleep);
}

static void check_dither(const struct settings *settings, const struct sleep_method *method)
{
	int64_t low_ns = settings->interval_ns / 100, high_ns = settings->interval_ns / 2;
	char low[32], high[32];

	if (!method->any_due)
		bad_input("--method %s does not sleep until a due time of the thread's own; omit --dither", method->name);
	if (settings->policy == POLICY_DEADLINE)
		bad_input("--policy deadline reserves time for one period; omit --dither");
	if (chosen.dither_ns < low_ns || chosen.dither_ns > high_ns)
		bad_input("--dither is not 1 to 50 %% of the --interval; choose %s to %s", format_most(low, sizeof(low), low_ns),
			  format_least(high, sizeof(high), high_ns));
}

static void check(struct run *run, const struct sleep_method *method)
{
	if (chosen.dither_ns)
		check_dither(run_settings(run), method);
	if (method->one_per_process && run_threads(run) > 1)
		bad_input("--method %s: a process has only one of these; measure one CPU, as with --affinity %d", method->name,
			  run_cpu(run, 0));
	if (method->monotonic_only && clock_ids[chosen.clock] != CLOCK_MONOTONIC)
		bad_input("--method %s supports only the monotonic clock; omit --clock", method->name);
	if (method->relative && chosen.offset_ns)
		bad_input("--method %s sleeps for a time, not until a time; omit --offset", method->name);
	if (method->relative && chosen.second_ns >= 0)
		bad_input("--method %s sleeps for a time, not until a time; omit --secaligned", method->name);
	if (chosen.samples && run_settings(run)->warm_up_ns)
		bad_input("--samples writes every sample; omit --warm-up and ignore the first samples instead");
	if (method->whole_microseconds && run_settings(run)->interval_ns % NS_PER_US)
		bad_input("--method %s supports only whole microseconds; choose such an --interval", method->name);
}

static const char *due_event(const struct sleep_method *method)
{
	if (method->relative)
		return "due time: begin of the sleep + interval";
	return chosen.dither_ns ? "due time, one in each interval of a grid, moved within it at random" :
				  "due time, on a grid of one interval";
}

static void add_thread(struct run *run, const struct way *way, int index)
{
	const struct settings *settings = run_settings(run);
	struct timer_act *act = run_allocate(run, sizeof(*act));
	struct series_spec spec = {
		.name = "wakeup",
		.from = due_event(&way->method),
		.to = "first reading of the clock after the sleep",
		.clock = clock_names[chosen.clock],
		.relative = way->method.relative,
		.any_cpu = settings->policy == POLICY_DEADLINE,
		.cpu = run_cpu(run, index),
		.period_ns = settings->interval_ns + index * chosen.distance_ns,
	};

	if (chosen.second_ns >= 0 && NS_PER_S % spec.period_ns)
		bad_input("--secaligned needs intervals that divide a second; choose another --interval, or omit --distance");
	act->way = way;
	act->sleep = (struct sleep){.clock = clock_ids[chosen.clock], .grid.period_ns = spec.period_ns, .fd = -1};
	act->offset_ns = index * chosen.offset_ns;
	act->dither = (struct dither){.width_ns = chosen.dither_ns, .state = (uint64_t)chosen.seed};
	act->wakeups = grid_add_series(run, &spec);
	if (chosen.samples)
		act->samples = run_add_samples(run, act->wakeups.uncorrected);
	run_add_worker(run, &(struct worker_spec){.name = "timer", .cpu = spec.cpu, .period_ns = spec.period_ns,
						  .function = timer_worker, .argument = act});
}

static void timer_setup(struct run *run)
{
	const struct way *way = &ways[chosen.method];

	check(run, &way->method);
	run_parameter_text(run, "method", way->method.name);
	run_parameter_text(run, "clock", clock_names[chosen.clock]);
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	run_parameter_int(run, "offset_ns", chosen.offset_ns);
	run_parameter_int(run, "distance_ns", chosen.distance_ns);
	if (chosen.second_ns >= 0)
		run_parameter_int(run, "second_offset_ns", chosen.second_ns);
	if (chosen.dither_ns) {
		run_parameter_int(run, "dither_ns", chosen.dither_ns);
		run_parameter_int(run, "seed", chosen.seed);
	}
	if (chosen.samples)
		run_record_samples(run, chosen.samples);
	for (int index = 0; index < run_threads(run); index++)
		add_thread(run, way, index);
}

const struct probe timer_probe = {
	.name = "timer",
	.summary = "wake-up latency of a thread that sleeps until a due time",
	.options = timer_options,
	.setup = timer_setup,
};
