/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs, control group and name of the program, and the idle states allowed during the run; only those requested. */
#include <string.h>

#include "idle_states.h"
#include "place.h"
#include "settings.h"

static void read_cgroup(struct settings_read *read, const char *cgroup)
{
	struct setting *setting;

	if (!cgroup)
		return;
	setting = setting_add(read, "cgroup", NULL);
	setting_text(&setting->requested, cgroup);
	if (place_joined(cgroup))
		setting_text(&setting->in_effect, cgroup);
	setting->differs = !setting_as_requested(setting);
	if (setting->differs)
		setting_explain(setting, "control group %s does not list this process", cgroup);
}

static void read_housekeeping(struct settings_read *read, const struct cpu_list *wanted, int error)
{
	struct setting *setting;
	struct cpu_list found;

	if (!wanted->count)
		return;
	setting = setting_add(read, "housekeeping", NULL);
	setting_cpus(&setting->requested, wanted);
	if (!place_read(&found))
		setting_cpus(&setting->in_effect, &found);
	setting->differs = !setting_as_requested(setting);
	if (setting->differs)
		setting_explain(setting, "the reporting thread cannot be kept on CPUs %s (%s)", setting->requested,
				error ? strerror(error) : "the kernel took others");
}

/* What the hold that was read back allows. */
static void read_idle_state(const struct run *run, struct settings_read *read)
{
	int64_t deepest = run->settings->deepest_idle_state, held_us = settings_held_us(run);
	struct setting *setting;

	if (deepest == IDLE_STATE_ANY)
		return;
	setting = setting_add(read, "deepest_idle_state", NULL);
	setting_int(&setting->requested, deepest);
	if (held_us >= 0)
		setting_int(&setting->in_effect, idle_states_deepest("/sys/devices/system/cpu", &run->settings->cpus, held_us));
}

void settings_place_before(struct run *run)
{
	const struct cpu_list *cpus = &run->settings->housekeeping;
	int error = cpus->count ? place_on(cpus) : 0;

	read_cgroup(&run->settings_before, run->settings->cgroup);
	read_housekeeping(&run->settings_before, cpus, error);
	read_idle_state(run, &run->settings_before);
}

void settings_place_after(struct run *run)
{
	read_cgroup(&run->settings_after, run->settings->cgroup);
	read_housekeeping(&run->settings_after, &run->settings->housekeeping, 0);
	read_idle_state(run, &run->settings_after);
}
