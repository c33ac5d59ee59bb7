/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks that are soon over: brief_tasks COUNT starts so many, one after the other, each of which sleeps once. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const struct timespec shortly = {.tv_nsec = 50000};

	for (long left = argc == 2 ? atol(argv[1]) : 0; left; left--) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			nanosleep(&shortly, NULL);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}
