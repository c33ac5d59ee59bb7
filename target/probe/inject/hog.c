/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hog: delays other tasks of its CPU by known times, to test whether the delays are detected.
 *
 * It wakes slightly before a due time of these tasks and computes until the requested time after it.  The actual delay is
 * recorded: from the due time to the end of the computation.
 */
#include "plan.h"
#include "sleep.h"

#define LONGEST_NS (500 * NS_PER_MS)

static struct plan_options chosen = PLAN_DEFAULTS;
static const struct option_spec hog_options[] = {PLAN_OPTIONS(chosen), {0}};

static void spin_until(int64_t end_mono_ns)
{
	while (mono_ns() < end_mono_ns)
		;
}

static void inject(struct plan *plan)
{
	bool in_time = mono_ns() <= plan->due_mono_ns;

	if (!in_time) {
		series_add_missed(plan_series(plan), 1);
	} else {
		spin_until(plan->due_mono_ns + plan_size_ns(plan));
		series_add(plan_series(plan), mono_ns() - plan->due_mono_ns);
	}
	plan_advance(plan, in_time);
}

static void disturb(struct worker *self, void *argument)
{
	struct plan *plan = argument;

	while (!plan->over && run_continues(self))
		if (sleep_until(plan->due_mono_ns - plan->lead_ns) == 0)
			inject(plan);
}

static void add_series(struct run *run, struct plan *plan)
{
	for (int i = 0; i < plan->sizes; i++)
		plan->series[i] = run_add_series(run, &(struct series_spec){
			.name = "injected", .from = "due time of the task to be delayed", .to = "end of the computing",
			.role = SERIES_DIAGNOSTIC, .cpu = run_cpu(run, 0), .labels = {{"size", plan->size_text[i]}},
		});
}

static void hog_setup(struct run *run)
{
	struct plan *plan = run_allocate(run, sizeof(*plan));

	plan_make(plan, run, &chosen, LONGEST_NS);
	add_series(run, plan);
	run_add_worker(run, &(struct worker_spec){
		.name = "hog", .cpu = run_cpu(run, 0), .period_ns = plan->interval_ns, .function = disturb, .argument = plan,
	});
}

const struct probe hog_probe = {
	.name = "hog",
	.summary = "delays other tasks of its CPU by known times, to test whether a measurement finds them",
	.options = hog_options,
	.setup = hog_setup,
};
