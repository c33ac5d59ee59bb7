/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef REGISTRY_H
#define REGISTRY_H

#include "frame.h"

/* All probes, ended by NULL. */
extern const struct probe *const probes[];

#endif
