/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpu_list.h"

#include <stdio.h>

char *format_cpus(char text[CPU_LIST_SIZE], const struct cpu_list *cpus)
{
	bool listed[MAX_CPUS + 1] = {false};
	size_t used = 0;

	for (int i = 0; i < cpus->count; i++)
		listed[cpus->cpu[i]] = true;
	*text = '\0';
	for (int first = 0, end; first < MAX_CPUS; first = end + 1) {
		for (end = first; listed[end]; end++)
			;
		if (end > first)
			used += (size_t)snprintf(text + used, CPU_LIST_SIZE - used, "%s%d", used ? "," : "", first);
		if (end > first + 1)
			used += (size_t)snprintf(text + used, CPU_LIST_SIZE - used, "-%d", end - 1);
	}
	return text;
}
