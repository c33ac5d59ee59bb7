/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "online.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define ONLINE "/sys/devices/system/cpu/online"
#define PREFIX "fastenough: "

static void read_online(char *text, size_t size)
{
	FILE *file = fopen(ONLINE, "re");

	if (!file || !fgets(text, (int)size, file))
		*text = '\0';
	if (file)
		fclose(file);
	text[strcspn(text, "\n")] = '\0';
}

void online_begin(struct run *run)
{
	read_online(run->online, sizeof(run->online));
}

/* A service has series for the CPUs at its start only, and is restarted to measure others.  A probe that watches has series
 * for all possible CPUs.  A single run reports at its end what happened to its threads. */
void online_check(struct run *run)
{
	char online[sizeof(run->online)], text[2 * CPU_LIST_SIZE + REASON_SIZE];
	bool watches = run->probe->watches;
	int size, error;

	if (!watches && !run->rotation)
		return;
	read_online(online, sizeof(online));
	if (!strcmp(online, run->online))
		return;
	size = snprintf(text, sizeof(text), PREFIX "the CPUs online changed from %s to %s%s", run->online, online,
			watches ? "" : "; start again to measure those");
	memcpy(run->online, online, sizeof(online));
	record_event(run, "note", NULL, run->begin.mono_ns, 0, text + sizeof(PREFIX) - 1);
	text[size] = '\n';
	if (run->rotation)
		output_write(STDERR_FILENO, text, (size_t)size + 1, &error);
	if (!watches)
		run_stop(run, OUTCOME_COMPLETED);
}
