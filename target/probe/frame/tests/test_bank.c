/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nothing of a bank is believed before it has been checked: cut off, of another version, absurd, or with any bit wrong. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "series.h"

#include "bank_read.h"

#define FLIPS 20000
#define VALUES 4

static const int64_t values[VALUES] = {-700, 1500, 1500, 5000};

/* A bank of a timer handler, as the module would lay it out; its size. */
static size_t lay_out(unsigned char *bytes)
{
	struct fe_bank_head *head = (struct fe_bank_head *)bytes;
	uint32_t *buckets = (uint32_t *)(head + 1);

	memset(bytes, 0, FE_BANK_BYTES);
	*head = (struct fe_bank_head){
		.magic = FE_BANK_MAGIC, .version = FE_BANK_VERSION, .task = FE_BANK_TIMER_HANDLER, .series_count = 2,
		.counters = 1 << FE_BANK_TOGGLED, .begin_ns = 1000, .end_ns = 2000, .period_ns = 1000000,
		.counted = {[FE_BANK_TOGGLED] = 3}, .counted_since_load = {[FE_BANK_TOGGLED] = 9},
		.in_line = -1, .out_line = -1, .chip = "a \"chip\" \\ of\n", .module_version = "0.2.0",
		.implementation = "linux-kernel"};
	for (int i = 0; i < 2; i++) {
		struct fe_bank_series *series = &head->series[i];

		series->kind = i ? FE_BANK_WAKEUP_CORRECTED : FE_BANK_WAKEUP;
		for (int n = 0; n < VALUES; n++)
			fe_stats_add(&series->stats, values[n]);
		series->first = series_bucket(series->stats.min);
		series->buckets = (uint32_t)(series_bucket(series->stats.max) - series->first + 1);
		for (int n = 0; n < VALUES; n++)
			buckets[series_bucket(values[n]) - series->first]++;
		buckets += series->buckets;
		series->max_at_ns = 1000;
		series->rises[1] = 1;
		series->rises[9] = -1;
	}
	head->bytes = (uint32_t)((unsigned char *)buckets - bytes);
	return head->bytes;
}

/* In memory that ends where the bank does, so that reading beyond it is seen. */
static bool sound(const unsigned char *bytes, size_t size)
{
	unsigned char *copy = malloc(size ? size : 1);
	char fault[BANK_FAULT] = "";
	struct bank bank;
	bool is_sound;

	memcpy(copy, bytes, size);
	is_sound = bank_check(copy, size, &bank, fault);
	check(is_sound == !*fault && strlen(fault) < BANK_FAULT && !strchr(fault, '\n'));
	for (uint32_t i = 0; is_sound && i < bank.head.series_count; i++) {
		const struct fe_bank_series *series = &bank.head.series[i];

		check(series->first > -SERIES_HALF && series->first + (int64_t)series->buckets <= SERIES_HALF);
		check(series->buckets == 0 || bank.buckets[i][series->buckets - 1] > 0);
	}
	free(copy);
	return is_sound;
}

static void test_cut_off(const unsigned char *bytes, size_t size)
{
	for (size_t cut = 0; cut < size; cut++)
		check(!sound(bytes, cut));
	check(!sound(bytes, size + 4));
}

#define ABSURD(field, value)                                            \
	do {                                                            \
		size_t whole = lay_out(bytes);                          \
		head->field = (value);                                  \
		check(!sound(bytes, whole));                            \
	} while (0)

static void test_absurd(unsigned char *bytes)
{
	struct fe_bank_head *head = (struct fe_bank_head *)bytes;

	ABSURD(magic, 0);
	ABSURD(version, FE_BANK_VERSION + 1);
	ABSURD(bytes, 0);
	ABSURD(task, FE_BANK_TASKS);
	ABSURD(task, FE_BANK_RESPONSE);
	ABSURD(series_count, 0);
	ABSURD(series_count, 3);
	ABSURD(series_count, UINT32_MAX);
	ABSURD(counters, 1u << FE_BANK_COUNTERS);
	ABSURD(threaded, 2);
	ABSURD(begin_ns, -1);
	ABSURD(end_ns, 999);
	ABSURD(end_ns, INT64_MAX);
	ABSURD(period_ns, 0);
	ABSURD(period_ns, UINT64_MAX);
	ABSURD(counted[FE_BANK_TOGGLED], 10);
	ABSURD(counted_since_load[FE_BANK_TOGGLED], UINT64_MAX);
	ABSURD(thread_counters[FE_BANK_MIGRATIONS], UINT64_MAX);
	ABSURD(series[0].kind, FE_BANK_ANSWER);
	ABSURD(series[0].stats.count, 0);
	ABSURD(series[0].stats.count, UINT64_MAX);
	ABSURD(series[0].stats.min, INT64_MIN);
	ABSURD(series[0].stats.max, INT64_MAX);
	ABSURD(series[0].stats.sum, INT64_MIN);
	ABSURD(series[0].stats.sum, 4 * 5000 + 1);
	ABSURD(series[0].stats.sum_sq_hi, UINT64_MAX);
	ABSURD(series[0].max_cpu, -1);
	ABSURD(series[0].max_cpu, INT32_MAX);
	ABSURD(series[0].max_at_ns, 999);
	ABSURD(series[0].max_at_ns, 2000);
	ABSURD(series[0].lost, UINT64_MAX);
	ABSURD(series[0].missed, UINT64_MAX);
	ABSURD(series[0].gaps, UINT64_MAX);
	ABSURD(series[0].first, INT32_MIN);
	ABSURD(series[0].first, INT32_MAX);
	ABSURD(series[1].buckets, UINT32_MAX);
	ABSURD(series[1].buckets, 0);
	ABSURD(series[0].rises[1], -1);
	ABSURD(series[0].rises[1], INT32_MAX);
	ABSURD(series[0].rises[FE_BANK_EDGES], 1);
}

/* The same values as gaps, in one series. */
static size_t lay_out_spin(unsigned char *bytes)
{
	struct fe_bank_head *head = (struct fe_bank_head *)bytes;

	lay_out(bytes);
	head->task = FE_BANK_SPIN;
	head->series_count = 1;
	head->series[0].kind = FE_BANK_GAP;
	head->period_ns = 0;
	head->width_ns = 500;
	head->window_ns = 1000;
	head->floor_ns = 20;
	head->bytes = (uint32_t)(sizeof(*head) + head->series[0].buckets * sizeof(uint32_t));
	return head->bytes;
}

static void test_spin(unsigned char *bytes)
{
	struct fe_bank_head *head = (struct fe_bank_head *)bytes;
	size_t size = lay_out_spin(bytes);

	ABSURD(width_ns, 1); /* of a task that does not spin */
	ABSURD(window_ns, 1);
	ABSURD(floor_ns, 1);
	lay_out_spin(bytes);
	check(sound(bytes, size));
	head->width_ns = 501; /* more than half of a window */
	check(!sound(bytes, size));
	head->width_ns = 0;
	check(!sound(bytes, size));
	lay_out_spin(bytes);
	head->floor_ns = UINT64_MAX;
	check(!sound(bytes, size));
	lay_out_spin(bytes);
	head->series[0].kind = FE_BANK_WAKEUP;
	check(!sound(bytes, size));
}

static void test_text_without_end(unsigned char *bytes)
{
	struct fe_bank_head *head = (struct fe_bank_head *)bytes;
	size_t size = lay_out(bytes);

	memset(head->chip, 'x', sizeof(head->chip));
	check(!sound(bytes, size));
	lay_out(bytes);
	memset(head->module_version, 'x', sizeof(head->module_version));
	check(!sound(bytes, size));
}

static void test_any_bit(unsigned char *bytes)
{
	size_t size = lay_out(bytes);
	int passed = 0;

	for (int i = 0; i < FLIPS; i++) {
		uint64_t random = next_random();
		/* half of them in the head but for rises, where the numbers are */
		size_t bit = (random >> 1) % (random & 1 ? 8 * size : 8 * offsetof(struct fe_bank_head, series[0].rises));

		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		passed += sound(bytes, size);
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	check(passed < FLIPS / 2);
	check(sound(bytes, size));
}

int main(void)
{
	unsigned char *bytes = malloc(FE_BANK_BYTES);
	size_t size = lay_out(bytes);

	check(sound(bytes, size));
	test_cut_off(bytes, size);
	test_absurd(bytes);
	test_spin(bytes);
	test_text_without_end(bytes);
	test_any_bit(bytes);
	free(bytes);
	return failures ? 1 : 0;
}
