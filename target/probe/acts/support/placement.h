/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects two CPUs by their relation in the topology. */
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

/* Finds the first two chosen CPUs with this relation and records them in the parameters; false after
 * run_not_applicable() if there are none. */
bool placement_find(struct run *run, int placement, struct cpu_pair *cpus);

/* The same for acts in which one thread preempts another. */
bool placement_same_cpu(struct run *run, int *cpu);

#endif
