/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * The interface of /dev/fastenough-oob/LABEL: one open file per line.  oob_read() reads the edges of an input, one struct
 * fe_oob_edge per call; oob_write() sets the level of an output, a __u32.
 */
#ifndef FE_OOB_GPIO_H
#define FE_OOB_GPIO_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FE_OOB_FOLDER "fastenough-oob"

struct fe_oob_request {
	__u32 offset;
	__u32 output; /* else an input */
	__u32 high;   /* initial level of an output */
};

struct fe_oob_edge {
	__u64 at_ns;   /* CLOCK_MONOTONIC, in the interrupt's handler */
	__u32 high;    /* level of the line in the handler */
	__u32 dropped; /* edges before this one that were dropped because the queue was full */
};

#define FE_OOB_LINES _IOR('F', 0, __u32)
#define FE_OOB_REQUEST _IOW('F', 1, struct fe_oob_request)
#define FE_OOB_LEVEL _IOR('F', 2, __u32)

#endif
