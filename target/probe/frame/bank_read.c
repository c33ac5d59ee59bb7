/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "series.h"

#include "bank_read.h"

/* Counts and instants beyond this could overflow sums. */
#define MOST ((uint64_t)1 << 62)
#define MOST_CPUS ((1 << 20) - 1)

static bool __attribute__((format(printf, 2, 3))) unsound(char fault[BANK_FAULT], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault, BANK_FAULT, format, arguments);
	va_end(arguments);
	return false;
}

static bool check_envelope(const struct fe_bank_head *head, size_t size, char fault[BANK_FAULT])
{
	if (size < offsetof(struct fe_bank_head, task))
		return unsound(fault, "%zu bytes are no bank", size);
	if (head->magic != FE_BANK_MAGIC)
		return unsound(fault, "this is not a bank of fastenough.ko");
	if (head->version != FE_BANK_VERSION)
		return unsound(fault, "the module's banks have version %" PRIu32 ", this probe reads version %u; use module and probe of one release",
			       head->version, FE_BANK_VERSION);
	if (size < sizeof(*head) || head->bytes != size)
		return unsound(fault, "the bank is truncated after %zu bytes", size);
	return true;
}

static bool terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool series_fit(const struct fe_bank_head *head)
{
	if (head->task != FE_BANK_SPIN && (head->width_ns || head->window_ns || head->floor_ns))
		return false;
	if (head->task == FE_BANK_RESPONSE)
		return head->series_count == 1 && head->series[0].kind == FE_BANK_ANSWER;
	if (head->task == FE_BANK_SPIN)
		return head->series_count == 1 && head->series[0].kind == FE_BANK_GAP && head->width_ns &&
		       head->width_ns <= head->window_ns / 2;
	return head->series_count == 2 && head->series[0].kind == FE_BANK_WAKEUP &&
	       head->series[1].kind == FE_BANK_WAKEUP_CORRECTED && head->period_ns;
}

static bool check_head(const struct fe_bank_head *head, char fault[BANK_FAULT])
{
	if (head->task >= FE_BANK_TASKS || head->counters >> FE_BANK_COUNTERS || head->threaded > 1 || !series_fit(head))
		return unsound(fault, "the bank's task is unknown");
	if (!terminated(head->chip, sizeof(head->chip)) || !terminated(head->module_version, sizeof(head->module_version)) ||
	    !terminated(head->implementation, sizeof(head->implementation)) || !*head->implementation)
		return unsound(fault, "a text in the bank is empty or not terminated");
	if (head->begin_ns < 0 || head->end_ns < head->begin_ns || (uint64_t)head->end_ns > MOST || head->period_ns > MOST ||
	    head->window_ns > MOST || head->floor_ns > MOST)
		return unsound(fault, "the bank's times are impossible");
	for (int i = 0; i < FE_BANK_COUNTERS; i++)
		if (head->counted[i] > head->counted_since_load[i] || head->counted_since_load[i] > MOST)
			return unsound(fault, "the bank's counters are impossible");
	for (int i = 0; i < FE_BANK_THREAD_COUNTERS; i++)
		if (head->thread_counters[i] > MOST)
			return unsound(fault, "the bank's counters are impossible");
	return true;
}

/* A sum lies between count times minimum and count times maximum. */
static bool sum_fits(const struct fe_stats *stats)
{
	int64_t count = (int64_t)stats->count, low, high;

	if (__builtin_mul_overflow(count, stats->min, &low) || __builtin_mul_overflow(count, stats->max, &high))
		return fe_magnitude(stats->sum) <= SERIES_SUM_MOST;
	return low <= stats->sum && stats->sum <= high && fe_magnitude(stats->sum) <= SERIES_SUM_MOST;
}

static bool stats_fit(const struct fe_bank_series *series)
{
	const struct fe_stats *stats = &series->stats;

	if (stats->count == 0)
		return series->buckets == 0 && stats->sum == 0 && stats->sum_sq_lo == 0 && stats->sum_sq_hi == 0;
	return series->max_cpu >= 0 && series->max_cpu <= MOST_CPUS && stats->count <= MOST && stats->min > INT64_MIN && stats->min <= stats->max && sum_fits(stats) &&
	       stats->sum_sq_hi < MOST && series->first == series_bucket(stats->min) &&
	       (int64_t)series->first + series->buckets - 1 == series_bucket(stats->max);
}

/* What begins at an edge ends at another. */
static bool rises_fit(const struct fe_bank_series *series)
{
	int64_t sum = 0;

	for (fe_u32 edge = 1; edge <= FE_BANK_EDGES; edge++) {
		sum += series->rises[edge];
		if (sum < 0 || (uint64_t)sum > series->stats.count)
			return false;
	}
	return sum == 0;
}

static bool buckets_fit(const struct fe_bank_series *series, const fe_u32 *buckets)
{
	uint64_t count = 0;

	for (fe_u32 i = 0; i < series->buckets; i++)
		count += buckets[i];
	return count == series->stats.count && (count == 0 || (buckets[0] && buckets[series->buckets - 1]));
}

static bool check_series(const struct fe_bank_head *head, const struct fe_bank_series *series, char fault[BANK_FAULT])
{
	if (series->lost > MOST || series->missed > MOST || series->gaps > MOST ||
	    !rises_fit(series) || !stats_fit(series))
		return unsound(fault, "the bank's series do not add up");
	if (series->stats.count && (series->max_at_ns < head->begin_ns || series->max_at_ns >= head->end_ns))
		return unsound(fault, "an act in the bank lies outside the bank's time");
	return true;
}

bool bank_check(const void *bytes, size_t size, struct bank *bank, char fault[BANK_FAULT])
{
	size_t at = sizeof(bank->head);

	memset(bank, 0, sizeof(*bank));
	memcpy(&bank->head, bytes, size < sizeof(bank->head) ? size : sizeof(bank->head));
	if (!check_envelope(&bank->head, size, fault) || !check_head(&bank->head, fault))
		return false;
	for (fe_u32 i = 0; i < bank->head.series_count; i++) {
		const struct fe_bank_series *series = &bank->head.series[i];

		if (!check_series(&bank->head, series, fault))
			return false;
		if (series->buckets > (size - at) / sizeof(fe_u32))
			return unsound(fault, "the bank is truncated after %zu bytes", size);
		bank->buckets[i] = (const fe_u32 *)((const char *)bytes + at);
		at += series->buckets * sizeof(fe_u32);
		if (!buckets_fit(series, bank->buckets[i]))
			return unsound(fault, "the bank's buckets do not add up");
	}
	return at == size || unsound(fault, "the bank is %zu bytes too long", size - at);
}
