/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the monitor in user space, and the interfaces between its files. */
#ifndef MONITOR_STATE_H
#define MONITOR_STATE_H

#include <string.h>

#include "monitor.h"
#include "source.h"

struct monitor_bpf;
struct ring_buffer;

/* Maximum number of findings that one call reads: all that the ring buffer may hold when the call begins.  Without a limit,
 * findings that arrive faster than they are recorded would keep it from returning. */
#define FINDINGS_A_CALL (FINDINGS_BYTES / sizeof(struct finding))

/* Maximum number of findings that wait for their interval. */
#define MAX_DEFERRED 16

enum monitor_counter { MONITOR_UNMATCHED, MONITOR_DROPPED, MONITOR_SUPPRESSED, MONITOR_NO_SLEEP,
		       MONITOR_NO_RETURN, MONITOR_LOST_SAMPLES, MONITOR_COUNTERS };

struct monitor {
	struct source source;
	struct run *run;
	struct monitor_bpf *programs;
	struct filter filter;
	bool noise;             /* also measure noise: time that others take from a CPU */
	unsigned cpus;          /* highest number of a chosen CPU plus 1 */
	struct series **series; /* by CPU and station; NULL if the CPU was not chosen */
	unsigned char *banks;
	struct ring_buffer *findings; /* findings and samples */
	struct samples **samples;     /* by CPU and station; NULL: samples are not stored */
	uint64_t at_begin[MONITOR_COUNTERS], at_last[MONITOR_COUNTERS], now[MONITOR_COUNTERS];
	struct instant stopped; /* when counting ended; 0: it has not */
	uint64_t lost_findings; /* for which the ring buffer had no room */
	unsigned findings_left; /* to be read by this call */
	unsigned epoch;         /* being reported; findings of a later epoch wait, because they may belong to the next recording */
	struct finding deferred[MAX_DEFERRED];
	int deferred_count;
};

static inline struct monitor *monitor_of(const struct run *run)
{
	return (struct monitor *)run->source;
}

/* True for the names of programs and stations that measure noise. */
static inline bool is_noise(const char *name)
{
	return !strncmp(name, "noise", 5);
}

static inline struct series **monitor_series(const struct monitor *monitor, unsigned cpu, unsigned station)
{
	return &monitor->series[cpu * STATIONS + station];
}

/* program.c: loads and attaches the programs; false if this kernel does not support them, after run_not_applicable(). */
bool programs_load(struct monitor *monitor);
uint64_t programs_suppressed(const struct monitor *monitor); /* runs that the kernel suppressed as recursive */

/* collect.c: the source's functions */
void monitor_begin(struct run *run);
void monitor_poll(struct run *run);
void monitor_stop(struct run *run);
struct instant monitor_collect(struct run *run);
void monitor_interval_counters(struct json *json, const struct run *run);
void monitor_total_counters(struct json *json, const struct run *run);
void monitor_begin_totals(struct run *run);

/* finding.c: findings as events of the recording */
void finding_record(struct monitor *monitor, const struct finding *finding);
/* Callback of the ring buffer: records a finding, or defers it until its interval; -1 if it is the last one of this call. */
int finding_receive(void *monitor, void *finding, size_t size);

/* Stores every wake-up by a timer in a file of samples, with the expiry of its timer. */
void samples_begin(struct monitor *monitor, const char *path);
int sample_receive(void *monitor, void *sample, size_t size); /* callback of the ring buffer */

/* culprit.c: the cause as JSON, valid until the next call */
const char *culprit_of(struct run *run, const struct finding *finding);

/* symbols.c: the kernel function that contains an address; NULL if unknown.  Reading the symbols takes 0.1 s or more, so it
 * is done before the run, when nothing is collected, and after loading the programs, which are symbols too. */
void symbols_read(void);
const char *symbol_of(uint64_t address);

/* names.c: names in the system's terms, valid until the next call of the same function */
const char *name_of_interrupt(unsigned number);
const char *name_of_softirq(unsigned number);
const char *name_of_vector(unsigned vector); /* NULL: none */
const char *name_of_policy(int policy);      /* SCHED_* */
const char *name_of_idle_state(unsigned cpu, int state);
extern const char *const station_names[STATIONS];

#endif
