/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process trees and directories that must not stay. */
#ifndef FE_AGENT_TREE_H
#define FE_AGENT_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it is the name of a directory made for a bench: absolute, ending in fastenough- and 12 hexadecimal digits. */
bool is_scratch(const char *path);
/* Made for its user alone and locked for as long as this process lives; returns 0, or -1 with errno. */
int make_scratch(const char *path);
void remove_scratch(const char *path);
/* Removes what agents left that were killed: directories of this user's that nobody holds the lock of. */
void sweep_scratch(void);

/* Kills everything below this process, except the trees of the `count` spared children; how many were killed. */
int kill_below(const pid_t *spared, int count);

#endif
