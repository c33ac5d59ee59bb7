/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel itself measures and tells through an instance of tracefs, which somebody else has made and removes. */
#ifndef TRACEFS_H
#define TRACEFS_H

#include "frame.h"

#define STATION(NAME) .name = NAME, .role = SERIES_DIAGNOSTIC, .labels = {{"station", NAME}}

/* The instance's folder, from the option --instance. */
extern const char *tracefs_instance;
#define TRACEFS_OPTION \
	{"instance", 0, OPTION_TEXT, &tracefs_instance, .help = "folder of the tracefs instance that measures; the bench makes one"}

/* A file of the instance, opened for reading; -1: it is not there, and the run is not-applicable with the reason. */
int tracefs_open(struct run *run, const char *name);

/* The series of a CPU among those chosen, by place in the list of CPUs; -1: it was not chosen. */
int tracefs_place(const struct run *run, int cpu);

#endif
