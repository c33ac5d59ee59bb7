/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says which check failed, and where; the test's exit status tells Meson. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int failures;

#define check(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			failures++;                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
		}                                                                         \
	} while (0)

#endif
