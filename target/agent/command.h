/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The running commands of a bench, each below its guard. */
#ifndef FE_AGENT_COMMAND_H
#define FE_AGENT_COMMAND_H

#include <poll.h>

#include "frames.h"

#define COMMANDS 64
#define POLLED (2 * COMMANDS)

/* The command name that stands for the agent's executable; NULL: none. */
extern const char *commands_own_name;

/* Each returns why the frame is invalid, or NULL. */
const char *command_input(uint32_t id, const char *bytes, size_t length);
const char *command_start(struct port *port, uint32_t id, char *content, size_t length);
const char *command_signal(uint32_t id, const char *content, size_t length);
void command_kill(uint32_t id);

/* Output and end of the commands. */
void commands_watch(struct pollfd polled[POLLED]);
void commands_pass_on(struct port *port, const struct pollfd polled[POLLED]);
void commands_reap(struct port *port);
/* Ends all commands and their process trees; returns when none is left. */
void commands_end(struct port *port);

#endif
