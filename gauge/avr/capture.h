/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bits of GPIOR0 that the program and the first instructions of the capture interrupt (capture.S) share: they can be tested
 * without saving a register. */
#ifndef GAUGE_CAPTURE_H
#define GAUGE_CAPTURE_H

#define MODE_PERIODIC 0     /* edges are captured for PERIODIC */
#define STIMULUS_PREPARED 1 /* the next answer arms its stimulus itself, prepared_wait later */
#define STIMULUS_RISING 2   /* the current stimulus rises */
#define SIMULATED 3

#endif
