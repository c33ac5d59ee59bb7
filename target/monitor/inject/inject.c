/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inject: delays wake-ups on one CPU within one station by known times, to test whether a monitor detects them.
 *
 * Slightly before a due time it arms a BPF program with the delay, or runs the program at once if the station requires it.
 * The actual delay is recorded: from the begin of the station, as far as the injector causes it, to the end of the
 * computation.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>

#include "plan.h"
#include "registry.h"
#include "sleep.h"
#include "spin.h"
#include "spin.skel.h"

#define LONGEST_NS (100 * NS_PER_MS)
#define PATIENCE 4 /* an armed delay has ended or failed this fraction of the interval after its planned end */

static const char *const stations[] = {
	[SPIN_EXPIRY_TO_INTERRUPT] = "expiry-to-interrupt",
	[SPIN_INTERRUPT_TO_RUNNABLE] = "interrupt-to-runnable",
	[SPIN_RUNNABLE_TO_RUNNING] = "runnable-to-running",
	[SPIN_RUNNING_TO_RETURN] = "running-to-return",
	[SPIN_PLACES] = NULL,
};

static const char *const begins[] = {
	[SPIN_EXPIRY_TO_INTERRUPT] = "due time of the timer, interrupts off",
	[SPIN_INTERRUPT_TO_RUNNABLE] = "begin of the computing before the timer's function",
	[SPIN_RUNNABLE_TO_RUNNING] = "end of the interrupt that made the task runnable, preemption off",
	[SPIN_RUNNING_TO_RETURN] = "begin of the computing behind the system call",
};

static int chosen_station;
static const char *samples_path;
static struct plan_options chosen = PLAN_DEFAULTS;
static const struct option_spec inject_options[] = {
	{"station", 0, OPTION_CHOICE, &chosen_station, .choices = stations, .help = "where the wake-up is delayed (expiry-to-interrupt)"},
	{"samples", 0, OPTION_TEXT, &samples_path, .help = "write every injection, with its due time, to this new file"},
	PLAN_OPTIONS(chosen),
	{0},
};

struct injector {
	struct plan plan;
	enum spin_place place;
	int cpu; /* of the task to be delayed */
	struct spin_bpf *spin;
	struct samples *samples[PLAN_SIZES];
};

/* Runs on the task's own CPU: in this thread, or in an interrupt that this CPU sends there. */
static int compute_now(const struct injector *injector)
{
	bool elsewhere = injector->place == SPIN_EXPIRY_TO_INTERRUPT;
	const struct bpf_program *program = elsewhere ? injector->spin->progs.without_interrupts :
							injector->spin->progs.without_preemption;
	LIBBPF_OPTS(bpf_test_run_opts, options, .flags = elsewhere ? BPF_F_TEST_RUN_ON_CPU : 0,
		    .cpu = elsewhere ? (__u32)injector->cpu : 0);

	return bpf_prog_test_run_opts(bpf_program__fd(program), &options);
}

/* Armed by the order; the program computes when the wake-up reaches the station. */
static int await_computing(const struct injector *injector)
{
	const struct plan *plan = &injector->plan;

	return -sleep_until(plan->due_mono_ns + plan_size_ns(plan) + plan->interval_ns / PATIENCE);
}

static bool record(struct injector *injector)
{
	const volatile struct spin_window *window = &injector->spin->bss->window;
	struct plan *plan = &injector->plan;
	int64_t injected_ns = (int64_t)(window->end_ns - window->begin_ns);

	if (!window->end_ns) {
		series_add_missed(plan_series(plan), 1);
		return false;
	}
	series_add(plan_series(plan), injected_ns);
	if (samples_path)
		samples_add(injector->samples[plan->next], plan->due_mono_ns, injected_ns);
	return true;
}

static void inject(struct injector *injector, struct run *run)
{
	bool armed = injector->place == SPIN_INTERRUPT_TO_RUNNABLE || injector->place == SPIN_RUNNING_TO_RETURN;
	struct plan *plan = &injector->plan;
	int error;

	injector->spin->bss->window = (struct spin_window){0};
	injector->spin->bss->order = (struct spin_order){
		.due_ns = (uint64_t)plan->due_mono_ns, .size_ns = (uint64_t)plan_size_ns(plan),
		.place = injector->place, .cpu = (uint32_t)injector->cpu,
	};
	error = armed ? await_computing(injector) : compute_now(injector);
	if (error && error != -EINTR)
		run_fail(run, "the kernel did not run the injector's program: %s", strerror(-error));
	injector->spin->bss->order = (struct spin_order){0};
	plan_advance(plan, record(injector));
}

static void disturb(struct worker *self, void *argument)
{
	struct injector *injector = argument;

	prctl(PR_SET_NAME, "fastenough-inj"); /* the cause that a monitor should report */
	while (!injector->plan.over && run_continues(self))
		if (sleep_until(injector->plan.due_mono_ns - injector->plan.lead_ns) == 0)
			inject(injector, worker_run(self));
}

static void add_series(struct run *run, struct injector *injector)
{
	struct plan *plan = &injector->plan;

	for (int i = 0; i < plan->sizes; i++) {
		plan->series[i] = run_add_series(run, &(struct series_spec){
			.name = "injected", .from = begins[injector->place], .to = "end of the computing",
			.role = SERIES_DIAGNOSTIC, .cpu = injector->cpu,
			.labels = {{"station", stations[injector->place]}, {"size", plan->size_text[i]}},
		});
		if (samples_path)
			injector->samples[i] = run_add_samples(run, plan->series[i]);
	}
}

static bool in_kernel(struct run *run, struct injector *injector)
{
	struct spin_bpf *spin;

	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_FUNC_loop, NULL) == 0) {
		run_not_applicable(run, "this kernel has no bpf_loop() (Linux 5.17 and later); inject with the module");
		return false;
	}
	spin = spin_bpf__open();
	if (spin)
		bpf_program__set_autoload(spin->progs.task_returns, injector->place == SPIN_RUNNING_TO_RETURN);
	if (!spin || spin_bpf__load(spin)) {
		run_not_applicable(run, "the kernel refuses BPF programs: %s; they need root, or CAP_BPF and CAP_PERFMON, and a "
				   "kernel with BTF", strerror(errno));
		return false;
	}
	injector->spin = spin;
	return true;
}

static bool attach(struct run *run, const struct spin_bpf *spin)
{
	struct bpf_program *const programs[] = {spin->progs.timer_expires, spin->progs.task_woken, spin->progs.task_returns};

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (bpf_program__autoload(programs[i]) && !bpf_program__attach(programs[i])) {
			run_not_applicable(run, "the tracepoint of %s cannot be used: %s", bpf_program__name(programs[i]),
					   strerror(errno));
			return false;
		}
	return true;
}

/* Another CPU keeps interrupts off, a thread of the same CPU keeps preemption off; otherwise the injector runs elsewhere. */
static int cpu_of_injector(struct run *run, const struct injector *injector)
{
	int other = run_other_cpu(run, injector->cpu);

	if (injector->place == SPIN_EXPIRY_TO_INTERRUPT && other < 0)
		bad_input("--station expiry-to-interrupt needs a second CPU to keep interrupts off; name it, as in --affinity %d,%d",
			  injector->cpu, injector->cpu + 1);
	return injector->place == SPIN_RUNNABLE_TO_RUNNING || other < 0 ? injector->cpu : other;
}

static void inject_setup(struct run *run)
{
	struct injector *injector = run_allocate(run, sizeof(*injector));
	int cpu;

	injector->place = (enum spin_place)chosen_station;
	injector->cpu = run_cpu(run, 0);
	cpu = cpu_of_injector(run, injector);
	plan_make(&injector->plan, run, &chosen, LONGEST_NS);
	run_parameter_text(run, "station", stations[injector->place]);
	if (samples_path)
		run_record_samples(run, samples_path);
	add_series(run, injector);
	if (!in_kernel(run, injector) || !attach(run, injector->spin))
		return;
	run_add_worker(run, &(struct worker_spec){
		.name = "inject", .cpu = cpu, .period_ns = injector->plan.interval_ns, .function = disturb, .argument = injector,
		.capabilities = UINT64_MAX, /* it has programs run in the kernel */
	});
}

static const struct probe inject_probe = {
	.name = "inject",
	.summary = "delays wake-ups within one station by known times, to test whether a monitor finds them",
	.options = inject_options,
	.setup = inject_setup,
};

const struct probe *const probes[] = {&inject_probe, NULL};
