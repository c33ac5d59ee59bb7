/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CLOCKS_H
#define CLOCKS_H

#include "machine.h"

void clocks_open(struct machine *machine);
/* Their counters; what was seen since the last time is also an event of the recording. */
void clocks_read(struct run *run, struct counters *counters);

#endif
