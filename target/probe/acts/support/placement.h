/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two CPUs by what lies between them, in words of topology rather than numbers. */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include "frame.h"

enum placement { PLACEMENT_SAME, PLACEMENT_SMT, PLACEMENT_CORE, PLACEMENT_SOCKET };
extern const char *const placement_names[];

struct cpu_pair {
	int first, second;
};

#define PLACEMENT_OPTION(chosen, standard)                                                                         \
	{"placement", 0, OPTION_CHOICE, chosen, .choices = placement_names,                                        \
	 .help = "both ends on the same CPU, or the second on another smt sibling,\n"                              \
		 "                             core or socket (" standard ")"}

/*
 * The first two chosen CPUs that stand in this relation; recorded in the parameters.  False where
 * there are none: the run is then not-applicable, with the reason.
 */
bool placement_find(struct run *run, int placement, struct cpu_pair *cpus);

/* The same for acts in which one thread is meant to displace another. */
bool placement_same_cpu(struct run *run, int *cpu);

#endif
