/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the instrument, one function each; the table is at the end. */
#include "commands.h"

#include "gauge.h"
#include "parameters.h"
#include "results.h"

#define LONGEST_WAIT ((uint32_t)1 << 30)
#define SELFTEST_CYCLES 256

static bool refuse_if_running(struct reply *reply)
{
	if (gauge_is_idle())
		return false;
	reply_error(reply, TEXT("measuring; stop first"));
	return true;
}

static void identify(struct reply *reply, const char *text)
{
	(void)text;
	reply_text(reply, TEXT("gauge=fastenough firmware=" GAUGE_VERSION " mcu=" MACHINE_NAME));
	reply_key(reply, TEXT("protocol"), GAUGE_PROTOCOL);
	reply_key(reply, TEXT("tick_ps"), MACHINE_TICK_PS);
	reply_key(reply, TEXT("k"), MACHINE_K);
	reply_key(reply, TEXT("bits"), MACHINE_BITS);
	reply_key(reply, TEXT("stack_free"), machine_stack_free());
	reply_key(reply, TEXT("simulated"), machine_is_simulated());
	reply_line_end(reply);
	reply_ok(reply);
}

static void report_ticks(struct reply *reply, const char *text)
{
	(void)text;
	reply_key(reply, TEXT("ticks"), machine_ticks());
	reply_line_end(reply);
	reply_ok(reply);
}

enum { MIN, MAX, TIMEOUT, CYCLES, SEED, RESPONSE_PARAMETERS };

static const struct parameter RESPONSE_TABLE[] TEXT_CONST = {
	[MIN] = { "min", 0, LONGEST_WAIT },
	[MAX] = { "max", 0, LONGEST_WAIT },
	[TIMEOUT] = { "timeout", MACHINE_SHORTEST_TIMEOUT, HISTOGRAM_MAX },
	[CYCLES] = { "count", 1, UINT32_MAX },
	[SEED] = { "seed", 1, UINT32_MAX },
};

static void respond(struct reply *reply, const char *text)
{
	uint32_t value[] = { [MIN] = MACHINE_WAIT_MIN, [MAX] = MACHINE_WAIT_MAX, [TIMEOUT] = HISTOGRAM_MAX, [CYCLES] = UINT32_MAX,
			     [SEED] = gauge.random };

	if (refuse_if_running(reply) || !command_parameters(reply, text, RESPONSE_TABLE, RESPONSE_PARAMETERS, 0, value))
		return;
	if (value[MAX] < value[MIN]) {
		reply_error(reply, TEXT("max must not be below min"));
		return;
	}
	gauge.random = value[SEED];
	gauge_start_response(value[MIN], value[MAX] - value[MIN], value[TIMEOUT], value[CYCLES]);
	reply_ok(reply);
}

enum { PERIOD, LIMIT, PERIODIC_PARAMETERS };

static const struct parameter PERIODIC_TABLE[] TEXT_CONST = {
	[PERIOD] = { "period", MACHINE_SHORTEST_PERIOD, HISTOGRAM_MAX - 1 },
	[LIMIT] = { "timeout", 1, HISTOGRAM_MAX },
};

static void watch_period(struct reply *reply, const char *text)
{
	uint32_t value[] = { [PERIOD] = 0, [LIMIT] = HISTOGRAM_MAX };

	if (refuse_if_running(reply) ||
	    !command_parameters(reply, text, PERIODIC_TABLE, PERIODIC_PARAMETERS, 1 << PERIOD, value))
		return;
	if (value[LIMIT] <= value[PERIOD]) {
		reply_error(reply, TEXT("timeout must be longer than the period"));
		return;
	}
	gauge_start_periodic(value[PERIOD], value[LIMIT]);
	reply_ok(reply);
}

static void stop(struct reply *reply, const char *text)
{
	(void)text;
	gauge_stop();
	reply_ok(reply);
}

static void stream_on(struct reply *reply, const char *text)
{
	(void)text;
	stream_begin(&gauge.stream, true);
	reply_ok(reply);
}

static void stream_off(struct reply *reply, const char *text)
{
	(void)text;
	stream_flush(&gauge.stream);
	gauge.stream.on = false;
	reply_ok(reply);
}

/* With a wire from output to input, the latency is that of the instrument, and must be constant. */
static void test_self(struct reply *reply, const char *text)
{
	bool steady = true;

	(void)text;
	if (refuse_if_running(reply))
		return;
	gauge_start_response(MACHINE_SELFTEST_WAIT, MACHINE_SELFTEST_WAIT, MACHINE_SELFTEST_TIMEOUT, SELFTEST_CYCLES);
	while (!gauge_is_idle())
		gauge_serve();
	for (uint8_t series = 0; series < 2; series++) {
		const struct histogram_stats *stats = &gauge.histogram.current[series];

		steady = steady && stats->count == SELFTEST_CYCLES && stats->max - stats->min <= 1;
		report_series(reply, series);
	}
	reply_text(reply, steady ? TEXT("selftest=pass") : TEXT("selftest=fail"));
	reply_key(reply, TEXT("cycles"), SELFTEST_CYCLES);
	reply_line_end(reply);
	reply_ok(reply);
}

static void help(struct reply *reply, const char *text);

struct command {
	char name[12];
	char hint[80];
	void (*execute)(struct reply *reply, const char *text);
};

static const struct command COMMANDS[] TEXT_CONST = {
	{ "help", "list the commands", help },
	{ "id", "identify this gauge; all times are in ticks of tick_ps", identify },
	{ "time", "ticks since power-up", report_ticks },
	{ "response", "[min=] [max=] [timeout=] [count=] [seed=]: stimuli after random waits", respond },
	{ "periodic", "period= [timeout=]: deviations from the period of falling edges", watch_period },
	{ "stop", "end the measurement after the current cycle", stop },
	{ "stats", "state and counters", report_counters },
	{ "hist", "rows 'b series bucket count', then exact statistics since the last take", report_histogram },
	{ "take", "[n=]: as hist; the next n acknowledges this take and resets the statistics", take_histogram },
	{ "stream on", "also send each sample, in binary frames", stream_on },
	{ "stream off", "", stream_off },
	{ "selftest", "latency of the instrument itself; wire output to input", test_self },
};

#define COMMAND_COUNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

static void help(struct reply *reply, const char *text)
{
	(void)text;
	for (uint8_t i = 0; i < COMMAND_COUNT; i++) {
		reply_text(reply, COMMANDS[i].name);
		reply_text(reply, TEXT("  "));
		reply_text(reply, COMMANDS[i].hint);
		reply_line_end(reply);
	}
	reply_ok(reply);
}

static void dispatch(struct reply *reply, const char *text)
{
	for (uint8_t i = 0; i < COMMAND_COUNT; i++) {
		if (line_is(text, COMMANDS[i].name)) {
			void (*execute)(struct reply *, const char *);

			text_copy(&execute, &COMMANDS[i].execute, sizeof(execute));
			execute(reply, text);
			return;
		}
	}
	reply_error(reply, TEXT("unknown command; see help"));
}

static void execute_line(struct line *line)
{
	struct reply reply;
	enum line_check check = LINE_DAMAGED;

	if (!line->overlong)
		check = line_check(line);
	reply_begin(&reply, check != LINE_PLAIN);
	if (line->overlong)
		reply_error(&reply, TEXT("line too long"));
	else if (check == LINE_DAMAGED)
		reply_error(&reply, TEXT("damaged line"));
	else
		dispatch(&reply, line->text);
}

void commands_serve(void)
{
	uint8_t byte;

	while (!gauge.line.complete && machine_get(&byte))
		line_add(&gauge.line, byte);
	if (!gauge.line.complete)
		return;
	execute_line(&gauge.line);
	line_clear(&gauge.line);
}
