/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text of a list of CPUs. */
#ifndef CPU_LIST_H
#define CPU_LIST_H

#include "options.h"

/* Room for any list of MAX_CPUS, each number with its comma or dash. */
#define CPU_LIST_SIZE (MAX_CPUS * 5)

/* In ascending order, as the kernel lists CPUs: "0-63,70". */
char *format_cpus(char text[CPU_LIST_SIZE], const struct cpu_list *cpus);

#endif
