/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bank_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "settings.h"

static const char *const counter_texts[FE_BANK_COUNTERS] = {
	[FE_BANK_SEEN] = "seen",
	[FE_BANK_ANSWERED] = "answered",
	[FE_BANK_UNCHANGED] = "unchanged",
	[FE_BANK_TOGGLED] = "toggled",
	[FE_BANK_WINDOWS] = "windows",
	[FE_BANK_CORE_OVERRUNS] = "core_overruns",
};

/*
 * Settings of the kernel's task, before and after the run ----------------------------------------
 */

static const char *const setting_names[FE_BANK_SETTINGS] = {
	[FE_BANK_POLICY] = "policy",
	[FE_BANK_PRIORITY] = "priority",
	[FE_BANK_CPU] = "cpu",
	[FE_BANK_IRQ] = "irq",
};

const char *bank_policy(int policy)
{
	return policy_text(thread_policy_of(policy));
}

static void set_value(char **setting, int which, int32_t value)
{
	if (which == FE_BANK_POLICY)
		setting_text(setting, bank_policy(value));
	else
		setting_int(setting, value);
}

static bool of_thread(int which)
{
	return which == FE_BANK_POLICY || which == FE_BANK_PRIORITY;
}

static struct setting *add_setting(struct settings_read *read, int which, const struct fe_bank_value *value)
{
	struct setting *setting = setting_add(read, setting_names[which], NULL);

	if (of_thread(which))
		snprintf(setting->thread, sizeof(setting->thread), "fastenough");
	if (value->known & FE_BANK_REQUESTED)
		set_value(&setting->requested, which, value->requested);
	if (value->known & FE_BANK_IN_EFFECT)
		set_value(&setting->in_effect, which, value->in_effect);
	return setting;
}

void bank_settings_before(struct run *run)
{
	const struct bank_source *source = bank_source_of(run);

	for (int i = 0; i < FE_BANK_SETTINGS; i++) {
		const struct fe_bank_value *value = &source->settings[i];
		struct setting *setting;

		if (!value->known)
			continue;
		setting = add_setting(&run->settings_before, i, value);
		setting->real_time = of_thread(i);
		setting->differs = value->known & FE_BANK_REQUESTED && !setting_as_requested(setting);
		if (setting->differs)
			setting_explain(setting, "%s %s of the module's task was requested, %s is in effect", setting_names[i],
					setting->requested, setting->in_effect);
	}
}

void bank_settings_after(struct run *run)
{
	const struct bank_source *source = bank_source_of(run);

	for (int i = 0; i < FE_BANK_SETTINGS; i++) {
		const struct fe_bank_value *before = &source->settings[i], *after = &source->bank.head.settings[i];
		const struct setting *setting;
		char *was = NULL;

		if (!before->known)
			continue;
		setting = add_setting(&run->settings_after, i, after);
		set_value(&was, i, before->in_effect);
		if (before->in_effect != after->in_effect)
			run_fail(run, "%s of the module's task changed during the run, from %s to %s; do not change it",
				 setting_names[i], was, setting->in_effect);
		free(was);
	}
}

/*
 * Reading ----------------------------------------------------------------------------------------
 */

static ssize_t read_whole(const struct bank_source *source)
{
	ssize_t size;

	do {
		size = read(source->fd, source->bytes, FE_BANK_BYTES);
	} while (size < 0 && errno == EINTR);
	return size;
}

/* Each bank begins where the previous one ended, and has the same task. */
static bool follows(const struct fe_bank_head *head, const struct fe_bank_head *before)
{
	return head->begin_ns == before->end_ns && head->task == before->task &&
	       head->series_count == before->series_count && head->series[0].kind == before->series[0].kind &&
	       head->series[1].kind == before->series[1].kind && head->period_ns == before->period_ns;
}

static bool next_bank(struct bank_source *source, bool first, char fault[BANK_FAULT])
{
	struct fe_bank_head before = source->bank.head;
	ssize_t size = read_whole(source);

	if (size < 0) {
		snprintf(fault, BANK_FAULT, "%s", strerror(errno));
		return false;
	}
	if (!bank_check(source->bytes, (size_t)size, &source->bank, fault))
		return false;
	if (first || follows(&source->bank.head, &before))
		return true;
	snprintf(fault, BANK_FAULT, "the bank does not follow the one before");
	return false;
}

static bool read_bank(struct run *run)
{
	struct bank_source *source = bank_source_of(run);
	char fault[BANK_FAULT];

	if (!source->lost && !next_bank(source, false, fault)) {
		source->lost = true;
		run_fail(run, "%s: %s", source->device, fault);
	}
	return !source->lost;
}

/*
 * While it runs ----------------------------------------------------------------------------------
 */

static struct instant end_of(const struct fe_bank_head *head)
{
	return (struct instant){head->end_ns, head->end_ns + wall_offset_ns()};
}

static void bank_begin(struct run *run)
{
	if (read_bank(run))
		run->begin = end_of(&bank_source_of(run)->bank.head);
}

static void bank_stop(struct run *run)
{
	struct bank_source *source = bank_source_of(run);

	if (!source->lost && write(source->fd, FE_BANK_STOP, strlen(FE_BANK_STOP)) < 0)
		run_fail(run, "%s: the task cannot be stopped: %s", source->device, strerror(errno));
}

_Static_assert(FE_BANK_K == SERIES_K && FE_BANK_HALF == SERIES_HALF && FE_BANK_RISE_K == SERIES_RISE_K &&
	       FE_BANK_SUM_MOST == SERIES_SUM_MOST, "scales differ");

static bool fill(struct series *series, const struct fe_bank_series *from, const fe_u32 *buckets)
{
	struct counted counted = {
		.stats = from->stats, .lost = from->lost, .missed = from->missed, .gaps = from->gaps,
		.first = from->first, .size = from->buckets, .buckets = buckets, .edges = FE_BANK_EDGES, .rises = from->rises};

	if (!source_fill(series, &counted))
		return false;
	if (from->stats.count && from->stats.max > series->highest_ns && !series->spec.silent) {
		uint32_t written = atomic_load(&series->events_written);

		series->highest_ns = from->stats.max;
		series->highest_cpu = from->max_cpu;
		series->events[written % EVENTS] =
			(struct event){.mono_ns = from->max_at_ns, .value = from->stats.max, .maximum = true};
		atomic_store(&series->events_written, written + 1);
		series->epochs[atomic_load(&series->current)].events++;
	}
	return true;
}

static struct instant bank_collect(struct run *run)
{
	struct bank_source *source = bank_source_of(run);
	const struct bank *bank = &source->bank;

	if (!read_bank(run))
		return run->begin;
	for (fe_u32 i = 0; i < bank->head.series_count; i++)
		if (!fill(source->series[i], &bank->head.series[i], bank->buckets[i])) {
			run_fail(run, "series %s: its values are too many, or impossible", source->series[i]->spec.name);
			source->lost = true;
		}
	for (int i = 0; i < FE_BANK_COUNTERS; i++)
		source->counted[i] += bank->head.counted[i];
	return end_of(&bank->head);
}

/* Nothing is known of an interrupt, which has nothing of it. */
static void bank_thread(const struct run *run, struct counters *counters)
{
	static const enum counter counter_of[FE_BANK_THREAD_COUNTERS] = {
		[FE_BANK_VOLUNTARY_SWITCHES] = COUNTER_VOLUNTARY_SWITCHES,
		[FE_BANK_INVOLUNTARY_SWITCHES] = COUNTER_INVOLUNTARY_SWITCHES,
		[FE_BANK_MIGRATIONS] = COUNTER_MIGRATIONS,
	};
	const struct bank_source *source = bank_source_of(run);

	if (source->lost || !source->bank.head.threaded)
		return;
	for (int i = 0; i < FE_BANK_THREAD_COUNTERS; i++)
		counter_set(counters, counter_of[i], (int64_t)source->bank.head.thread_counters[i]);
}

/*
 * What it says -----------------------------------------------------------------------------------
 */

static void json_interval_counts(struct json *json, const struct run *run)
{
	const struct fe_bank_head *head = &bank_source_of(run)->bank.head;

	for (int i = 0; i < FE_BANK_COUNTERS; i++)
		if (head->counters >> i & 1)
			json_member_uint(json, counter_texts[i], bank_source_of(run)->lost ? 0 : head->counted[i]);
}

static void json_total_counts(struct json *json, const struct run *run)
{
	const struct fe_bank_head *head = &bank_source_of(run)->bank.head;

	for (int i = 0; i < FE_BANK_COUNTERS; i++) {
		char since_load[32];

		if (!(head->counters >> i & 1))
			continue;
		snprintf(since_load, sizeof(since_load), "%s_since_load", counter_texts[i]);
		json_member_uint(json, counter_texts[i], bank_source_of(run)->counted[i]);
		json_member_uint(json, since_load, head->counted_since_load[i]);
	}
}

static void bank_begin_totals(struct run *run)
{
	struct bank_source *source = bank_source_of(run);

	memset(source->counted, 0, sizeof(source->counted));
}

/*
 * Opening ----------------------------------------------------------------------------------------
 */

static void __attribute__((noreturn)) no_device(const char *device, int error)
{
	if (error == EBUSY)
		bad_input("%s is in use by another run; end that run first", device);
	if (error == ENOENT)
		bad_input("no such device: %s; load the module first (docs/module.md)", device);
	bad_input("cannot open %s: %s; run as root, or give the module's device", device, strerror(error));
}

/* A fault of the device is not bad input. */
static void __attribute__((noreturn)) unusable(const char *device, const char *fault)
{
	char text[512];
	int size = snprintf(text, sizeof(text), PROGRAM ": failed: %s: %s\n", device, fault), error;

	output_write(STDERR_FILENO, text, (size_t)size, &error);
	quick_exit(STATUS_FAILED);
}

static const struct source bank_calls = {
	.begin = bank_begin,
	.stop = bank_stop,
	.collect = bank_collect,
	.interval_counters = json_interval_counts,
	.total_counters = json_total_counts,
	.begin_totals = bank_begin_totals,
	.thread = bank_thread,
	.settings_before = bank_settings_before,
	.settings_after = bank_settings_after,
};

static int cpu_of(const struct bank_source *source)
{
	const struct fe_bank_value *cpu = &source->settings[FE_BANK_CPU];

	return cpu->known & FE_BANK_IN_EFFECT ? cpu->in_effect : -1;
}

struct bank_source *bank_source_open(struct run *run, const char *device)
{
	struct bank_source *source = calloc(1, sizeof(*source));
	char fault[BANK_FAULT];

	if (!source)
		abort();
	source->device = device;
	source->bytes = run_allocate(run, FE_BANK_BYTES);
	source->fd = open(device, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (source->fd < 0)
		no_device(device, errno);
	if (!next_bank(source, true, fault))
		unusable(device, fault);
	if (source->bank.head.stopped)
		bad_input("the module's task was stopped at the end of a run; unload and reload the module");
	memcpy(source->settings, source->bank.head.settings, sizeof(source->settings));
	memcpy(source->implementation, source->bank.head.implementation, sizeof(source->implementation));
	source->source = bank_calls;
	source->source.implementation = source->implementation;
	source->source.cpu = cpu_of(source);
	run->source = &source->source;
	return source;
}
