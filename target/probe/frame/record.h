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

/* record_event.c */
void record_notices(struct run *run, struct series *series);
/* The maximum that the ring had no room for. */
void record_crowded(struct run *run, struct series *series);
/* Whatever the number of events recorded so far. */
void record_event_line(struct run *run, const char *kind, const struct series *series, int64_t at_mono_ns, int64_t value,
		       const char *text);

#endif
