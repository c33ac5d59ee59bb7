/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands a bench has at work, each below its guard. */
#ifndef FE_AGENT_COMMAND_H
#define FE_AGENT_COMMAND_H

#include <poll.h>

#include "frames.h"

#define COMMANDS 64
#define POLLED (2 * COMMANDS)

/* The command that means the agent's own file; NULL: none does. */
extern const char *commands_own_name;

/* Each returns NULL, or why the frame is no proper one. */
const char *command_input(uint32_t id, const char *bytes, size_t length);
const char *command_start(struct port *port, uint32_t id, char *content, size_t length);
const char *command_signal(uint32_t id, const char *content, size_t length);
void command_kill(uint32_t id);

/* What the commands say, and who has ended. */
void commands_watch(struct pollfd polled[POLLED]);
void commands_pass_on(struct port *port, const struct pollfd polled[POLLED]);
void commands_reap(struct port *port);
/* Ends every command and everything started; returns when nothing is left. */
void commands_end(struct port *port);

#endif
