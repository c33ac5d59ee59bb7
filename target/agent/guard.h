/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guard is a process that owns the process tree of one command, and adopts its orphans. */
#ifndef FE_AGENT_GUARD_H
#define FE_AGENT_GUARD_H

#include <stdint.h>

#define GUARD_KILL 0 /* the byte on the lifeline that kills the tree; other bytes are signals for the command */

struct launch_request {
	char **arguments;
	const char *own_name; /* the command name that stands for this executable; NULL: none */
	const char *scratch; /* "": none */
	uint32_t limit_ms;   /* 0: none */
	int input, output, errors, lifeline;
};

/* Blocks SIGCHLD and the signals that end this process, and returns a file from which they are read. */
int open_signal_file(void);

/* Becomes the guard; it exits with the command's status after the process tree has ended. */
_Noreturn void guard(const struct launch_request *launch_request);

#endif
