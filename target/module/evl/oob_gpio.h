/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * What /dev/fastenough-oob/LABEL takes, for driver and programs: each opening is for one line.  An input's edges are read
 * with oob_read(), one struct at a time; an output's level is written with oob_write(), as a __u32.
 */
#ifndef FE_OOB_GPIO_H
#define FE_OOB_GPIO_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FE_OOB_FOLDER "fastenough-oob"

struct fe_oob_request {
	__u32 offset;
	__u32 output; /* else an input */
	__u32 high;   /* where an output begins */
};

struct fe_oob_edge {
	__u64 at_ns;   /* CLOCK_MONOTONIC, in the interrupt's handler */
	__u32 high;    /* the level that the line had then */
	__u32 dropped; /* edges before this one that found the queue full */
};

#define FE_OOB_LINES _IOR('F', 0, __u32)
#define FE_OOB_TAKE _IOW('F', 1, struct fe_oob_request)
#define FE_OOB_LEVEL _IOR('F', 2, __u32)

#endif
