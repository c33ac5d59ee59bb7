/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts common to the lines of a recording, for the files that write them. */
#ifndef RECORD_H
#define RECORD_H

#include "run.h"

/* Whether a recording is open and writable. */
bool recording(const struct run *run);
void line_begin(struct run *run, const char *type);
void line_end(struct run *run);

void json_instant(struct json *json, const char *name, struct instant instant);

/* Name of a setting, and its thread. */
void json_setting_place(struct json *json, const struct setting *setting);
/* Resolution of the intervals of a series, in a recording of at most this k. */
static inline unsigned series_interval_k(const struct series *series, int64_t most)
{
	return most < (int64_t)series->spec.k ? (unsigned)most : series->spec.k;
}

/* Order of the values of an interval or of the run: rises, and values above the limit. */
void json_order(struct json *json, const struct series *series, const int64_t *rises, const struct exceedances *over,
		uint64_t gaps);

/* record_event.c */
/* Events of the interval that ended with the last flip; the next interval may belong to another recording. */
void record_events(struct run *run, struct series *series);
/* The last maximum of each series, beyond the limit of events. */
void record_deferred_maxima(struct run *run);
/* One event, without regard to the limit of events. */
void record_event_line(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		       const char *text, const char *culprit);

#endif
