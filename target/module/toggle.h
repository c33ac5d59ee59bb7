/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The output of a periodic task (toggle.c).
 *
 * It ends low: an output that was an input before falls when it is let go of, and an instrument would count an edge that
 * was no act.
 */
#ifndef FASTENOUGH_TOGGLE_H
#define FASTENOUGH_TOGGLE_H

#include "fastenough.h"

/* The other level, now; false where no more may follow. */
bool fe_toggle(void);
/* Waits for the last act that leaves it low, for three periods and a second at most. */
void fe_toggle_end(void);

#endif
