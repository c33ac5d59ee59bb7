/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measurements by the kernel itself, read from an instance of tracefs, which the bench creates and removes. */
#ifndef TRACEFS_H
#define TRACEFS_H

#include "frame.h"

#define STATION(NAME) .name = NAME, .role = SERIES_DIAGNOSTIC, .labels = {{"station", NAME}}

/* The instance's folder, from the option --instance. */
extern const char *tracefs_instance;
#define TRACEFS_OPTION \
	{"instance", 0, OPTION_TEXT, &tracefs_instance, .help = "folder of the tracefs instance that measures; the bench makes one"}

/* Opens a file of the instance for reading; -1 after run_not_applicable(). */
int tracefs_open(struct run *run, const char *name);

/* The index of a CPU in the list of chosen CPUs; -1: not chosen. */
int tracefs_place(const struct run *run, int cpu);

#endif
