/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of this machine, as its main function knows them. */
#ifndef GAUGE_PARTS_H
#define GAUGE_PARTS_H

void timer_begin(void);
void uart_begin(void);

#endif
