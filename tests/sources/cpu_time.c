/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program and prints the CPU time of its process, all threads together, in us on standard error. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid = argc > 1 ? fork() : -1;

	if (pid == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		fputs("usage: cpu_time PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	fprintf(stderr, "%lld\n",
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
