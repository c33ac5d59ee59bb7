/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef GAUGE_COMMANDS_H
#define GAUGE_COMMANDS_H

/* Reads the serial line, and executes the command once its line is complete. */
void commands_serve(void);

#endif
