/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the core without hardware: histogram, takes, carries, waits, resynchronisation, CRC, frames, protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc16.h"
#include "gauge.h"
#include "host_machine.h"
#include "random.h"

#define STRING_OF(value) #value
#define STRING(value) STRING_OF(value)

static int failures;

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
			failures++;                                                       \
		}                                                                         \
	} while (0)

static void check_crc(void)
{
	uint16_t crc = 0;

	for (const char *c = "123456789"; *c; c++)
		crc = crc16_add(crc, (uint8_t)*c);
	CHECK(crc == 0x31C3);
}

/* 64 classes of equal width: chi-square with 63 degrees of freedom exceeds 124 for one good seed in 10^5. */
static double chi_square(uint32_t span, uint32_t state)
{
	enum { CLASSES = 64, DRAWS = 640000 };
	unsigned long count[CLASSES] = { 0 };
	double sum = 0;

	for (int i = 0; i < DRAWS; i++) {
		state = random_next(state);
		count[(uint64_t)random_within(state, span) * CLASSES / ((uint64_t)span + 1)]++;
	}
	for (int i = 0; i < CLASSES; i++) {
		double off = (double)count[i] - DRAWS / CLASSES;

		sum += off * off / (DRAWS / CLASSES);
	}
	return sum;
}

static void check_random(void)
{
	bool seen[101] = { false };
	uint32_t state = 7;

	for (int i = 0; i < 100000; i++) {
		uint32_t value;

		state = random_next(state);
		value = random_within(state, 100);
		CHECK(value <= 100);
		seen[value] = true;
	}
	for (int i = 0; i <= 100; i++)
		CHECK(seen[i]);
	CHECK(random_within(UINT32_MAX, 1000000) == 1000000);
	CHECK(random_within(0, 1000000) == 0);
	CHECK(chi_square((1 << 20) - 1, 1) < 124);
	CHECK(chi_square(113087 - 113087 % 64 - 1, 99) < 124);
}

static uint32_t sum_of(struct histogram *histogram)
{
	uint32_t sum = 0;

	histogram_begin_report(histogram, true);
	for (uint16_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += histogram_report_bucket(histogram, i);
	return sum;
}

static void check_histogram(void)
{
	static struct histogram histogram;
	const struct histogram_stats *stats = &histogram.current[0];

	histogram_clear(&histogram);
	CHECK(histogram_add(&histogram, 0, 0, 0, false));
	CHECK(histogram_add(&histogram, 0, 0, HISTOGRAM_MAX, false));
	CHECK(histogram_add(&histogram, 0, 1, 5, true));
	CHECK(!histogram_add(&histogram, 0, 0, HISTOGRAM_MAX + 1, false));
	CHECK(stats->count == 3 && sum_of(&histogram) == 3);
	CHECK(stats->min == -5 && stats->max == (int32_t)HISTOGRAM_MAX);
	CHECK(histogram_sum(stats) == (int64_t)HISTOGRAM_MAX - 5);
	CHECK(histogram_sum_sq(stats) == (uint64_t)HISTOGRAM_MAX * HISTOGRAM_MAX + 25);
}

/* Counts above 65,535 are exact while their wraps can be stored; then samples are refused, not lost silently. */
static void check_carries(void)
{
	static struct histogram histogram;
	uint32_t refused = 0;

	histogram_clear(&histogram);
	for (uint32_t i = 0; i < 200000; i++)
		CHECK(histogram_add(&histogram, 0, 0, 3, false));
	histogram_begin_report(&histogram, true);
	CHECK(histogram_report_bucket(&histogram, 3) == 200000);
	for (uint32_t value = 4; value < 4 + HISTOGRAM_CARRIES; value++) {
		for (uint32_t i = 0; i < 65536; i++)
			refused += !histogram_add(&histogram, 0, 0, value, false);
	}
	CHECK(refused == 1);
	CHECK(sum_of(&histogram) == histogram.current[0].count);
	CHECK(histogram.carries == HISTOGRAM_CARRIES);
	histogram_begin_report(&histogram, false);
	CHECK(histogram.carries == 0 && histogram_report_bucket(&histogram, 3) == 200000 % 65536);
}

/* A reader with the previous reading in `known`: true if the growth of the buckets agrees with the statistics. */
static bool reading_is_consistent(struct histogram *histogram, uint16_t *known, uint32_t *state, uint32_t *added)
{
	uint16_t read[HISTOGRAM_BUCKETS];
	uint32_t sum = 0;

	for (uint16_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		uint32_t count = histogram_report_bucket(histogram, bucket);

		sum += count - known[bucket];
		read[bucket] = (uint16_t)count;
		for (int i = 0; i < 3; i++) {
			*state = random_next(*state);
			histogram_add(histogram, 0, 0, random_within(*state, 5) ? 8 : random_within(*state, 1000), false);
			++*added;
		}
	}
	memcpy(known, read, sizeof(read));
	return sum == histogram->current[0].count;
}

/* Each sample that arrives during a report is in exactly one acknowledged report, with matching statistics, however often a
 * damaged report is requested again. */
static void check_take(void)
{
	static struct histogram histogram;
	static uint16_t known[HISTOGRAM_BUCKETS], damaged[HISTOGRAM_BUCKETS];
	uint32_t state = 5, added = 0, taken = 0;

	histogram_clear(&histogram);
	memset(known, 0, sizeof(known));
	for (int take = 0; take < 300; take++) {
		histogram_begin_report(&histogram, false);
		for (int again = take % 4; again; again--) {
			memcpy(damaged, known, sizeof(known));
			CHECK(reading_is_consistent(&histogram, damaged, &state, &added));
			histogram_begin_report(&histogram, true);
		}
		CHECK(reading_is_consistent(&histogram, known, &state, &added));
		taken += histogram.current[0].count;
	}
	CHECK(added == taken + histogram.next[0].count);
	CHECK(added > 3 * 65536 && histogram.carries <= 1);
}

static void check_takes_by_number(void)
{
	host_begin();
	host.responds = true;
	host.delay = 1234;
	host_command("response min=10 max=20 timeout=9000 count=100 seed=3");
	for (int i = 0; i < 1000; i++)
		gauge_serve();
	CHECK(strstr(host_command("take n=2"), "error n is neither"));
	CHECK(strstr(host_command("take n=1"), "take=1") && strstr(host.output_text, "series=0 count=100 min=1234"));
	CHECK(strstr(host_command("take n=1"), "take=1") && strstr(host.output_text, "series=0 count=100 min=1234"));
	CHECK(strstr(host_command("hist"), "take=1") && strstr(host.output_text, "series=1 count=100 min=1234"));
	CHECK(strstr(host_command("take n=2"), "take=2") && strstr(host.output_text, "series=0 count=0"));
	CHECK(strstr(host_command("take"), "take=3"));
	CHECK(strstr(host_command("take n=256"), "error n must be a number from 0 to 255"));
	CHECK(strstr(host_command("response count=1"), "ok lines=0"));
	CHECK(strstr(host_command("take n=3"), "error n is neither"));
}

static void check_response(void)
{
	host_begin();
	host.responds = true;
	host.delay = 1234;
	CHECK(strstr(host_command("response min=10 max=20 timeout=9000 count=100 seed=3"), "ok lines=0"));
	for (int i = 0; i < 1000; i++)
		gauge_serve();
	CHECK(gauge_is_idle() && host.output);
	CHECK(gauge.response.sent == 200 && host.stimuli == 200);
	CHECK(gauge.histogram.current[0].count == 100 && gauge.histogram.current[1].count == 100);
	CHECK(gauge.histogram.current[0].min == 1234 && gauge.histogram.current[1].max == 1234);
	CHECK(strstr(host_command("hist"), "series=1 count=100 min=1234 max=1234 sum=123400"));
}

/* A board misses one edge of either direction: one sample is lost, and gauge and board are resynchronised. */
static void check_resync(int edge)
{
	host_begin();
	host.responds = true;
	host_command("response min=10 max=20 timeout=8000");
	while (gauge.response.sent < (uint32_t)edge)
		gauge_serve();
	host.responds = false;
	while (gauge.response.resyncs == 0) {
		gauge_serve();
		host.ticks += 100;
	}
	host.responds = true;
	for (int i = 0; i < 200; i++) {
		gauge_serve();
		host.ticks += 100;
	}
	host_command("stop");
	for (int i = 0; i < 100; i++)
		gauge_serve();
	CHECK(gauge_is_idle() && host.output);
	CHECK(gauge.response.resyncs == 1);
	CHECK(gauge.response.timeouts[0] + gauge.response.timeouts[1] == 1);
	CHECK(gauge.response.resync_edges == host.drives);
	CHECK(gauge.histogram.current[0].count + gauge.histogram.current[1].count == gauge.response.sent - 1);
	CHECK(gauge.response.sent > (uint32_t)edge + 10);
}

static void check_periodic(void)
{
	static const uint32_t at[] = { 0, 1000, 2050, 3000, 4000 };
	struct periodic periodic = { .period = 1000, .timeout = 5000 };
	static const int32_t expected[] = { 0, 50, -50, 0 };
	int32_t deviation;

	periodic_begin(&periodic);
	CHECK(!periodic_edge(&periodic, UINT32_MAX - 1500, &deviation));
	periodic_begin(&periodic);
	for (int i = 0; i < 5; i++) {
		bool sample = periodic_edge(&periodic, at[i] + UINT32_MAX - 1500, &deviation);

		CHECK(sample == (i > 0));
		CHECK(i == 0 || deviation == expected[i - 1]);
	}
	periodic_drop(&periodic);
	CHECK(!periodic_edge(&periodic, 8010 + UINT32_MAX - 1500, &deviation));
	CHECK(periodic.lost == 4 && periodic.gaps == 1 && periodic.dropped == 3);
	periodic_poll(&periodic, 14000 + UINT32_MAX - 1500);
	CHECK(periodic.timeouts == 1 && periodic.lost == 5);
	CHECK(!periodic_edge(&periodic, 15000 + UINT32_MAX - 1500, &deviation));
	CHECK(periodic_edge(&periodic, 16001 + UINT32_MAX - 1500, &deviation) && deviation == 1);
}

static size_t unstuff(const uint8_t *in, size_t length, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < length;) {
		uint8_t code = in[i++];

		for (uint8_t j = 1; j < code && i < length; j++)
			out[n++] = in[i++];
		if (i < length)
			out[n++] = 0;
	}
	return n;
}

static void check_stream(void)
{
	static const uint32_t samples[STREAM_SAMPLES] = { 0, 0x01000000, 0xffffffff, 0x80000001 };
	uint8_t payload[64];
	uint16_t crc = 0;
	size_t length;

	host_begin();
	stream_begin(&gauge.stream, true);
	for (int i = 0; i < STREAM_SAMPLES; i++)
		stream_add(&gauge.stream, samples[i]);
	CHECK(host.output_text[0] == 0 && host.output_text[host.output_text_length - 1] == 0);
	CHECK(!memchr(host.output_text + 1, 0, host.output_text_length - 2));
	length = unstuff((uint8_t *)host.output_text + 1, host.output_text_length - 2, payload);
	CHECK(length == STREAM_PAYLOAD && payload[0] == 'S' && payload[1] == 0 && payload[2] == 0);
	CHECK(!memcmp(payload + STREAM_HEAD, samples, sizeof(samples)));
	for (size_t i = 0; i < length - 2; i++)
		crc = crc16_add(crc, payload[i]);
	CHECK(payload[length - 2] == (uint8_t)crc && payload[length - 1] == crc >> 8);
	host.send_full = true;
	stream_add(&gauge.stream, 1);
	stream_flush(&gauge.stream);
	CHECK(gauge.stream.dropped == 1 && gauge.stream.sequence == STREAM_SAMPLES + 1);
}

static void check_commands(void)
{
	host_begin();
	CHECK(strstr(host_command("id"), "gauge=fastenough firmware=" GAUGE_VERSION " mcu=" MACHINE_NAME " protocol=3 tick_ps="
		     STRING(MACHINE_TICK_PS) " k=" STRING(MACHINE_K) " bits=" STRING(MACHINE_BITS)));
	CHECK(strstr(host_command("  "), "error unknown command"));
	CHECK(strstr(host_command("idx"), "error unknown command"));
	CHECK(strstr(host_command("periodic"), "error period is missing"));
	CHECK(strstr(host_command("periodic period=1"), "error period must be a number from " STRING(MACHINE_SHORTEST_PERIOD) " to "));
	CHECK(strstr(host_command("periodic period=99999999999999"), "error period must be a number"));
	CHECK(strstr(host_command("periodic period=1000 timeout=1000"), "error timeout must be longer"));
	CHECK(strstr(host_command("response min=5 max=4"), "error max must not be below min"));
	CHECK(strstr(host_command("response min=5 min=4"), "error min is given twice"));
	CHECK(strstr(host_command("response mim=5"), "error unknown parameter"));
	CHECK(strstr(host_command("response min=5x"), "error min must be a number"));
	CHECK(strstr(host_command("response min=5"), "ok lines=0"));
	CHECK(strstr(host_command("response"), "error measuring; stop first"));
	CHECK(strstr(host_command("id *0000"), "error damaged line *"));
	CHECK(strstr(host_command("time*"), "error damaged line"));
	CHECK(strstr(host_command("time *"), "error damaged line"));
	CHECK(strstr(host_command("0123456789012345678901234567890123456789012345678901234567890123456789"
			      "012345678901234567890123456789"), "error line too long"));
	CHECK(!strcmp(host_command("sti\bop"), "ok lines=0\r\n"));
}

static void check_checked_commands(void)
{
	char line[32];
	uint16_t crc = 0;

	host_begin();
	host.ticks = 18446744073709551615u;
	for (const char *c = "time"; *c; c++)
		crc = crc16_add(crc, (uint8_t)*c);
	snprintf(line, sizeof(line), "time *%04X", crc);
	CHECK(!strcmp(host_command(line), "ticks=18446744073709551615 *A560\r\nok lines=1 *8BDB\r\n"));
}

int main(void)
{
	check_crc();
	check_random();
	check_histogram();
	check_carries();
	check_take();
	check_takes_by_number();
	check_response();
	for (int edge = 1; edge <= 6; edge++)
		check_resync(edge);
	check_periodic();
	check_stream();
	check_commands();
	check_checked_commands();
	return failures != 0;
}
