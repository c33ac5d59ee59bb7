/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the time of issue of the newest accepted order, which prevents that an order is carried out twice. */
#ifndef LAST_ORDER_H
#define LAST_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* 0 if there is no file yet; false and errno (EBADMSG: invalid content) if it cannot be read. */
bool last_order_read(const char *path, int64_t *issued_us);
/* Replaces the file and syncs it to disk; false and errno on failure. */
bool last_order_write(const char *path, int64_t issued_us);

#endif
