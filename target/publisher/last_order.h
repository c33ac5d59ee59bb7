/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the time of issue of the newest accepted order: what keeps an order from being carried out twice. */
#ifndef LAST_ORDER_H
#define LAST_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* 0 where there is no file yet; false and errno (EBADMSG: other content) where it cannot be read. */
bool last_order_read(const char *path, int64_t *issued_us);
/* Replaces the file, on disk when it returns true; false and errno. */
bool last_order_write(const char *path, int64_t issued_us);

#endif
