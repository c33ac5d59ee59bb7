/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent.h"
#include "frame.h"

/* Where one of the first three descriptors is closed, the next file opened would get its number, and messages would go
 * into it: into the recording, or a device.  Opened for reading, it takes them no more than a closed one. */
static void occupy_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= STDIN_FILENO && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	struct settings settings;
	const struct probe *probe;
	struct run *run;

	occupy_standard_descriptors();
	prctl(PR_SET_NAME, PROGRAM); /* an agent starts it through /proc/PID/exe */
	if (argc > 1 && strcmp(argv[1], "agent") == 0)
		return agent_main(argc - 1, argv + 1, PROGRAM);
	probe = options_parse(argc, argv, &settings);
	run = run_new(probe, &settings);
	run_prepare(run);
	return run_execute(run);
}
