/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results.h"

#include "gauge.h"
#include "parameters.h"

static void write_response(struct reply *reply)
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
		reply_key(reply, TEXT("stored"), histogram_stored(&gauge.histogram, level));
		reply_key(reply, TEXT("timeouts"), response->timeouts[level]);
		reply_key(reply, TEXT("cut"), response->cut[level]);
		reply_key(reply, TEXT("unkept"), gauge.not_stored[level]);
	}
}

static void write_periodic(struct reply *reply)
{
	reply_key(reply, TEXT("edges"), gauge.periodic.edges);
	reply_key(reply, TEXT("gaps"), gauge.periodic.gaps);
	reply_key(reply, TEXT("dropped"), gauge.periodic.dropped);
	reply_line_end(reply);
	reply_key(reply, TEXT("of_series"), 0);
	reply_key(reply, TEXT("stored"), histogram_stored(&gauge.histogram, 0));
	reply_key(reply, TEXT("timeouts"), gauge.periodic.timeouts);
	reply_key(reply, TEXT("lost"), gauge.periodic.lost);
	reply_key(reply, TEXT("unkept"), gauge.not_stored[0]);
}

void report_counters(struct reply *reply, const char *text)
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
		write_response(reply);
	else if (gauge.mode == GAUGE_PERIODIC)
		write_periodic(reply);
	if (gauge.mode != GAUGE_NONE)
		reply_line_end(reply);
	reply_ok(reply);
}

static void write_bucket(struct reply *reply, uint16_t bucket, uint32_t count)
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

void report_series(struct reply *reply, uint8_t series)
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

static void write_histogram(struct reply *reply, bool again)
{
	histogram_begin_report(&gauge.histogram, again);
	reply_key(reply, TEXT("take"), gauge.histogram.takes);
	reply_line_end(reply);
	for (uint16_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint32_t count = histogram_report_bucket(&gauge.histogram, bucket);

		if (count)
			write_bucket(reply, bucket, count);
		else
			gauge_serve(); /* a long row of empty buckets must not hold samples up */
	}
	report_series(reply, 0);
	if (gauge.mode != GAUGE_PERIODIC)
		report_series(reply, 1);
	reply_ok(reply);
}

void report_histogram(struct reply *reply, const char *text)
{
	(void)text;
	write_histogram(reply, true);
}

static const struct parameter TAKE_TABLE[] TEXT_CONST = { { "n", 0, UINT8_MAX } };

/* The next number acknowledges the previous take; the same number requests it again. */
void take_histogram(struct reply *reply, const char *text)
{
	uint8_t last = gauge.histogram.takes, next = last + 1;
	uint32_t number = next;

	if (!command_parameters(reply, text, TAKE_TABLE, 1, 0, &number))
		return;
	if (number != last && number != next) {
		reply_error(reply, TEXT("n is neither that of the last take nor the next"));
		return;
	}
	gauge.histogram.takes = (uint8_t)number;
	write_histogram(reply, number == last);
}
