/* SPDX-License-Identifier: GPL-2.0-or-later */
/* periodic: toggle an output at every due time of a grid. */
#include <errno.h>
#include <string.h>

#include "periodic.h"
#include "gpio.h"

/* Bounds the time that charging missed periods takes; the rest is counted as lost. */
#define CHARGED_MOST (1u << 20)

static const struct option_spec periodic_options[] = {
	GPIO_OPTION_CHIP,
	GPIO_OPTION_WAY,
	GPIO_OPTION_LINE(out, "line to toggle, once every --interval"),
	{0},
};

struct periodic {
	const struct gpio_way *way;
	struct gpio_chip chip;
	struct gpio_line out;
	bool high;
	int64_t due_mono_ns, period_ns;
	struct series *wakeup, *corrected;
};

static void charge_missed(struct periodic *periodic, int64_t begin_mono_ns, uint64_t missed)
{
	uint64_t charged = missed < CHARGED_MOST ? missed : CHARGED_MOST;

	for (uint64_t n = 1; n <= charged; n++)
		series_add(periodic->corrected, fe_delay_charged(periodic->due_mono_ns, begin_mono_ns, periodic->period_ns, n));
	if (missed > charged)
		series_add_lost(periodic->corrected, missed - charged);
	series_add_missed(periodic->wakeup, missed);
	series_add_missed(periodic->corrected, missed);
}

static void account(struct periodic *periodic, int64_t begin_mono_ns)
{
	uint64_t missed = fe_periods_missed(periodic->due_mono_ns, begin_mono_ns, periodic->period_ns);

	series_add(periodic->wakeup, begin_mono_ns - periodic->due_mono_ns);
	series_add(periodic->corrected, begin_mono_ns - periodic->due_mono_ns);
	if (missed)
		charge_missed(periodic, begin_mono_ns, missed);
	periodic->due_mono_ns += (int64_t)(missed + 1) * periodic->period_ns;
}

/* The output first: what is measured outside must not wait for what is measured inside. */
static int toggle(struct periodic *periodic)
{
	struct timespec due = timespec_of(periodic->due_mono_ns);
	int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	int64_t begin_mono_ns = mono_ns();

	if (error)
		return error;
	periodic->high = !periodic->high;
	if (!periodic->way->write(&periodic->out, periodic->high))
		return errno;
	account(periodic, begin_mono_ns);
	return 0;
}

static void repeat(struct worker *self, void *argument)
{
	struct periodic *periodic = argument;
	int error = 0;

	periodic->due_mono_ns = run_first_due_ns(worker_run(self), 0, periodic->period_ns);
	while ((error == 0 || error == EINTR) && run_continues(self))
		error = toggle(periodic);
	if (error && error != EINTR)
		run_fail(worker_run(self), "the pin failed: %s", strerror(error));
}

static void add_series(struct run *run, struct periodic *periodic)
{
	struct series_spec spec = {
		.name = "wakeup",
		.from = "due time, on a grid of one interval",
		.to = "first reading of the clock after the sleep, before the output is written",
		.cpu = run_cpu(run, 0),
		.period_ns = periodic->period_ns,
	};

	periodic->wakeup = run_add_series(run, &spec);
	spec.name = "wakeup_owed";
	spec.to = "the same; periods in which the act never took place are charged from their own due time";
	periodic->corrected = run_add_series(run, &spec);
}

static void periodic_setup(struct run *run)
{
	struct periodic *periodic = run_allocate(run, sizeof(*periodic));

	periodic->way = gpio_open(run, &periodic->chip);
	if (!periodic->way)
		return;
	periodic->period_ns = run_settings(run)->interval_ns;
	periodic->out = gpio_line(&periodic->chip, "out", gpio_options.out);
	gpio_take_output(periodic->way, &periodic->out, false);
	run_parameter_int(run, "out", periodic->out.offset);
	run_parameter_int(run, "interval_ns", periodic->period_ns);
	add_series(run, periodic);
	run_add_worker(run, &(struct worker_spec){
		.name = "periodic", .cpu = run_cpu(run, 0), .period_ns = periodic->period_ns, .function = repeat,
		.argument = periodic,
	});
}

const struct probe periodic_probe = {
	.name = "periodic",
	.summary = "a pin is toggled at every interval",
	.options = periodic_options,
	.setup = periodic_setup,
};
