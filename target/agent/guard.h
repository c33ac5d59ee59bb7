/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guard holds one command's process tree: a process of its own that adopts whatever the command leaves. */
#ifndef FE_AGENT_GUARD_H
#define FE_AGENT_GUARD_H

#include <stdint.h>

#define GUARD_KILL 0 /* the byte through the lifeline that ends the tree at once; others are signals for the command */

struct errand {
	char **arguments;
	const char *own_name; /* the command that means this process's file; NULL: none */
	const char *scratch; /* "": none */
	uint32_t limit_ms;   /* 0: none */
	int input, output, errors, lifeline;
};

/* The end of a child, and what asks this process to end, come through this file from now on, and in no other way. */
int own_signals(void);

/* Becomes the guard; its exit status is the command's, once nothing of the tree is left. */
_Noreturn void guard(const struct errand *errand);

#endif
