/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>

#define U32_MAX UINT32_MAX
#define S64_MAX INT64_MAX
