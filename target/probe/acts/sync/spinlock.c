/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spinlock: two CPUs contend for a spinlock.
 *
 * In bursts, each acquires it, holds it for a while, and leaves it free for a while.  The series are the time of each
 * acquisition, and of each hand-over: from the release by one CPU to the acquisition by the other, which already spins.
 */
#include "waiting.h"
#include "placement.h"
#include "sync.h"
#include "watch.h"

static struct {
	int placement;
	int64_t burst, hold_ns;
} chosen = {.placement = PLACEMENT_CORE, .burst = 50, .hold_ns = NS_PER_US};

struct side {
	int number;
	struct series *acquire, *handover;
	uint64_t acts, handovers;
};

static struct {
	sync_spinlock lock;
	/* Protected by it, and by nothing else: that is what is checked. */
	int owner;
	uint64_t acts;
	int64_t released_ns;

	struct side sides[2];
	_Atomic int ended;
	struct watch watch;
} state = {.watch = {.timeout_ns = TIMEOUT_STANDARD_NS, .urgent = true, .members = 2}};

static const struct option_spec spinlock_options[] = {
	PLACEMENT_OPTION(&chosen.placement, "core"),
	{"burst", 0, OPTION_INTEGER, &chosen.burst, .low = 1, .high = 1000, .help = "acts in a row per --interval (50)"},
	{"hold", 0, OPTION_DURATION, &chosen.hold_ns, .low = 100, .high = 100 * NS_PER_US, .plain = NS_PER_US,
	 .plain_name = "us", .help = "time to hold the lock, and to leave it free (1us)"},
	TIMEOUT_OPTION(state.watch),
	{0},
};

static void pass_time(int64_t ns)
{
	int64_t end_ns = mono_ns() + ns;

	while (mono_ns() < end_ns)
		cpu_relax();
}

/*
 * If the other side released the lock after this side had requested it, the lock was handed over.  An acquisition by the
 * other side in between shows that it is alive: short bursts may not overlap.
 */
static void record(struct side *side, int64_t asked_ns, int64_t locked_ns, int before, int64_t released_ns)
{
	series_add(side->acquire, locked_ns - asked_ns);
	if (before == side->number)
		return;
	watch_progress(&state.watch);
	if (released_ns > asked_ns) {
		series_add(side->handover, locked_ns - released_ns);
		side->handovers++;
	}
}

static bool lock_hold_unlock(struct side *side)
{
	int64_t asked_ns = mono_ns(), locked_ns, released_ns;
	uint64_t acts;
	bool alone;
	int before;

	sync_spin_lock(&state.lock);
	locked_ns = mono_ns();
	before = state.owner;
	released_ns = state.released_ns;
	acts = state.acts;
	state.owner = side->number;
	pass_time(chosen.hold_ns);
	alone = state.owner == side->number && state.acts == acts;
	state.acts = acts + 1;
	state.released_ns = mono_ns();
	sync_spin_unlock(&state.lock);
	side->acts++;
	record(side, asked_ns, locked_ns, before, released_ns);
	return alone;
}

/* By the last one to end. */
static void check_sum(struct run *run)
{
	uint64_t acts = state.sides[0].acts + state.sides[1].acts;

	if (state.acts != acts)
		run_fail(run, "of %llu acts under the lock only %llu took effect: both CPUs held it at once", (unsigned long long)acts,
			 (unsigned long long)state.acts);
	else if (state.sides[0].handovers + state.sides[1].handovers == 0)
		run_fail(run, "in %llu acts the CPUs never contended for the lock", (unsigned long long)acts);
}

static void contend(struct worker *self, void *argument)
{
	struct pace pace = {run_start_ns(worker_run(self)), run_settings(worker_run(self))->interval_ns};
	struct side *side = argument;

	for (int64_t act = 0; run_continues(self); act++) {
		if (act % chosen.burst == 0)
			pace_wait(&pace);
		if (!lock_hold_unlock(side)) {
			run_fail(worker_run(self), "both CPUs held the lock at once");
			break;
		}
		pass_time(chosen.hold_ns);
	}
	if (atomic_fetch_add(&state.ended, 1) == 1) {
		check_sum(worker_run(self));
		run_finish(worker_run(self));
	}
	watch_leave(&state.watch);
}

static void rescue(void)
{
	sync_spin_unlock(&state.lock);
}

static void add_side(struct run *run, int number, int cpu)
{
	struct side *side = &state.sides[number];
	struct series_spec spec = {
		.name = "acquire",
		.from = "the CPU reads the clock before " SYNC_SPIN_LOCK_CALL,
		.to = "it reads the clock after " SYNC_SPIN_LOCK_CALL " returned",
		.cpu = cpu,
		.labels = {{"placement", placement_names[chosen.placement]}},
	};

	side->number = number + 1;
	side->acquire = run_add_series(run, &spec);
	spec.name = "handover";
	spec.from = "the other CPU, holding the lock, reads the clock before " SYNC_SPIN_UNLOCK_CALL;
	spec.to = "this CPU, spinning already, reads the clock after " SYNC_SPIN_LOCK_CALL " returned";
	side->handover = run_add_series(run, &spec);
	run_add_worker(run, &(struct worker_spec){.name = number ? "second" : "first", .cpu = cpu, .priority_offset = -1,
						  .function = contend, .argument = side});
}

static void setup(struct run *run)
{
	struct cpu_pair cpus;

	if (run_settings(run)->cpus.count < 2 || chosen.placement == PLACEMENT_SAME) {
		run_not_applicable(run, "a spinlock needs two CPUs: on one CPU it is an empty operation");
		return;
	}
	if (!placement_find(run, chosen.placement, &cpus))
		return;
	run_parameter_int(run, "interval_ns", run_settings(run)->interval_ns);
	run_parameter_int(run, "burst", chosen.burst);
	run_parameter_int(run, "hold_ns", chosen.hold_ns);
	sync_spinlock_init(&state.lock);
	state.watch.rescue = rescue;
	state.watch.period_ns = run_settings(run)->interval_ns;
	add_side(run, 0, cpus.first);
	add_side(run, 1, cpus.second);
	watch_add(run, &state.watch);
}

const struct probe spinlock_probe = {
	.name = "spinlock",
	.summary = "time to get a spinlock for which two CPUs contend",
	.options = spinlock_options,
	.setup = setup,
};
