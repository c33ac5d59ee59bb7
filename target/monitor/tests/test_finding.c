/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reading of findings: how many in one call, and for which of them the cause is determined. */
#include <string.h>

#include "check.h"
#include "state.h"

static unsigned causes, events;

const char *culprit_of(struct run *run, const struct finding *finding) { (void)run, (void)finding; causes++; return "{}"; }
void record_source_event(struct run *run, struct series *series, const struct event *event)
{
	(void)run, (void)series, (void)event;
	events++;
}
const struct settings *run_settings(const struct run *run) { static const struct settings settings; (void)run; return &settings; }
void run_finish(struct run *run) { (void)run; }
void *run_allocate(struct run *run, size_t size) { (void)run, (void)size; return NULL; }
void run_record_samples(struct run *run, const char *path) { (void)run, (void)path; }
struct samples *run_add_samples(struct run *run, const struct series *series) { (void)run, (void)series; return NULL; }

static struct run run;
static struct series series, *all[STATIONS];
static struct monitor monitor = {.run = &run, .cpus = 1, .series = all};

static int receive(uint64_t maxima, uint64_t over)
{
	struct finding finding = {.maxima = maxima, .over = over};

	return finding_receive(&monitor, &finding, sizeof(finding));
}

static void check_reading_ends(void)
{
	monitor.findings_left = 3;
	check(receive(1, 0) == 0);
	check(receive(1, 0) == 0);
	check(receive(1, 0) < 0);
	check(events == 3 && causes == 3);
}

static void check_causes_beyond_limit(void)
{
	events = causes = 0;
	monitor.findings_left = FINDINGS_A_CALL;
	run.events = 4999;
	receive(0, 1);
	check(events == 1 && causes == 1);
	run.events = 5000;
	receive(0, 1);
	check(events == 2 && causes == 1); /* it counts as dropped */
	receive(1, 1);
	check(events == 3 && causes == 2);
}

int main(void)
{
	for (unsigned station = 0; station < STATIONS; station++)
		all[station] = &series;
	check_reading_ends();
	check_causes_beyond_limit();
	return failures != 0;
}
