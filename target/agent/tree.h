/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scratch directories and process trees, which must not remain after their command. */
#ifndef FE_AGENT_TREE_H
#define FE_AGENT_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* True for the name of a scratch directory: absolute, ending in fastenough- and 12 hexadecimal digits. */
bool is_scratch(const char *path);
/* Creates a scratch directory with mode 0700, locked until this process ends; returns 0, or -1 with errno. */
int make_scratch(const char *path);
void remove_scratch(const char *path);
/* Removes directories of killed agents: those of this user that are old and not locked. */
void sweep_scratch(void);

/* Kills all descendants of this process except the trees of the `count` spared children; returns how many. */
int kill_below(const pid_t *spared, int count);

#endif
