/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was requested of a task in the kernel and what is in effect, before the run and after it. */
#include <stdio.h>
#include <string.h>

#include "bank_source.h"
#include "settings.h"

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

static void value_text(char text[64], int which, int32_t value)
{
	if (which == FE_BANK_POLICY)
		setting_text(text, bank_policy(value));
	else
		setting_int(text, value);
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
		value_text(setting->requested, which, value->requested);
	if (value->known & FE_BANK_IN_EFFECT)
		value_text(setting->in_effect, which, value->in_effect);
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
		char was[64];

		if (!before->known)
			continue;
		value_text(was, i, before->in_effect);
		if (before->in_effect != after->in_effect)
			run_fail(run, "%s of the module's task changed during the run, from %s to %s; do not change it",
				 setting_names[i], was, add_setting(&run->settings_after, i, after)->in_effect);
		else
			add_setting(&run->settings_after, i, after);
	}
}
