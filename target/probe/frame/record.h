/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the lines of a recording share, for the files that write them. */
#ifndef RECORD_H
#define RECORD_H

#include "run.h"

/* Whether there is a recording, and it can still be continued. */
bool recording(const struct run *run);
void line_begin(struct run *run, const char *type);
void line_end(struct run *run);

void json_instant(struct json *json, const char *name, struct instant instant);

/* Which thread's setting it is. */
void json_setting_place(struct json *json, const struct setting *setting);
/* Of the intervals of a recording that wants buckets of at most this k. */
static inline unsigned series_interval_k(const struct series *series, int64_t most)
{
	return most < (int64_t)series->spec.k ? (unsigned)most : series->spec.k;
}

/* What is known of the order of values, of an interval or of the run: rises, and what exceeded the limit. */
void json_order(struct json *json, const struct series *series, const int64_t *rises, const struct exceedances *over,
		uint64_t gaps);

/* record_event.c */
/* Of the interval that ended with the last flip: the next one may be of another recording. */
void record_events(struct run *run, struct series *series);
/* The maximum that the ring had no room for. */
void record_crowded(struct run *run, struct series *series);
/* The last maximum of a series, which found the recording's events used up. */
void record_untold(struct run *run, const struct series *series);
/* Whatever the number of events recorded so far. */
void record_event_line(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		       const char *text, const char *culprit);

#endif
