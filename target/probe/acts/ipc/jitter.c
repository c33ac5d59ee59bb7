/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitter: wake-up latency of a periodic thread, beside a real-time thread that sends data to a normal process through shared
 * memory until half of the run is over.
 *
 * As in the source, the periodic thread may be ordinary, so that the traffic preempts it.  As a real-time thread its
 * priority is one above that of the traffic, and only memory traffic disturbs it.
 */
#include "grid.h"
#include "waiting.h"
#include "placement.h"
#include "shared.h"
#include "watch.h"

#define WORK_NS (2 * NS_PER_MS)

enum { TASK_REAL_TIME, TASK_ORDINARY };
static const char *const tasks[] = {"real-time", "ordinary", NULL};

static struct {
	int task, placement;
	int64_t size;
} chosen = {.size = 1024 * 1024};

static struct {
	struct wakeups on, off; /* of the one grid */
	struct shared *shared;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .members = 2, .check = shared_check, .finish = shared_finish}};

static const struct option_spec jitter_options[] = {
	{"task", 0, OPTION_CHOICE, &chosen.task, .choices = tasks, .help = "the periodic thread is real-time (default) or ordinary"},
	{"size", 0, OPTION_INTEGER, &chosen.size, .low = 10, .high = 10 * 1024 * 1024, .help = "bytes per hand-over (1048576)"},
	PLACEMENT_OPTION(&chosen.placement, "same"),
	TIMEOUT_OPTION(state.watch),
	{0},
};

static int64_t break_ns(const struct run *run)
{
	return run_start_ns(run) + run_settings(run)->warm_up_ns + run_settings(run)->duration_ns / 2;
}

static void periodic(struct worker *self, void *argument)
{
	struct grid grid = grid_begin(worker_run(self), 0, run_settings(worker_run(self))->interval_ns);
	int64_t off_ns = break_ns(worker_run(self));

	(void)argument;
	while (grid_continues(self, &grid) && grid_sleep(self, &grid)) {
		grid_account(&grid, grid.due_ns < off_ns ? &state.on : &state.off, mono_ns());
		watch_progress(&state.watch);
	}
	run_finish(worker_run(self));
	watch_leave(&state.watch);
}

static bool send_for_a_while(struct worker *self)
{
	int64_t work_begin_ns = mono_ns(), begin_ns, read_ns;

	do {
		if (!shared_send(self, state.shared, (size_t)chosen.size, &begin_ns, &read_ns))
			return false;
	} while (mono_ns() - work_begin_ns < WORK_NS);
	rest_since(work_begin_ns, state.watch.timeout_ns);
	return true;
}

static void traffic(struct worker *self, void *argument)
{
	int64_t off_ns = break_ns(worker_run(self));

	(void)argument;
	while (run_is_active(self) && mono_ns() < off_ns && send_for_a_while(self))
		;
	watch_leave(&state.watch);
}

/* Series without a period: each of the two is empty for half of the run, which is no loss. */
static struct wakeups add_phase(struct run *run, const char *is_on, int cpu)
{
	return grid_add_series(run, &(struct series_spec){
		.name = "wakeup",
		.from = "due time, on a grid of one interval",
		.to = "first reading of the clock after the sleep",
		.cpu = cpu,
		.labels = {{"traffic", is_on}, {"task", tasks[chosen.task]}},
	});
}

static void setup(struct run *run)
{
	struct cpu_pair cpus;
	bool ordinary = chosen.task == TASK_ORDINARY;

	if (!run_settings(run)->duration_ns)
		bad_input("jitter ends its traffic half-way: say --duration, as in -D 20s");
	if (!placement_find(run, chosen.placement, &cpus))
		return;
	run_parameter_text(run, "task", tasks[chosen.task]);
	run_parameter_int(run, "size", chosen.size);
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	state.watch.period_ns = run_settings(run)->interval_ns;
	run_parameter_int(run, "break_after_ns", run_settings(run)->duration_ns / 2);
	state.on = add_phase(run, "on", cpus.first);
	state.off = add_phase(run, "off", cpus.first);
	state.shared = shared_new(run, (size_t)chosen.size, cpus.second, cpus.first == cpus.second);
	run_add_worker(run, &(struct worker_spec){.name = "periodic", .cpu = cpus.first, .ordinary = ordinary,
						  .function = periodic});
	run_add_worker(run, &(struct worker_spec){.name = "traffic", .cpu = cpus.first, .priority_offset = ordinary ? 0 : -1,
						  .function = traffic});
	watch_add(run, &state.watch);
}

const struct probe jitter_probe = {
	.name = "jitter",
	.summary = "wake-up latency beside shared-memory traffic that stops half-way",
	.options = jitter_options,
	.setup = setup,
};
