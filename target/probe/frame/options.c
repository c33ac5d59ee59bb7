/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "clock.h"
#include "option_values.h"
#include "output.h"
#include "registry.h"
#include "series.h"
#include "units.h"

const char *const policy_names[POLICIES + 1] = {
	[POLICY_FIFO] = "fifo",
	[POLICY_RR] = "rr",
	[POLICY_DEADLINE] = "deadline",
	[POLICY_OTHER] = "other",
};

static struct settings parsed = {
	.policy = -1,
	.interval_ns = NS_PER_MS,
	.lock_memory = true,
	.dma_latency_us = LATENCY_DEFAULT,
	.deepest_idle_state = IDLE_STATE_ANY,
	.timer_slack_ns = 1,
	.report_ns = NS_PER_S,
	.interval_k = SERIES_K,
	.ring_keep_ns = 48 * 3600 * NS_PER_S,
	.ring_mib = 256,
	.ring_cycle_ns = 12 * 3600 * NS_PER_S,
};
static const char *latency_text;
static bool ignored;
static bool default_system;

/* Letters are cyclictest's wherever cyclictest has the letter. */
static const struct option_spec common_options[] = {
	{"priority", 'p', OPTION_INTEGER, &parsed.priority, .low = 1, .high = 99, .acts = true, .help = "real-time priority (98)"},
	{"policy", 0, OPTION_CHOICE, &parsed.policy, .choices = policy_names, .acts = true,
	 .help = "fifo (default), rr, deadline or other"},
	{"affinity", 'a', OPTION_CPUS, &parsed.cpus, .optional = "",
	 .help = "CPUs to measure, as 0-3,5, or !0 for all but those (all this process may use)"},
	{"housekeeping", 0, OPTION_CPUS, &parsed.housekeeping, .help = "CPUs of the thread that reports, as 0-3,5 (any)"},
	{"mainaffinity", 0, OPTION_CPUS, &parsed.housekeeping, .help = "same as --housekeeping"},
	{"cgroup", 0, OPTION_TEXT, &parsed.cgroup, .acts = true,
	 .help = "join this control group first: its folder, or its path below /sys/fs/cgroup"},
	{"thread-name", 0, OPTION_TEXT, &parsed.thread_name, .acts = true,
	 .help = "name of all threads, as ps -L -o comm shows it (fastenough-prob)"},
	{"threads", 't', OPTION_INTEGER, &parsed.threads, .low = 1, .high = 4 * MAX_CPUS, .optional = "0",
	 .acts = true, .help = "number of threads, spread over the CPUs (one per CPU)"},
	{"smp", 'S', OPTION_FLAG, &ignored, .acts = true, .help = "one thread per CPU, all at one priority (the default)"},
	{"interval", 'i', OPTION_DURATION, &parsed.interval_ns, .low = 5 * NS_PER_US, .high = 10 * NS_PER_S,
	 .plain = NS_PER_US, .plain_name = "us", .acts = true, .help = "period of periodic acts, 5us to 10s (1ms)"},
	{"duration", 'D', OPTION_DURATION, &parsed.duration_ns, .low = NS_PER_MS, .high = INT64_MAX / 4, .plain = NS_PER_S,
	 .plain_name = "s", .help = "end after this time (run until Ctrl-C)"},
	{"warm-up", 0, OPTION_DURATION, &parsed.warm_up_ns, .low = 0, .high = 24 * 3600 * NS_PER_S, .plain = NS_PER_S,
	 .plain_name = "s", .acts = true, .help = "warm-up time before counting starts (0)"},
	{"loops", 'l', OPTION_INTEGER, &parsed.loops, .low = 0, .high = INT64_MAX, .acts = true,
	 .help = "end after this number of acts per thread"},
	{"until-interrupt", 0, OPTION_FLAG, &parsed.until_interrupt,
	 .help = "treat SIGINT as the planned end: the run is completed, not aborted"},
	{"runtime", 0, OPTION_DURATION, &parsed.runtime_ns, .low = 1024, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .acts = true, .help = "policy deadline: computing time per period (a fifth of the deadline)"},
	{"deadline", 0, OPTION_DURATION, &parsed.deadline_ns, .low = 1024, .high = 10 * NS_PER_S, .plain = NS_PER_US,
	 .plain_name = "us", .acts = true, .help = "policy deadline: deadline (the period)"},
	{"threshold", 0, OPTION_DURATION, &parsed.threshold_ns, .low = 1, .high = INT64_MAX / 4, .plain = NS_PER_US,
	 .plain_name = "us", .help = "record each value above this as an event"},
	{"breaktrace", 'b', OPTION_DURATION, &parsed.threshold_ns, .low = 1, .high = INT64_MAX / 4, .plain = NS_PER_US,
	 .plain_name = "us", .help = "the same, and end the run at the first such value"},
	{"trace-switch", 0, OPTION_TEXT, &parsed.trace_switch,
	 .help = "with --breaktrace: file to write 0 into just before the end, such as a trace's tracing_on"},
	{"limit", 0, OPTION_DURATION, &parsed.limit_ns, .low = 1, .high = INT64_MAX / 4, .plain = NS_PER_US,
	 .plain_name = "us", .acts = true, .help = "count values above this exactly, and how many occur in a row"},
	{"mlockall", 'm', OPTION_FLAG, &parsed.lock_memory, .acts = true, .help = "lock memory (the default)"},
	{"latency", 0, OPTION_TEXT, &latency_text, .acts = true, .help = "longest wake-up from idle states in us, or off (0)"},
	{"deepest-idle-state", 0, OPTION_INTEGER, &parsed.deepest_idle_state, .low = -1, .high = 64, .acts = true,
	 .help = "deepest idle state allowed, by cpuidle number, enforced like --latency; -1: polling only"},
	{"default-system", 0, OPTION_FLAG, &default_system, .acts = true, .help = "do not limit idle states, same as --latency off"},
	{"timer-slack", 0, OPTION_DURATION, &parsed.timer_slack_ns, .low = 1, .high = NS_PER_S, .plain = 1, .plain_name = "ns",
	 .acts = true, .help = "timer slack of ordinary threads (1ns)"},
	{"allow-difference", 0, OPTION_FLAG, &parsed.allow_difference,
	 .acts = true, .help = "measure even if some requested settings are not in effect"},
	{"report", 0, OPTION_DURATION, &parsed.report_ns, .low = 10 * NS_PER_MS, .high = 3600 * NS_PER_S, .plain = NS_PER_S,
	 .plain_name = "s", .help = "length of an interval in the recording (1s)"},
	{"interval-k", 0, OPTION_INTEGER, &parsed.interval_k, .low = SERIES_RISE_K, .high = SERIES_K,
	 .help = "2^k buckets per octave in the recording's intervals (10); its end has full resolution"},
	{"record", 0, OPTION_TEXT, &parsed.record, .help = "write the recording to this file, or - for standard output"},
	{"ring", 0, OPTION_TEXT, &parsed.ring, .help = "write consecutive recordings into this folder, deleting the oldest for room"},
	{"ring-cycle", 0, OPTION_DURATION, &parsed.ring_cycle_ns, .low = 10 * NS_PER_MS, .high = INT64_MAX / 4, .plain = NS_PER_S,
	 .plain_name = "s", .help = "length of a recording of the ring (12h)"},
	{"ring-keep", 0, OPTION_DURATION, &parsed.ring_keep_ns, .low = NS_PER_MS, .high = INT64_MAX / 4, .plain = NS_PER_S,
	 .plain_name = "s", .help = "time for which a finished recording stays in the ring (48h)"},
	{"ring-mib", 0, OPTION_INTEGER, &parsed.ring_mib, .low = 1, .high = 1 << 20,
	 .help = "maximum size of all recordings of the ring, in MiB (256)"},
	{"run-id", 0, OPTION_TEXT, &parsed.run_id, .help = "name of the run (derived from the time)"},
	{"json", 0, OPTION_FLAG, &parsed.json, .help = "print a summary in JSON at the end"},
	{"histogram", 'h', OPTION_INTEGER, &parsed.histogram_us, .low = 1, .high = 1000000,
	 .help = "print a histogram up to this many us at the end"},
	{"histofall", 'H', OPTION_INTEGER, &parsed.histogram_us, .low = 1, .high = 1000000,
	 .help = "the same, with a last column for all CPUs combined"},
	{"histfile", 0, OPTION_TEXT, &parsed.histogram_file, .help = "write the histogram to this new file instead"},
	{"nsecs", 'N', OPTION_FLAG, &parsed.nsecs, .help = "print times in whole ns"},
	{"quiet", 'q', OPTION_FLAG, &parsed.quiet, .help = "print only the summary at the end"},
	{0},
};

void bad_input(const char *format, ...)
{
	char reason[1024], text[1100];
	va_list arguments;
	int error;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	snprintf(text, sizeof(text), PROGRAM ": %s\n", reason);
	output_write(STDERR_FILENO, text, strlen(text), &error);
	quick_exit(2);
}

/*
 * The command line -------------------------------------------------------------------------------
 */

struct arguments {
	const struct probe *probe;
	char **next;
};

static bool takes_value(const struct option_spec *option)
{
	return option->kind != OPTION_FLAG && option->kind != OPTION_SET;
}

static const struct option_spec *find_in(const struct option_spec *table, const char *name, size_t length, char letter)
{
	for (; table && table->name; table++)
		if (letter ? table->letter == letter : strlen(table->name) == length && !strncmp(table->name, name, length))
			return table;
	return NULL;
}

static bool is_applicable(const struct probe *probe, const struct option_spec *common)
{
	return !(common->acts && probe && probe->watches);
}

static const struct option_spec *find(const struct probe *probe, const char *name, size_t length, char letter)
{
	const struct option_spec *option = find_in(probe->options, name, length, letter);

	if (option)
		return option;
	option = find_in(common_options, name, length, letter);
	return option && is_applicable(probe, option) ? option : NULL;
}

/* In a program with a single probe, the command line does not name it. */
static bool is_only_probe(const struct probe *probe)
{
	return probe && probe == probes[0] && !probes[1];
}

static const char *name_of(const struct probe *probe)
{
	return is_only_probe(probe) ? "" : probe ? probe->name : "NAME";
}

/* Whether this argument is the value of an option whose value is optional. */
static bool begins_value(const struct option_spec *option, const char *argument)
{
	return argument && (isdigit((unsigned char)*argument) || (option->kind == OPTION_CPUS && *argument == '!'));
}

/* The value of an option that needs one: attached, or the next argument. */
static const char *value_of(struct arguments *arguments, const struct option_spec *option, const char *attached)
{
	if (attached)
		return attached;
	if (option->optional && !begins_value(option, *arguments->next))
		return option->optional;
	if (!*arguments->next)
		bad_input("--%s: a value is missing", option->name);
	return *arguments->next++;
}

static void set_option(const struct option_spec *option, const char *value)
{
	option_set(option, value);
	if (option->letter == 'b')
		parsed.stop_at_threshold = true;
	if (option->letter == 'H')
		parsed.histogram_sum = true;
}

static void parse_long(struct arguments *arguments, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	const struct option_spec *option = find(arguments->probe, text, length, 0);

	if (!option)
		bad_input("unknown option --%.*s; see " PROGRAM " %s --help", (int)length, text, name_of(arguments->probe));
	if (!takes_value(option) && equals)
		bad_input("--%s takes no value", option->name);
	set_option(option, takes_value(option) ? value_of(arguments, option, equals ? equals + 1 : NULL) : NULL);
}

static void parse_letters(struct arguments *arguments, const char *letters)
{
	while (*letters) {
		const struct option_spec *option = find(arguments->probe, NULL, 0, *letters);

		if (!option)
			bad_input("unknown option -%c; see " PROGRAM " %s --help", *letters, name_of(arguments->probe));
		letters++;
		if (takes_value(option)) {
			set_option(option, value_of(arguments, option, *letters ? letters : NULL));
			return;
		}
		set_option(option, NULL);
	}
}

static void print_table(const struct probe *probe, const struct option_spec *table)
{
	for (; table && table->name; table++) {
		char left[64];

		if (!is_applicable(probe, table))
			continue;
		snprintf(left, sizeof(left), "%c%c%s --%s%s", table->letter ? '-' : ' ', table->letter ? table->letter : ' ',
			 table->letter ? "," : " ", table->name, takes_value(table) ? (table->optional ? " [..]" : " ..") : "");
		printf("  %-26s %s\n", left, table->help);
	}
}

static void print_probes(void)
{
	for (const struct probe *const *probe = probes; *probe; probe++)
		printf("  %-16s %s\n", (*probe)->name, (*probe)->summary);
}

static void __attribute__((noreturn)) print_help(const struct probe *probe)
{
	printf("Usage: " PROGRAM " %s%s[options]\n", name_of(probe), *name_of(probe) ? " " : "");
	if (probe) {
		printf("%s\n\nOptions of %s:\n", probe->summary, probe->name);
		print_table(probe, probe->options);
	} else {
		printf("Measures the latency of this Linux system.\n\nProbes:\n");
		print_probes();
	}
	printf("\nOptions of all probes:\n");
	print_table(probe, common_options);
	printf("\nDefaults are in parentheses.  Times take units: 200us, 1.5ms, 10s, 10m, 2h.\n");
	exit(0);
}

static const struct probe *find_probe(const char *name)
{
	for (const struct probe *const *probe = probes; *probe; probe++)
		if (!strcmp((*probe)->name, name))
			return *probe;
	bad_input("unknown probe '%s'; see " PROGRAM " --list", name);
}

/* --help, --version and lists: prints them and exits. */
static void parse_query(const char *first)
{
	if (!strcmp(first, "--help"))
		print_help(is_only_probe(probes[0]) ? probes[0] : NULL);
	if (!strcmp(first, "--version")) {
		puts(PROGRAM " " PROBE_VERSION);
		exit(0);
	}
	if (!strcmp(first, "--list")) {
		print_probes();
		exit(0);
	}
	if (!strcmp(first, "--list-json")) {
		catalogue_print(common_options);
		exit(0);
	}
}

/* The probe, and where its options begin. */
static struct arguments parse_first(char **next)
{
	if (*next)
		parse_query(*next);
	if (is_only_probe(probes[0]) && (!*next || strcmp(*next, probes[0]->name)))
		return (struct arguments){.probe = probes[0], .next = next};
	if (!*next)
		bad_input("name a probe, as in " PROGRAM " timer; see " PROGRAM " --list");
	return (struct arguments){.probe = find_probe(*next), .next = next + 1};
}

static void resolve_latency(struct settings *settings)
{
	if (default_system || (latency_text && !strcmp(latency_text, "off")))
		settings->dma_latency_us = LATENCY_UNTOUCHED;
	else if (latency_text && (!parse_integer(latency_text, &settings->dma_latency_us) || settings->dma_latency_us < 0 ||
				  settings->dma_latency_us > INT32_MAX))
		bad_input("--latency: '%s' is neither a number of us nor off", latency_text);
}

const struct probe *options_parse(int argc, char **argv, struct settings *settings)
{
	struct arguments arguments = parse_first(argc > 1 ? argv + 1 : argv + argc);

	while (*arguments.next) {
		const char *argument = *arguments.next++;

		if (!strcmp(argument, "--help"))
			print_help(arguments.probe);
		else if (!strncmp(argument, "--", 2) && argument[2])
			parse_long(&arguments, argument + 2);
		else if (argument[0] == '-' && argument[1] && argument[1] != '-')
			parse_letters(&arguments, argument + 1);
		else
			bad_input("'%s' is not an option; see " PROGRAM " %s --help", argument, name_of(arguments.probe));
	}
	resolve_latency(&parsed);
	options_resolve(arguments.probe, &parsed);
	*settings = parsed;
	return arguments.probe;
}
