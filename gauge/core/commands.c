/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be said to the instrument, one function each; the table stands at the end. */
#include "gauge.h"
#include "reply.h"

#define SHORTEST_PERIOD 400 /* edges closer than the capture interrupt takes might be seen as one */
#define LONGEST_WAIT ((uint32_t)1 << 30)
#define SELFTEST_CYCLES 256

static void fail(struct reply *reply, text_t why)
{
	reply_text(reply, TEXT("error "));
	reply_text(reply, why);
	reply_line_end(reply);
}

static void tell_limits(struct reply *reply, const struct parameter *parameter)
{
	uint32_t limit;

	reply_text(reply, TEXT(" must be a number from "));
	text_copy(&limit, &parameter->min, sizeof(limit));
	reply_unsigned(reply, limit);
	reply_text(reply, TEXT(" to "));
	text_copy(&limit, &parameter->max, sizeof(limit));
	reply_unsigned(reply, limit);
}

static void fail_parameter(struct reply *reply, enum parse_error error, const struct parameter *parameter)
{
	if (error == PARSE_UNKNOWN_KEY) {
		fail(reply, TEXT("unknown parameter; see help"));
		return;
	}
	reply_text(reply, TEXT("error "));
	reply_text(reply, parameter->key);
	if (error == PARSE_MISSING)
		reply_text(reply, TEXT(" is missing"));
	else if (error == PARSE_TWICE)
		reply_text(reply, TEXT(" is given twice"));
	else
		tell_limits(reply, parameter);
	reply_line_end(reply);
}

/* The parameters of a command; false when they are wrong, which has been said then. */
static bool parameters(struct reply *reply, const char *text, const struct parameter *table, uint8_t count,
		       uint8_t required, uint32_t *values)
{
	uint8_t at;
	enum parse_error error = line_parameters(text, table, count, required, values, &at);

	if (error != PARSE_OK)
		fail_parameter(reply, error, &table[at]);
	return error == PARSE_OK;
}

static bool refuse_if_running(struct reply *reply)
{
	if (gauge_is_idle())
		return false;
	fail(reply, TEXT("measuring; stop first"));
	return true;
}

static void identify(struct reply *reply, const char *text)
{
	(void)text;
	reply_text(reply, TEXT("gauge=fastenough firmware=" GAUGE_VERSION " mcu=" GAUGE_MCU));
	reply_key(reply, TEXT("protocol"), GAUGE_PROTOCOL);
	reply_key(reply, TEXT("tick_ps"), GAUGE_TICK_PS);
	reply_key(reply, TEXT("k"), GAUGE_K);
	reply_key(reply, TEXT("bits"), GAUGE_BITS);
	reply_key(reply, TEXT("stack_free"), machine_stack_free());
	reply_key(reply, TEXT("simulated"), machine_is_simulated());
	reply_line_end(reply);
	reply_ok(reply);
}

static void tell_ticks(struct reply *reply, const char *text)
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
	[TIMEOUT] = { "timeout", 64, HISTOGRAM_MAX },
	[CYCLES] = { "count", 1, UINT32_MAX },
	[SEED] = { "seed", 1, UINT32_MAX },
};

static void respond(struct reply *reply, const char *text)
{
	uint32_t value[] = { [MIN] = 48, [MAX] = 113136, [TIMEOUT] = HISTOGRAM_MAX, [CYCLES] = UINT32_MAX,
			     [SEED] = gauge.random };

	if (refuse_if_running(reply) || !parameters(reply, text, RESPONSE_TABLE, RESPONSE_PARAMETERS, 0, value))
		return;
	if (value[MAX] < value[MIN]) {
		fail(reply, TEXT("max must not be below min"));
		return;
	}
	gauge.random = value[SEED];
	gauge_start_response(value[MIN], value[MAX] - value[MIN], value[TIMEOUT], value[CYCLES]);
	reply_ok(reply);
}

enum { PERIOD, LIMIT, PERIODIC_PARAMETERS };

static const struct parameter PERIODIC_TABLE[] TEXT_CONST = {
	[PERIOD] = { "period", SHORTEST_PERIOD, HISTOGRAM_MAX - 1 },
	[LIMIT] = { "timeout", 1, HISTOGRAM_MAX },
};

static void watch_period(struct reply *reply, const char *text)
{
	uint32_t value[] = { [PERIOD] = 0, [LIMIT] = HISTOGRAM_MAX };

	if (refuse_if_running(reply) ||
	    !parameters(reply, text, PERIODIC_TABLE, PERIODIC_PARAMETERS, 1 << PERIOD, value))
		return;
	if (value[LIMIT] <= value[PERIOD]) {
		fail(reply, TEXT("timeout must be longer than the period"));
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

static void tell_response(struct reply *reply)
{
	const struct response *response = &gauge.response;

	reply_key(reply, TEXT("sent"), response->sent);
	reply_key(reply, TEXT("late"), response->late);
	reply_key(reply, TEXT("spurious"), response->spurious);
	reply_key(reply, TEXT("resyncs"), response->resyncs);
	reply_key(reply, TEXT("resync_edges"), response->resync_edges);
	reply_key(reply, TEXT("storms"), response->storms);
	for (uint8_t level = 0; level < 2; level++) {
		reply_line_end(reply);
		reply_key(reply, TEXT("of_series"), level);
		reply_key(reply, TEXT("stored"), gauge.stored[level]);
		reply_key(reply, TEXT("timeouts"), response->timeouts[level]);
		reply_key(reply, TEXT("cut"), response->cut[level]);
		reply_key(reply, TEXT("unkept"), gauge.unkept[level]);
	}
}

static void tell_periodic(struct reply *reply)
{
	reply_key(reply, TEXT("edges"), gauge.periodic.edges);
	reply_key(reply, TEXT("gaps"), gauge.periodic.gaps);
	reply_key(reply, TEXT("shed"), gauge.periodic.shed);
	reply_line_end(reply);
	reply_key(reply, TEXT("of_series"), 0);
	reply_key(reply, TEXT("stored"), gauge.stored[0]);
	reply_key(reply, TEXT("timeouts"), gauge.periodic.timeouts);
	reply_key(reply, TEXT("lost"), gauge.periodic.lost);
	reply_key(reply, TEXT("unkept"), gauge.unkept[0]);
}

static void tell_counters(struct reply *reply, const char *text)
{
	(void)text;
	reply_text(reply, gauge_is_idle() ? TEXT("state=idle mode=") : TEXT("state=running mode="));
	if (gauge.mode == GAUGE_NONE)
		reply_text(reply, TEXT("none"));
	else
		reply_text(reply, gauge.mode == GAUGE_RESPONSE ? TEXT("response") : TEXT("periodic"));
	reply_key(reply, TEXT("ticks"), machine_ticks());
	reply_key(reply, TEXT("stream_dropped"), gauge.stream.dropped);
	reply_key(reply, TEXT("bytes_dropped"), machine_bytes_dropped());
	reply_line_end(reply);
	if (gauge.mode == GAUGE_RESPONSE)
		tell_response(reply);
	else if (gauge.mode == GAUGE_PERIODIC)
		tell_periodic(reply);
	if (gauge.mode != GAUGE_NONE)
		reply_line_end(reply);
	reply_ok(reply);
}

static void tell_bucket(struct reply *reply, uint16_t bucket, uint32_t count)
{
	bool upper = bucket >= HISTOGRAM_HALF;
	bool negative = upper && gauge.mode == GAUGE_PERIODIC;

	if (upper)
		bucket -= HISTOGRAM_HALF;
	reply_text(reply, upper && !negative ? TEXT("b 1 ") : TEXT("b 0 "));
	if (negative)
		reply_text(reply, TEXT("-"));
	reply_unsigned(reply, bucket);
	reply_text(reply, TEXT(" "));
	reply_unsigned(reply, count);
	reply_line_end(reply);
}

static void tell_series(struct reply *reply, uint8_t series)
{
	const struct histogram_stats *stats = &gauge.histogram.current[series];

	reply_key(reply, TEXT("series"), series);
	reply_key(reply, TEXT("count"), stats->count);
	reply_signed_key(reply, TEXT("min"), stats->min);
	reply_signed_key(reply, TEXT("max"), stats->max);
	reply_signed_key(reply, TEXT("sum"), histogram_sum(stats));
	reply_key(reply, TEXT("sum_sq"), histogram_sum_sq(stats));
	reply_line_end(reply);
}

static void tell_histogram(struct reply *reply, bool again)
{
	histogram_show_begin(&gauge.histogram, again);
	reply_key(reply, TEXT("take"), gauge.histogram.takes);
	reply_line_end(reply);
	for (uint16_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint32_t count = histogram_show(&gauge.histogram, bucket);

		if (count)
			tell_bucket(reply, bucket, count);
		else
			gauge_serve(); /* a long row of empty buckets must not hold samples up */
	}
	tell_series(reply, 0);
	if (gauge.mode != GAUGE_PERIODIC)
		tell_series(reply, 1);
	reply_ok(reply);
}

static void show_histogram(struct reply *reply, const char *text)
{
	(void)text;
	tell_histogram(reply, true);
}

static const struct parameter TAKE_TABLE[] TEXT_CONST = { { "n", 0, UINT8_MAX } };

/* The next number says that the take before has arrived; the same number once more, that it has not. */
static void take_histogram(struct reply *reply, const char *text)
{
	uint8_t last = gauge.histogram.takes, next = last + 1;
	uint32_t number = next;

	if (!parameters(reply, text, TAKE_TABLE, 1, 0, &number))
		return;
	if (number != last && number != next) {
		fail(reply, TEXT("n is neither that of the last take nor the next"));
		return;
	}
	gauge.histogram.takes = (uint8_t)number;
	tell_histogram(reply, number == last);
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

/* With a wire from output to input the latency is the instrument's own, and must not vary. */
static void test_self(struct reply *reply, const char *text)
{
	bool steady = true;

	(void)text;
	if (refuse_if_running(reply))
		return;
	gauge_start_response(1600, 1600, 16000, SELFTEST_CYCLES);
	while (!gauge_is_idle())
		gauge_serve();
	for (uint8_t series = 0; series < 2; series++) {
		const struct histogram_stats *stats = &gauge.histogram.current[series];

		steady = steady && stats->count == SELFTEST_CYCLES && stats->max - stats->min <= 1;
		tell_series(reply, series);
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
	{ "help", "this list", help },
	{ "id", "who this is; all times are in ticks of tick_ps", identify },
	{ "time", "ticks since power-up", tell_ticks },
	{ "response", "[min=] [max=] [timeout=] [count=] [seed=]: stimuli after random waits", respond },
	{ "periodic", "period= [timeout=]: deviations from the period of falling edges", watch_period },
	{ "stop", "end the measurement, completing the cycle begun", stop },
	{ "stats", "what was counted", tell_counters },
	{ "hist", "rows 'b series bucket count', then exact statistics since the last take", show_histogram },
	{ "take", "[n=]: the same, and statistics begin anew once the next n is asked for", take_histogram },
	{ "stream on", "send each sample in binary frames too", stream_on },
	{ "stream off", "", stream_off },
	{ "selftest", "the instrument's own latency; wire output to input", test_self },
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
	fail(reply, TEXT("unknown command; see help"));
}

void commands_execute(struct line *line)
{
	struct reply reply;
	enum line_check check = LINE_DAMAGED;

	if (!line->overlong)
		check = line_check(line);
	reply_begin(&reply, check != LINE_PLAIN);
	if (line->overlong)
		fail(&reply, TEXT("line too long"));
	else if (check == LINE_DAMAGED)
		fail(&reply, TEXT("damaged line"));
	else
		dispatch(&reply, line->text);
}
