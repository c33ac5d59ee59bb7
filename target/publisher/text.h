/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A text that grows. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

struct text {
	char *bytes;
	size_t size, room;
};

void text_add(struct text *text, const char *bytes, size_t size);

#endif
