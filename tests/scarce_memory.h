/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included before recording.c: of large pieces of memory only the first one can be had. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

static int pieces;

static inline void *scarce_kvmalloc(size_t size, gfp_t flags)
{
	return pieces++ ? NULL : kvmalloc(size, flags);
}

static inline void *scarce_vmalloc(unsigned long size)
{
	return pieces++ ? NULL : vmalloc(size);
}

#undef pr_fmt
#undef kvmalloc
#undef vmalloc
#define kvmalloc scarce_kvmalloc
#define vmalloc scarce_vmalloc
