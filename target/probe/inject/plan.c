/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "periodic.h"
#include "units.h"

#define AHEAD_NS (50 * NS_PER_MS)
#define TRIES 2

static void parse_sizes(struct plan *plan, const char *text, int64_t longest_ns)
{
	while (*text) {
		size_t length = strcspn(text, ",");
		char *size = plan->size_text[plan->sizes];
		int64_t *ns = &plan->size_ns[plan->sizes];

		if (plan->sizes == PLAN_SIZES)
			bad_input("--sizes: more than %d sizes; inject fewer at a time", PLAN_SIZES);
		snprintf(size, sizeof(*plan->size_text), "%.*s", (int)length, text);
		if (length >= sizeof(*plan->size_text) || !parse_duration(size, NS_PER_US, ns) || *ns <= 0 || *ns > longest_ns)
			bad_input("--sizes: '%.*s' is no time up to %" PRId64 "ms; write them as 200us,1ms", (int)length, text,
				  (int64_t)(longest_ns / NS_PER_MS));
		plan->sizes++;
		text += length + (text[length] == ',');
	}
}

/* The first due time that is not too near. */
static int64_t first_due_ns(int64_t begin_mono_ns, int64_t interval_ns)
{
	int64_t earliest_ns = mono_ns() + AHEAD_NS;

	return begin_mono_ns ? fe_due_after(begin_mono_ns, earliest_ns, interval_ns) : earliest_ns;
}

static void check(const struct plan *plan)
{
	for (int i = 0; i < plan->sizes; i++)
		if (2 * (plan->size_ns[i] + plan->lead_ns) > plan->interval_ns)
			bad_input("--sizes %s: the CPU would have less than half of its time for others; choose --interval longer",
				  plan->size_text[i]);
}

void plan_make(struct plan *plan, struct run *run, const struct plan_options *chosen, int64_t longest_ns)
{
	plan->interval_ns = run_settings(run)->interval_ns;
	plan->lead_ns = chosen->lead_ns;
	parse_sizes(plan, chosen->sizes, longest_ns);
	check(plan);
	for (int i = 0; i < plan->sizes; i++) {
		plan->wanted[i] = chosen->each;
		plan->tries[i] = chosen->each * TRIES;
	}
	plan->due_mono_ns = first_due_ns(chosen->begin_mono_ns, plan->interval_ns);
	run_parameter_text(run, "sizes", chosen->sizes);
	run_parameter_int(run, "each", chosen->each);
	run_parameter_int(run, "interval_ns", plan->interval_ns);
	run_parameter_int(run, "lead_ns", plan->lead_ns);
}

void plan_advance(struct plan *plan, bool took_place)
{
	plan->wanted[plan->next] -= took_place;
	plan->tries[plan->next]--;
	plan->due_mono_ns += plan->interval_ns;
	for (int i = 0; i < plan->sizes; i++) {
		plan->next = (plan->next + 1) % plan->sizes;
		if (plan->wanted[plan->next] > 0 && plan->tries[plan->next] > 0)
			return;
	}
	plan->over = true;
}
