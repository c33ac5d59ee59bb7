/* SPDX-License-Identifier: GPL-2.0-or-later */
/* response: the output follows the input, edge by edge. */
#include <errno.h>
#include <string.h>

#include "gpio.h"

static const struct option_spec response_options[] = {
	GPIO_OPTION_CHIP,
	GPIO_OPTION_WAY,
	GPIO_OPTION_LINE(in, "line to watch for edges"),
	GPIO_OPTION_LINE(out, "line that follows it"),
	{0},
};

struct response {
	const struct gpio_way *way;
	struct gpio_chip chip;
	struct gpio_line in, out;
	bool high; /* of the output */
	int64_t start_ns; /* of the run */
	struct series *series;
};

/* An edge with the level that the output already has was overtaken by the next one, and got no response. */
static void account(struct response *response, const struct gpio_edge *edge, int64_t answered_mono_ns)
{
	if (edge->dropped)
		series_add_lost(response->series, edge->dropped);
	if (edge->high == response->high)
		series_add_missed(response->series, 1);
	else
		series_add(response->series, answered_mono_ns - edge->at_mono_ns);
	response->high = edge->high;
}

/* Answers the next edge of the run.  The output follows edges from before the run too, but they are no acts of it. */
static inline __attribute__((always_inline)) bool answer(struct response *response, struct gpio_edge *edge,
							 bool (*const wait_edge)(struct gpio_line *, struct gpio_edge *),
							 bool (*const write)(struct gpio_line *, bool))
{
	while (wait_edge(&response->in, edge) && write(&response->out, edge->high)) {
		if (edge->at_mono_ns >= response->start_ns)
			return true;
		response->high = edge->high;
	}
	return false;
}

static void fail(struct worker *self)
{
	run_fail(worker_run(self), "the pins failed: %s", strerror(errno));
}

/* Compiled for each way with its own functions, so that no timed function is called by pointer. */
static inline __attribute__((always_inline)) void respond(struct worker *self, struct response *response,
							  bool (*const wait_edge)(struct gpio_line *, struct gpio_edge *),
							  bool (*const write)(struct gpio_line *, bool))
{
	struct gpio_edge edge;

	response->start_ns = run_start_ns(worker_run(self));
	/* An edge without a time stamp that is pending now came before the run; reading the level ends it. */
	if (!response->way->stamped &&
	    !(response->way->read(&response->in, &response->high) && write(&response->out, response->high)))
		fail(self);
	while (run_continues(self)) {
		if (answer(response, &edge, wait_edge, write))
			account(response, &edge, mono_ns());
		else if (errno != EINTR)
			fail(self);
	}
}

#define RESPOND_BY(WAY)                                                                                            \
	static void respond_##WAY(struct worker *self, void *argument)                                             \
	{                                                                                                          \
		respond(self, argument, gpio_##WAY##_wait_edge, gpio_##WAY##_write);                               \
	}
PINS_WAYS(RESPOND_BY)

#define RESPONDER(WAY) respond_##WAY,
static const worker_function responders[] = {PINS_WAYS(RESPONDER)};

/* The output starts at the level of the input, so that the first edge requires a change. */
static void take_pins(struct response *response)
{
	if (gpio_options.in >= 0 && gpio_options.in == gpio_options.out)
		bad_input("--in and --out must be two lines, not both %d", (int)gpio_options.in);
	response->in = gpio_line(&response->chip, "in", gpio_options.in);
	response->out = gpio_line(&response->chip, "out", gpio_options.out);
	gpio_request_input(response->way, &response->in);
	if (!response->way->read(&response->in, &response->high))
		bad_input("line %u of %s cannot be read: %s; choose another", response->in.offset, response->chip.label,
			  strerror(errno));
	gpio_request_output(response->way, &response->out, response->high);
}

static void response_setup(struct run *run)
{
	struct response *response = run_allocate(run, sizeof(*response));
	int number;

	response->way = gpio_open(run, &response->chip, &number);
	if (!response->way)
		return;
	take_pins(response);
	run_parameter_int(run, "in", response->in.offset);
	run_parameter_int(run, "out", response->out.offset);
	response->series = run_add_series(run, &(struct series_spec){
		.name = response->way->series, .from = response->way->edge_seen, .to = "output written", .cpu = run_cpu(run, 0),
	});
	run_add_worker(run, &(struct worker_spec){
		.name = "response", .cpu = run_cpu(run, 0), .function = responders[number], .argument = response,
	});
}

const struct probe response_probe = {
	.name = "response",
	.summary = "latency from an edge on one pin to its answer on another (from the kernel's time stamp)",
	.options = response_options,
	.setup = response_setup,
};
