/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the monitor's user side, for its files. */
#ifndef INSIDE_H
#define INSIDE_H

#include <string.h>

#include "monitor.h"
#include "source.h"

struct monitor_bpf;
struct ring_buffer;

/* So many findings may wait for their interval. */
#define LATER 16

enum monitor_counter { MONITOR_UNMATCHED, MONITOR_DROPPED, MONITOR_SUPPRESSED, MONITOR_NO_SLEEP,
		       MONITOR_NO_RETURN, MONITOR_UNKEPT, MONITOR_COUNTERS };

struct monitor {
	struct source source;
	struct run *run;
	struct monitor_bpf *programs;
	struct wanted wanted;
	bool noise;             /* what takes a CPU from the tasks is wanted, too */
	unsigned cpus;          /* highest number of a chosen CPU, and 1 */
	struct series **series; /* of CPU and station; NULL where the CPU was not chosen */
	unsigned char *banks;
	struct ring_buffer *findings; /* and samples */
	struct samples **samples;     /* as series; NULL: nothing is kept */
	uint64_t at_begin[MONITOR_COUNTERS], at_last[MONITOR_COUNTERS], now[MONITOR_COUNTERS];
	struct instant stopped; /* when counting ended; 0: it has not */
	uint64_t untold;        /* findings that were lost before they could be read */
	unsigned epoch;         /* that is told of now; findings of a later one wait, for they may be of another recording */
	struct finding later[LATER];
	int later_count;
};

static inline struct monitor *monitor_of(const struct run *run)
{
	return (struct monitor *)run->source;
}

/* Programs and stations are called so that are of noise. */
static inline bool is_noise(const char *name)
{
	return !strncmp(name, "noise", 5);
}

static inline struct series **monitor_series(const struct monitor *monitor, unsigned cpu, unsigned station)
{
	return &monitor->series[cpu * STATIONS + station];
}

/* program.c: loads and attaches; false where this kernel has not what it needs, and the run says so. */
bool programs_load(struct monitor *monitor);
uint64_t programs_suppressed(const struct monitor *monitor); /* how often one did not run because it ran already */

/* collect.c: the source's functions */
void monitor_begin(struct run *run);
void monitor_look(struct run *run);
void monitor_stop(struct run *run);
struct instant monitor_part(struct run *run);
void monitor_interval_counters(struct json *json, const struct run *run);
void monitor_total_counters(struct json *json, const struct run *run);
void monitor_begin_totals(struct run *run);

/* finding.c: findings as events of the recording */
void finding_record(struct monitor *monitor, const struct finding *finding);
/* The same when its interval has come. */
void finding_take(struct monitor *monitor, const struct finding *finding);

/* Every wake-up by a timer, in a file of samples; each is known by the expiry of its timer. */
void samples_begin(struct monitor *monitor, const char *path);
int sample_take(void *monitor, void *sample, size_t size); /* for the ring */

/* culprit.c: as JSON, valid until the next one */
const char *culprit_of(struct run *run, const struct finding *finding);

/* symbols.c: the kernel's function that an address is in; NULL where it is not told.  To read them all takes 0.1 s and more:
 * before the run, for nobody collects what is counted meanwhile; but behind the loading of programs, which are told, too. */
void symbols_read(void);
const char *symbol_of(uint64_t address);

/* names.c: as the system calls them; each valid until its next call */
const char *name_of_interrupt(unsigned number);
const char *name_of_softirq(unsigned number);
const char *name_of_vector(unsigned vector); /* NULL: none */
const char *name_of_policy(int policy);      /* SCHED_* */
const char *name_of_idle_state(unsigned cpu, int state);
extern const char *const station_names[STATIONS];

#endif
