/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bank as read from the device, and its check. */
#ifndef BANK_READ_H
#define BANK_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "bank.h"

#define BANK_FAULT 160

struct bank {
	struct fe_bank_head head;
	const fe_u32 *buckets[FE_BANK_MAX_SERIES]; /* of .series[i].first on; in the bytes that were read */
};

/* False if these bytes are not a valid bank; fault then names the error.  Bytes must be aligned as by malloc(). */
bool bank_check(const void *bytes, size_t size, struct bank *bank, char fault[BANK_FAULT]);

#endif
