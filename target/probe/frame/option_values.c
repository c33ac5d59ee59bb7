/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an option's text means, and whether it may. */
#include <ctype.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "option_values.h"
#include "units.h"

static void set_integer(const struct option_spec *option, const char *value)
{
	int64_t number;

	if (!parse_integer(value, &number))
		bad_input("--%s: '%s' is not a whole number", option->name, value);
	if (number < option->low || number > option->high)
		bad_input("--%s: %s is out of range; choose %lld to %lld", option->name, value, (long long)option->low,
			  (long long)option->high);
	*(int64_t *)option->target = number;
}

static void set_duration(const struct option_spec *option, const char *value)
{
	char low[32], high[32];
	int64_t ns;

	if (!parse_duration(value, option->plain, &ns))
		bad_input("--%s: '%s' is not a time; write a number and a unit: ns, us, ms, s, m, min, h or d (without unit: %s)",
			  option->name, value, option->plain_name);
	if (ns < option->low || ns > option->high)
		bad_input("--%s: %s is out of range; choose %s to %s", option->name, value,
			  format_most(low, sizeof(low), option->low), format_least(high, sizeof(high), option->high));
	*(int64_t *)option->target = ns;
}

static void set_choice(const struct option_spec *option, const char *value)
{
	char known[256] = "";
	char *end;
	long number = strtol(value, &end, 10);

	for (int i = 0; option->choices[i]; i++) {
		if (!strcmp(value, option->choices[i]) || (*value && !*end && number == i)) {
			*(int *)option->target = i;
			return;
		}
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "", option->choices[i]);
	}
	bad_input("--%s: '%s' is not known; choose one of %s", option->name, value, known);
}

static void set_text(const struct option_spec *option, const char *value)
{
	if (!*value)
		bad_input("--%s: give a value that is not empty", option->name);
	*(const char **)option->target = value;
}

static bool cpu_exists(long cpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld", cpu);
	return access(path, F_OK) == 0 || cpu < sysconf(_SC_NPROCESSORS_CONF);
}

static void add_cpu(const struct option_spec *option, const char *value, long cpu)
{
	struct cpu_list *list = option->target;

	if (cpu >= MAX_CPUS || !cpu_exists(cpu))
		bad_input("--%s %s: there is no CPU %ld; this machine has %ld", option->name, value, cpu,
			  sysconf(_SC_NPROCESSORS_CONF));
	for (int i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return;
	list->cpu[list->count++] = (int)cpu;
}

static void __attribute__((noreturn)) no_cpus(const struct option_spec *option, const char *value)
{
	bad_input("--%s: '%s' is not a list of CPUs; write them as 0-3,5, or !0-3,5 for all but those", option->name, value);
}

/* "0-3,5", or "!0-3,5" for all but those; empty stands for the default where there is one. */
static void set_cpus(const struct option_spec *option, const char *value)
{
	struct cpu_list *list = option->target;
	const char *text = *value == '!' ? value + 1 : value;

	list->count = 0;
	list->except = text > value;
	if (!*text && (list->except || !option->optional))
		no_cpus(option, value);
	while (*text) {
		char *end;
		long first = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
		long last = first;

		if (first >= 0 && *end == '-' && isdigit((unsigned char)end[1]))
			last = strtol(end + 1, &end, 10);
		if (first < 0 || last < first || (*end && (*end != ',' || !end[1])))
			no_cpus(option, value);
		for (long cpu = first; cpu <= last; cpu++)
			add_cpu(option, value, cpu);
		text = *end ? end + 1 : end;
	}
}

void option_set(const struct option_spec *option, const char *value)
{
	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)option->target = true;
		break;
	case OPTION_SET:
		*(int *)option->target = (int)option->low;
		break;
	case OPTION_INTEGER:
		if (option->optional && value == option->optional)
			*(int64_t *)option->target = 0;
		else
			set_integer(option, value);
		break;
	case OPTION_DURATION:
		set_duration(option, value);
		break;
	case OPTION_CHOICE:
		set_choice(option, value);
		break;
	case OPTION_TEXT:
		set_text(option, value);
		break;
	case OPTION_CPUS:
		set_cpus(option, value);
		break;
	}
}
