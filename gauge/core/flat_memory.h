/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to constant text, for machines with a single address space. */
#ifndef GAUGE_FLAT_MEMORY_H
#define GAUGE_FLAT_MEMORY_H

#define TEXT(string) (string)
#define TEXT_CONST
#define text_byte(address) (*(address))
#define text_copy(to, from, size) memcpy(to, from, size)

#endif
