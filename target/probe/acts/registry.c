/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be measured: the list in meson.build, as far as the platform has what it needs. */
#include "registry.h"

#define ACT(NAME) extern const struct probe NAME##_probe;
#include "registry.inc"
#undef ACT

#define ACT(NAME) &NAME##_probe,
const struct probe *const probes[] = {
#include "registry.inc"
	NULL,
};
