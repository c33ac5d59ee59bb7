/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#define vzalloc(size) calloc(1, size)
#define vfree(memory) free((void *)(memory))
