/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs that come and go while a run goes on. */
#ifndef ONLINE_H
#define ONLINE_H

#include "run.h"

/* Those that there are at the begin. */
void online_begin(struct run *run);
/* Behind each interval: that others are online is told, and ends what measures on its own and is started again for those. */
void online_look(struct run *run);

#endif
