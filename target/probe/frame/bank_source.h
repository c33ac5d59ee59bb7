/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run whose acts take place in the kernel.  There are no workers: at each end of an interval the frame reads a bank
 * from the module's device, and the instant at which the module parted its banks is the interval's end.
 */
#ifndef BANK_SOURCE_H
#define BANK_SOURCE_H

#include "bank_read.h"
#include "run.h"

struct bank_source {
	const char *device;
	int fd;
	bool lost;         /* nothing more can be had from it */
	void *bytes;       /* of the bank read last */
	struct bank bank;  /* the same, checked */
	struct fe_bank_value settings[FE_BANK_SETTINGS]; /* in effect before the run */
	const char *probe; /* as the head names it */
	struct series *series[FE_BANK_MAX_SERIES];
	fe_u64 counted[FE_BANK_COUNTERS]; /* in this run */
};

/* For setup(): reads a first bank, which says what runs; bad input where the device cannot be read. */
struct bank_source *source_open(struct run *run, const char *device);

/* For the frame; all but the second and third fail the run where no sound bank comes. */
void source_begin(struct run *run);  /* the first interval begins now; what was counted so far is not of this run */
int source_cpu(const struct run *run); /* where all acts are, -1: not on one CPU */
const char *source_probe(const struct run *run);
void source_stop(struct run *run);   /* the task: what is counted after that is final */
struct instant source_part(struct run *run); /* the current epochs then hold what came since; returns up to when */
/* Counters of the task: of the interval that ended last, or of the whole run and since it was loaded. */
void json_source_interval(struct json *json, const struct run *run);
void json_source_total(struct json *json, const struct run *run);
/* What befell the thread that acts, since it was made; unknown of an interrupt, which has nothing of it. */
void source_thread(const struct run *run, struct counters *counters);
/* A kernel's SCHED_* in words. */
const char *source_policy(int policy);
/* What was requested of the kernel and is in effect, as settings of the run. */
void source_settings_before(struct run *run);
void source_settings_after(struct run *run); /* as the last bank has them; fails the run where they changed */

#endif
