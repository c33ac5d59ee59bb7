/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The head line: the measured acts, the settings, and the cost of measuring. */
#include <stdio.h>
#include <string.h>

#include "record.h"
#include "source.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_LENGTH 36

static const char *const role_names[] = {
	[SERIES_VERDICT] = "verdict",
	[SERIES_DIAGNOSTIC] = "diagnostic",
	[SERIES_THROUGHPUT] = "throughput",
};

static void write_series(struct json *json, const struct series *series, int64_t k)
{
	const struct series_spec *spec = &series->spec;

	json_open(json, '{');
	json_member_int(json, "id", series->id);
	json_member_text(json, "name", spec->name);
	json_member_text(json, "unit", "ns");
	json_member_text(json, "clock", spec->clock ? spec->clock : "monotonic");
	json_member_text(json, "from", spec->from);
	json_member_text(json, "to", spec->to);
	json_member_int(json, "k", series_interval_k(series, k));
	json_member_text(json, "role", role_names[spec->role]);
	json_key(json, "two_sided");
	json_bool(json, spec->two_sided);
	json_key(json, "corrected");
	json_bool(json, spec->corrected);
	json_key(json, "relative");
	json_bool(json, spec->relative);
	json_member_int(json, "rise_k", SERIES_RISE_K);
	if (!spec->any_cpu)
		json_member_int(json, "cpu", spec->cpu);
	if (spec->period_ns)
		json_member_int(json, "period_ns", spec->period_ns);
	if (spec->bytes)
		json_member_int(json, "bytes", spec->bytes);
	json_labels(json, spec->labels);
	if (spec->refused)
		json_member_text(json, "refused", spec->refused);
	json_close(json, '}');
}

static void write_setting(struct json *json, const struct setting *setting)
{
	json_open(json, '{');
	json_setting_place(json, setting);
	json_key(json, "requested");
	json_raw(json, setting->requested, strlen(setting->requested));
	json_key(json, "in_effect");
	json_raw(json, setting->in_effect, strlen(setting->in_effect));
	if (*setting->reason)
		json_member_text(json, "reason", setting->reason);
	json_close(json, '}');
}

static void write_tool(struct json *json)
{
	json_key(json, "tool");
	json_open(json, '{');
	json_member_text(json, "name", PROGRAM);
	json_member_text(json, "version", PROBE_VERSION);
	json_member_text(json, "build", PROBE_BUILD);
	json_close(json, '}');
}

static void write_parameters(struct json *json, const struct run *run)
{
	json_key(json, "parameters");
	json_open(json, '{');
	if (!run->source && !run->probe->watches) {
		json_member_text(json, "policy", policy_names[run->settings->policy]);
		if (run->settings->priority)
			json_member_int(json, "priority", run->settings->priority);
	}
	json_member_int(json, "duration_ns", run->settings->duration_ns);
	json_member_int(json, "loops", run->settings->loops);
	if (run->settings->warm_up_ns)
		json_member_int(json, "warm_up_ns", run->settings->warm_up_ns);
	if (run->parameters.used)
		json_raw(json, ",", 1);
	json_raw(json, run->parameters.text ? run->parameters.text : "", run->parameters.used);
	json_close(json, '}');
}

/* Facts that a bench collects about the machine later apply to this recording only if the boot is the same. */
static void write_boot_id(struct json *json)
{
	char id[BOOT_ID_LENGTH + 1] = "";
	FILE *file = fopen(BOOT_ID, "re");

	if (!file)
		return;
	if (fgets(id, sizeof id, file) && strlen(id) == BOOT_ID_LENGTH)
		json_member_text(json, "boot_id", id);
	fclose(file);
}

static void write_marks(struct json *json, const struct run *run)
{
	json_key(json, "marks");
	json_open(json, '[');
	if (machine_is_virtual())
		json_text(json, "virtual-machine");
	if (run->self_measured)
		json_text(json, "self-measured");
	if (!settings_real_time(run))
		json_text(json, "not-real-time");
	json_close(json, ']');
}

static void write_cost(struct json *json, const struct run *run)
{
	json_key(json, "cost");
	json_open(json, '{');
	json_key(json, "clock_read_ns");
	json_fixed(json, run->clock_read_ns_thousandths);
	json_key(json, "clock_step_ns");
	if (run->clock_step_ns)
		json_int(json, run->clock_step_ns);
	else
		json_null(json);
	json_key(json, "record_ns");
	json_fixed(json, run->record_ns_thousandths);
	json_close(json, '}');
}

void record_head(struct run *run)
{
	struct json *json = &run->line;

	if (!recording(run))
		return;
	line_begin(run, "head");
	json_member_text(json, "format", "fastenough-recording");
	json_member_int(json, "version", 2);
	write_tool(json);
	json_member_text(json, "run_id", run->run_id);
	json_member_text(json, "probe", run->source ? run->source->probe : run->probe->name);
	json_member_text(json, "implementation", run->source ? run->source->implementation : platform_name);
	write_parameters(json, run);
	json_key(json, "series");
	json_open(json, '[');
	for_each_series(entry, run)
		write_series(json, entry->series, run->settings->interval_k);
	json_close(json, ']');
	json_key(json, "settings");
	json_open(json, '[');
	for (int i = 0; i < run->settings_before.count; i++)
		write_setting(json, &run->settings_before.list[i]);
	json_close(json, ']');
	write_cost(json, run);
	json_member_int(json, "interval_ns", run->settings->report_ns);
	json_instant(json, "begin", run->begin);
	write_boot_id(json);
	write_marks(json, run);
	line_end(run);
}
