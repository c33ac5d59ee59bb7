/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands that report results: counters, histogram, statistics. */
#ifndef GAUGE_RESULTS_H
#define GAUGE_RESULTS_H

#include "reply.h"

/* Exact statistics of one series. */
void report_series(struct reply *reply, uint8_t series);

void report_counters(struct reply *reply, const char *text);
void report_histogram(struct reply *reply, const char *text);
void take_histogram(struct reply *reply, const char *text);

#endif
