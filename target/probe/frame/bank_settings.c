/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was requested of a task in the kernel and what is in effect, before the run and after it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bank_source.h"

static const char *const setting_names[FE_BANK_SETTINGS] = {
	[FE_BANK_POLICY] = "policy",
	[FE_BANK_PRIORITY] = "priority",
	[FE_BANK_CPU] = "cpu",
	[FE_BANK_IRQ] = "irq",
};

static void value_text(char text[64], int which, int32_t value)
{
	if (which == FE_BANK_POLICY)
		snprintf(text, 64, "\"%s\"", policy_text(value));
	else
		snprintf(text, 64, "%" PRId32, value);
}

static void add_setting(struct run *run, int which, const struct fe_bank_value *value)
{
	struct setting *setting = setting_add(run, setting_names[which], NULL);

	if (which == FE_BANK_POLICY || which == FE_BANK_PRIORITY)
		snprintf(setting->thread, sizeof(setting->thread), "fastenough");
	if (value->known & FE_BANK_REQUESTED)
		value_text(setting->asked, which, value->requested);
	if (value->known & FE_BANK_IN_EFFECT)
		value_text(setting->granted, which, value->in_effect);
	setting->real_time = which == FE_BANK_POLICY || which == FE_BANK_PRIORITY;
	setting->differs = value->known & FE_BANK_REQUESTED && strcmp(setting->asked, setting->granted);
	if (setting->differs)
		snprintf(setting->reason, sizeof(setting->reason), "%s %s of the module's task was requested, %s is in effect",
			 setting_names[which], setting->asked, setting->granted);
}

static void note_change(struct json *json, const char *name, const char *before, const char *after)
{
	json_open(json, '{');
	json_member_text(json, "name", name);
	json_key(json, "before");
	json_raw(json, before, strlen(before));
	json_key(json, "after");
	json_raw(json, after, strlen(after));
	json_close(json, '}');
}

void source_settings(struct run *run)
{
	for (int i = 0; i < FE_BANK_SETTINGS; i++)
		if (run->source->settings[i].known)
			add_setting(run, i, &run->source->settings[i]);
}

void source_compare(struct run *run)
{
	for (int i = 0; i < FE_BANK_SETTINGS; i++) {
		const struct fe_bank_value *before = &run->source->settings[i], *after = &run->source->bank.head.settings[i];
		char texts[2][64];

		if (!(before->known & FE_BANK_IN_EFFECT) || before->in_effect == after->in_effect)
			continue;
		value_text(texts[0], i, before->in_effect);
		value_text(texts[1], i, after->in_effect);
		note_change(&run->changes, setting_names[i], texts[0], texts[1]);
		run_fail(run, "%s of the module's task was changed while it ran, from %s to %s; leave it alone",
			 setting_names[i], texts[0], texts[1]);
	}
}
