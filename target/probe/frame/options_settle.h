/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OPTIONS_SETTLE_H
#define OPTIONS_SETTLE_H

#include "options.h"

/* What the command line leaves open, and what cannot stand together. */
void options_settle(const struct probe *probe, struct settings *settings);

#endif
