/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The drivers of this machine, for its main function. */
#ifndef GAUGE_DRIVERS_H
#define GAUGE_DRIVERS_H

void timer_begin(void);
void uart_begin(void);

#endif
