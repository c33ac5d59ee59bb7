/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run whose acts take place in the kernel.  There are no workers: at each end of an interval the frame reads a bank
 * from the module's device, and the instant at which the module parted its banks is the interval's end.
 */
#ifndef BANK_SOURCE_H
#define BANK_SOURCE_H

#include "bank_read.h"
#include "source.h"

struct bank_source {
	struct source source;
	const char *device;
	int fd;
	bool lost;         /* no longer readable */
	void *bytes;       /* of the bank read last */
	struct bank bank;  /* the same, checked */
	char implementation[16];
	struct fe_bank_value settings[FE_BANK_SETTINGS]; /* in effect before the run */
	struct series *series[FE_BANK_MAX_SERIES];
	fe_u64 counted[FE_BANK_COUNTERS]; /* in this run */
};

/* For setup(): reads a first bank, which names the task; bad input if the device cannot be read. */
struct bank_source *bank_source_open(struct run *run, const char *device);

static inline struct bank_source *bank_source_of(const struct run *run)
{
	return (struct bank_source *)run->source;
}

/* Name of a SCHED_* policy of the kernel. */
const char *bank_policy(int policy);
/* Requested and effective settings of the kernel's task, as settings of the run. */
void bank_settings_before(struct run *run);
void bank_settings_after(struct run *run); /* from the last bank; fails the run if they changed */

#endif
