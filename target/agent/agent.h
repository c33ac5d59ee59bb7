/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent: runs commands on a board for a bench, over any byte stream (docs/agent.md specifies it). */
#ifndef FE_AGENT_H
#define FE_AGENT_H

/* `agent stdio [DIRECTORY]`, `agent device PATH` or `agent check`; returns the exit status.  `own_name`: the command
 * name that stands for this executable, or NULL. */
int agent_main(int argc, char **argv, const char *own_name);

#endif
