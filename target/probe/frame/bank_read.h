/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bank as a device gave it, checked before anything of it is believed. */
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

/* False if these bytes are no sound bank; fault then says what is wrong.  Bytes are aligned as malloc() does it. */
bool bank_check(const void *bytes, size_t size, struct bank *bank, char fault[BANK_FAULT]);

#endif
