/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "text.h"

#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *bytes, size_t size)
{
	if (text->size + size > text->room) {
		text->room = 2 * (text->size + size);
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
}
