/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the program and the first instructions of the capture interrupt tell each other, in bits of GPIOR0 that can be
 * asked without saving a register. */
#ifndef GAUGE_QUICK_H
#define GAUGE_QUICK_H

#define MEANT_PERIODIC 0 /* edges are captured for PERIODIC */
#define MEANT_QUICK 1    /* the answer awaited arms the next stimulus itself, by quick_wait */
#define IN_FLIGHT_RISES 2 /* the stimulus whose answer that is rises */
#define SIMULATED 3

#endif
