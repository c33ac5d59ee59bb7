/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collects the counts of the kernel programs for each interval.
 *
 * The programs count in one of two epochs.  The monitor makes the other epoch current, waits until all programs that
 * started before have ended, then reads and clears the old epoch.  Nothing is lost or counted twice.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"
#include "monitor.skel.h"

static const char *const counter_texts[MONITOR_COUNTERS] = {
	[MONITOR_UNMATCHED] = "monitor_unmatched",
	[MONITOR_DROPPED] = "monitor_dropped",
	[MONITOR_SUPPRESSED] = "monitor_suppressed",
	[MONITOR_NO_SLEEP] = "monitor_no_sleep",
	[MONITOR_NO_RETURN] = "monitor_no_return",
	[MONITOR_LOST_SAMPLES] = "monitor_unkept",
};

static void read_counters(struct monitor *monitor)
{
	const struct monitor_bpf *programs = monitor->programs;

	memcpy(monitor->at_last, monitor->now, sizeof(monitor->now));
	monitor->now[MONITOR_UNMATCHED] = __atomic_load_n(&programs->bss->unmatched, __ATOMIC_RELAXED);
	monitor->now[MONITOR_DROPPED] = __atomic_load_n(&programs->bss->dropped, __ATOMIC_RELAXED);
	monitor->now[MONITOR_NO_SLEEP] = __atomic_load_n(&programs->bss->no_sleep, __ATOMIC_RELAXED);
	monitor->now[MONITOR_NO_RETURN] = __atomic_load_n(&programs->bss->no_return, __ATOMIC_RELAXED);
	monitor->now[MONITOR_LOST_SAMPLES] = __atomic_load_n(&programs->bss->lost_samples, __ATOMIC_RELAXED);
	monitor->now[MONITOR_SUPPRESSED] = __atomic_load_n(&programs->bss->unseen, __ATOMIC_RELAXED) + programs_suppressed(monitor);
}

void monitor_interval_counters(struct json *json, const struct run *run)
{
	const struct monitor *monitor = monitor_of(run);

	for (int i = 0; i < MONITOR_COUNTERS; i++)
		json_member_uint(json, counter_texts[i], monitor->now[i] - monitor->at_last[i]);
}

void monitor_total_counters(struct json *json, const struct run *run)
{
	const struct monitor *monitor = monitor_of(run);

	for (int i = 0; i < MONITOR_COUNTERS; i++)
		json_member_uint(json, counter_texts[i], monitor->now[i] - monitor->at_begin[i]);
}

void monitor_begin_totals(struct run *run)
{
	struct monitor *monitor = monitor_of(run);

	memcpy(monitor->at_begin, monitor->now, sizeof(monitor->now));
}

/* Starts the counting of the programs. */
void monitor_begin(struct run *run)
{
	struct monitor *monitor = monitor_of(run);

	read_counters(monitor);
	monitor_begin_totals(run);
	run->begin = instant_now();
	__atomic_store_n(&monitor->programs->bss->counting, 1, __ATOMIC_SEQ_CST);
}

/* Waits until all programs that run now have ended.  With nohz_full the kernel refuses membarrier(); an update of a map of
 * maps waits for the same. */
static bool await_programs(struct monitor *monitor)
{
	const struct monitor_bpf *programs = monitor->programs;
	__u32 key = 0;
	int inner;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return true;
	inner = bpf_map__fd(programs->maps.waited_for);
	return !bpf_map_update_elem(bpf_map__fd(programs->maps.waiting), &key, &inner, BPF_ANY);
}

/* Stops the counting.  The last interval ends now, not when the last program has ended. */
void monitor_stop(struct run *run)
{
	struct monitor *monitor = monitor_of(run);

	__atomic_store_n(&monitor->programs->bss->counting, 0, __ATOMIC_SEQ_CST);
	monitor->stopped = instant_now();
	await_programs(monitor);
}

static bool fill(struct series *series, const struct bank *bank)
{
	struct counted counted = {
		.stats = bank->stats, .lost = bank->lost, .gaps = bank->gaps, .edges = BANK_EDGES, .rises = bank->rises};

	if (bank->stats.count) {
		counted.first = series_index(series, bank->stats.min);
		counted.size = (uint32_t)(series_index(series, bank->stats.max) - counted.first) + 1;
		counted.buckets = &bank->buckets[counted.first];
	}
	return source_fill(series, &counted);
}

static void empty(struct bank *bank, const struct series *series)
{
	int32_t first = series_index(series, bank->stats.min), last = series_index(series, bank->stats.max);

	if (bank->stats.count)
		memset(&bank->buckets[first], 0, (size_t)(last - first + 1) * sizeof(*bank->buckets));
	memset(bank, 0, offsetof(struct bank, buckets));
}

/* Reports a maximum whose finding was lost. */
static void report_maximum(struct run *run, struct series *series, const struct bank *bank, struct instant end)
{
	if (bank->stats.count && bank->stats.max > series->recorded_max_ns)
		record_source_event(run, series, &(struct event){.mono_ns = end.mono_ns, .value = bank->stats.max, .maximum = true});
}

static void read_bank(struct monitor *monitor, unsigned epoch, unsigned cpu, unsigned station, struct instant end)
{
	size_t index = ((epoch & 1) * monitor->cpus + cpu) * STATIONS + station;
	struct bank *bank = (struct bank *)(monitor->banks + index * BANK_BYTES(monitor->filter.k));
	struct series *series = *monitor_series(monitor, cpu, station);

	if (!series || !(bank->stats.count | bank->lost))
		return;
	if (!fill(series, bank))
		run_fail(monitor->run, "series %s: its values are too many, or impossible", series->spec.name);
	report_maximum(monitor->run, series, bank, end);
	empty(bank, series);
}

static void read_findings(struct monitor *monitor)
{
	uint64_t lost_findings = __atomic_load_n(&monitor->programs->bss->lost_findings, __ATOMIC_RELAXED);

	monitor->findings_left = FINDINGS_A_CALL;
	ring_buffer__consume(monitor->findings);
	monitor->run->events_dropped += lost_findings - monitor->lost_findings;
	monitor->lost_findings = lost_findings;
}

void monitor_poll(struct run *run)
{
	struct monitor *monitor = monitor_of(run);

	monitor->epoch = monitor->programs->bss->epoch;
	for (int i = 0; i < monitor->deferred_count; i++)
		finding_record(monitor, &monitor->deferred[i]);
	monitor->deferred_count = 0;
	read_findings(monitor);
}

struct instant monitor_collect(struct run *run)
{
	struct monitor *monitor = monitor_of(run);
	unsigned epoch = monitor->programs->bss->epoch;
	struct instant end;

	monitor_poll(run);
	monitor->programs->bss->recordings[(epoch + 1) & 1] = run->series->series->recordings;
	__atomic_store_n(&monitor->programs->bss->epoch, epoch + 1, __ATOMIC_SEQ_CST);
	end = monitor->stopped.mono_ns ? monitor->stopped : instant_now();
	if (!await_programs(monitor))
		run_fail(run, "the kernel does not report when an interval's counts are complete: %s", strerror(errno));
	read_findings(monitor);
	read_counters(monitor);
	for (unsigned cpu = 0; cpu < monitor->cpus; cpu++)
		for (unsigned station = 0; station < STATIONS; station++)
			read_bank(monitor, epoch, cpu, station, end);
	return end;
}
