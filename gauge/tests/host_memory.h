/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is alike in all machines that are the host: all memory is one. */
#ifndef GAUGE_HOST_MEMORY_H
#define GAUGE_HOST_MEMORY_H

#define TEXT(string) (string)
#define TEXT_CONST
#define text_byte(address) (*(address))
#define text_copy(to, from, size) memcpy(to, from, size)

#endif
