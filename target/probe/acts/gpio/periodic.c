/* SPDX-License-Identifier: GPL-2.0-or-later */
/* periodic: toggle an output at every due time of a grid. */
#include <errno.h>
#include <string.h>

#include "gpio.h"
#include "grid.h"

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
	int64_t period_ns;
	struct wakeups wakeups;
};

/* A started pulse ends at its due time, even if the run ends before: a line released while high would fall at another time.
 * So an odd --loops gets one more act. */
static inline bool next_due(struct worker *self, const struct periodic *periodic, struct grid *grid)
{
	bool continues = grid_continues(self, grid);

	return periodic->high ? grid_sleep_through(grid) : continues && grid_sleep(self, grid);
}

/* Compiled for each way with its own function.  The output is written first: the external measurement must not include the
 * recording. */
static inline __attribute__((always_inline)) void repeat(struct worker *self, struct periodic *periodic,
							 bool (*const write)(struct gpio_line *, bool))
{
	struct grid grid = grid_begin(worker_run(self), 0, periodic->period_ns);

	while (next_due(self, periodic, &grid)) {
		int64_t begin_mono_ns = mono_ns();

		periodic->high = !periodic->high;
		if (!write(&periodic->out, periodic->high)) {
			run_fail(worker_run(self), "the pin failed: %s", strerror(errno));
			return;
		}
		grid_account(&grid, &periodic->wakeups, begin_mono_ns);
	}
}

#define REPEAT_BY(WAY)                                                                                             \
	static void repeat_##WAY(struct worker *self, void *argument)                                              \
	{                                                                                                          \
		repeat(self, argument, gpio_##WAY##_write);                                                        \
	}
PINS_WAYS(REPEAT_BY)

#define REPEATER(WAY) repeat_##WAY,
static const worker_function repeaters[] = {PINS_WAYS(REPEATER)};

static void periodic_setup(struct run *run)
{
	struct periodic *periodic = run_allocate(run, sizeof(*periodic));
	int number;

	periodic->way = gpio_open(run, &periodic->chip, &number);
	if (!periodic->way)
		return;
	periodic->period_ns = run_settings(run)->interval_ns;
	periodic->out = gpio_line(&periodic->chip, "out", gpio_options.out);
	gpio_request_output(periodic->way, &periodic->out, false);
	run_parameter_int(run, "out", periodic->out.offset);
	run_parameter_int(run, "interval_ns", periodic->period_ns);
	periodic->wakeups = grid_add_series(run, &(struct series_spec){
		.name = "wakeup",
		.from = "due time, on a grid of one interval",
		.to = "first reading of the clock after the sleep, before the output is written",
		.cpu = run_cpu(run, 0),
		.period_ns = periodic->period_ns,
	});
	run_add_worker(run, &(struct worker_spec){
		.name = "periodic", .cpu = run_cpu(run, 0), .period_ns = periodic->period_ns, .function = repeaters[number],
		.argument = periodic,
	});
}

const struct probe periodic_probe = {
	.name = "periodic",
	.summary = "wake-up latency of a thread that toggles a pin once per interval",
	.options = periodic_options,
	.setup = periodic_setup,
};
