/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What probes there are.  A new one is a file, its name here twice, and its file in meson.build.
 * A plain list: a registry by linker section or constructor silently stays empty in a static archive.
 */
#include "registry.h"

extern const struct probe timer_probe;
extern const struct probe spin_probe;
extern const struct probe response_probe;
extern const struct probe periodic_probe;
extern const struct probe hog_probe;

const struct probe *const probes[] = {
	&timer_probe,
	&spin_probe,
	&response_probe,
	&periodic_probe,
	&hog_probe,
	NULL,
};
