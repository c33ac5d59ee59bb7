/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What grid.c and tally.c need of the kernel, so that it can be tried as an ordinary program; see run.c. */
#ifndef TYPES_H
#define TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define __printf(text, first) __attribute__((format(printf, text, first)))

#endif
