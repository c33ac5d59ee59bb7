/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs as values of settings: ranges, and never cut. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "refusal.h"
#include "settings.h"

const char *const policy_names[POLICIES + 1] = {"fifo", "rr", "deadline", "other", NULL};

/* What this test does not reach. */
void refusal_of_policy(char text[REFUSAL_SIZE], int error, int priority, bool deadline)
{
	(void)error;
	(void)priority;
	(void)deadline;
	*text = '\0';
}

void refusal_of_affinity(char text[REFUSAL_SIZE], int error)
{
	(void)error;
	*text = '\0';
}

void refusal_of_reading(char text[REFUSAL_SIZE], int error, const char *call)
{
	(void)error;
	(void)call;
	*text = '\0';
}

void bad_input(const char *format, ...)
{
	(void)format;
	abort();
}

static struct setting list[1];
static struct settings_read room = {.list = list, .most = 1};

/* A new setting in the place of the former one. */
static struct setting *next_setting(void)
{
	room.count = 0;
	return setting_add(&room, "affinity", NULL);
}

/* Each `step`-th CPU below `end`. */
static struct cpu_list every(int step, int end)
{
	struct cpu_list cpus = {0};

	for (int cpu = 0; cpu < end; cpu += step)
		cpus.cpu[cpus.count++] = cpu;
	return cpus;
}

static bool reads(const char *expected, const struct cpu_list *cpus)
{
	struct setting *setting = next_setting();

	setting_cpus(&setting->in_effect, cpus);
	return !strcmp(setting->in_effect, expected) && !strcmp(setting->requested, "null");
}

static void ranges(void)
{
	struct cpu_list many = every(1, 64), all = every(1, MAX_CPUS);

	many.cpu[many.count++] = 70;
	check(reads("\"0-63,70\"", &many));
	check(reads("\"0-1023\"", &all));
	check(reads("\"3\"", &(struct cpu_list){.count = 1, .cpu = {3}}));
	check(reads("\"0-1,3\"", &(struct cpu_list){.count = 3, .cpu = {3, 0, 1}}));
}

/* None of these CPUs is next to another. */
static void nothing_is_cut(void)
{
	struct cpu_list requested = every(2, MAX_CPUS), in_effect = requested;
	struct setting *setting = next_setting();
	const char *last;

	in_effect.cpu[in_effect.count - 1] = MAX_CPUS - 1;
	setting_cpus(&setting->requested, &requested);
	setting_cpus(&setting->in_effect, &requested);
	check(setting_as_requested(setting));
	setting_cpus(&setting->in_effect, &in_effect);
	check(!setting_as_requested(setting));
	last = strrchr(setting->in_effect, ',');
	check(last && !strcmp(last, ",1023\""));
}

int main(void)
{
	ranges();
	nothing_is_cut();
	free(list->requested);
	free(list->in_effect);
	return failures != 0;
}
