/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included before device.c: it can have no memory at all. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#undef pr_fmt
#undef kmalloc
#undef kzalloc
#undef kvmalloc
#undef vmalloc
#define kmalloc(size, flags) NULL
#define kzalloc(size, flags) NULL
#define kvmalloc(size, flags) NULL
#define vmalloc(size) NULL
