/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends a test with status 1 where a condition does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(holds)                                                          \
	do {                                                                  \
		if (!(holds)) {                                               \
			fprintf(stderr, "line %d: %s\n", __LINE__, #holds);   \
			exit(1);                                              \
		}                                                             \
	} while (0)

#endif
