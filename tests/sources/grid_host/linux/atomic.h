/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/types.h>

typedef struct {
	s64 value;
} atomic64_t;

#define atomic64_read(atomic) ((atomic)->value)
#define atomic64_set(atomic, to) ((atomic)->value = (to))
#define atomic64_cmpxchg(atomic, from, to) ((atomic)->value == (from) ? ((atomic)->value = (to), (from)) : (atomic)->value)
#define smp_mb() ((void)0)
