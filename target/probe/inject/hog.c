/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hog: delays other tasks of its CPU by known times, so that one can see whether they are found.
 *
 * It wakes a little before a due time of theirs and computes until the chosen time after it.  What was
 * really injected is recorded: from the due time to the end of the computing.  A due time that the hog
 * itself comes too late for is counted as missed, and nothing is injected there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "periodic.h"
#include "units.h"
#include "sleep.h"

#define MAX_SIZES 16
#define LONGEST_NS (500 * NS_PER_MS)
#define AHEAD_NS (50 * NS_PER_MS)

static struct {
	const char *sizes;
	int64_t each, begin_mono_ns, lead_ns;
} chosen = {.sizes = "1ms", .each = 10, .lead_ns = 300 * NS_PER_US};

static const struct option_spec hog_options[] = {
	{"sizes", 0, OPTION_TEXT, &chosen.sizes, .help = "delays to inject in turn, as 200us,1ms (1ms)"},
	{"each", 0, OPTION_INTEGER, &chosen.each, .low = 1, .high = 1000000, .help = "how often each of them (10)"},
	{"begin", 0, OPTION_INTEGER, &chosen.begin_mono_ns, .low = 0, .high = INT64_MAX / 2,
	 .help = "a due time of those to be delayed, CLOCK_MONOTONIC ns; --interval is a multiple of their period"},
	{"lead", 0, OPTION_DURATION, &chosen.lead_ns, .low = 0, .high = 100 * NS_PER_MS, .plain = NS_PER_US, .plain_name = "us",
	 .help = "begin so long before a due time (300us)"},
	{0},
};

struct hog {
	int64_t due_mono_ns, interval_ns, lead_ns;
	int64_t left; /* injections to be done */
	int sizes, next;
	int64_t size_ns[MAX_SIZES];
	char size_text[MAX_SIZES][16];
	struct series *series[MAX_SIZES];
};

static void spin_until(int64_t end_mono_ns)
{
	while (mono_ns() < end_mono_ns)
		;
}

static void inject(struct hog *hog)
{
	struct series *series = hog->series[hog->next];

	if (mono_ns() > hog->due_mono_ns) {
		series_add_missed(series, 1);
	} else {
		spin_until(hog->due_mono_ns + hog->size_ns[hog->next]);
		series_add(series, mono_ns() - hog->due_mono_ns);
	}
	hog->next = (hog->next + 1) % hog->sizes;
	hog->left--;
	hog->due_mono_ns += hog->interval_ns;
}

static void disturb(struct worker *self, void *argument)
{
	struct hog *hog = argument;

	while (hog->left > 0 && run_continues(self))
		if (sleep_until(hog->due_mono_ns - hog->lead_ns) == 0)
			inject(hog);
}

static void parse_sizes(struct hog *hog, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, ",");
		char *size = hog->size_text[hog->sizes];
		int64_t *ns = &hog->size_ns[hog->sizes];

		if (hog->sizes == MAX_SIZES)
			bad_input("--sizes: more than %d sizes; inject fewer at a time", MAX_SIZES);
		snprintf(size, sizeof(*hog->size_text), "%.*s", (int)length, text);
		if (length >= sizeof(*hog->size_text) || !parse_duration(size, NS_PER_US, ns) || *ns <= 0 || *ns > LONGEST_NS)
			bad_input("--sizes: '%.*s' is no time up to 500ms; write them as 200us,1ms", (int)length, text);
		hog->sizes++;
		text += length + (text[length] == ',');
	}
}

/* The first due time that is not too near. */
static int64_t first_due_ns(int64_t begin_mono_ns, int64_t interval_ns)
{
	int64_t earliest_ns = mono_ns() + AHEAD_NS;

	return begin_mono_ns ? fe_due_after(begin_mono_ns, earliest_ns, interval_ns) : earliest_ns;
}

static void check(const struct hog *hog)
{
	for (int i = 0; i < hog->sizes; i++)
		if (2 * (hog->size_ns[i] + hog->lead_ns) > hog->interval_ns)
			bad_input("--sizes %s: the CPU would have less than half of its time for others; choose --interval longer",
				  hog->size_text[i]);
}

static void add_series(struct run *run, struct hog *hog)
{
	for (int i = 0; i < hog->sizes; i++)
		hog->series[i] = run_add_series(run, &(struct series_spec){
			.name = "injected", .from = "due time of the task to be delayed", .to = "end of the computing",
			.role = SERIES_DIAGNOSTIC, .cpu = run_cpu(run, 0), .labels = {{"size", hog->size_text[i]}},
		});
}

static void hog_setup(struct run *run)
{
	struct hog *hog = run_allocate(run, sizeof(*hog));

	hog->interval_ns = run_settings(run)->interval_ns;
	hog->lead_ns = chosen.lead_ns;
	parse_sizes(hog, chosen.sizes);
	check(hog);
	hog->left = chosen.each * hog->sizes;
	hog->due_mono_ns = first_due_ns(chosen.begin_mono_ns, hog->interval_ns);
	run_parameter_text(run, "sizes", chosen.sizes);
	run_parameter_int(run, "each", chosen.each);
	run_parameter_int(run, "interval_ns", hog->interval_ns);
	run_parameter_int(run, "lead_ns", hog->lead_ns);
	add_series(run, hog);
	run_add_worker(run, &(struct worker_spec){
		.name = "hog", .cpu = run_cpu(run, 0), .period_ns = hog->interval_ns, .function = disturb, .argument = hog,
	});
}

const struct probe hog_probe = {
	.name = "hog",
	.summary = "delays other tasks of its CPU by known times, to see whether they are found",
	.options = hog_options,
	.setup = hog_setup,
};
