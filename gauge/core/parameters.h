/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef GAUGE_PARAMETERS_H
#define GAUGE_PARAMETERS_H

#include "protocol.h"
#include "reply.h"

/* Reads the parameters of a command as line_parameters() does; false, after an error reply, when one is wrong. */
bool command_parameters(struct reply *reply, const char *text, const struct parameter *table, uint8_t count,
			uint8_t required, uint32_t *values);

#endif
