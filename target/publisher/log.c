/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 512

static char last[LOG_SUBJECTS][ROOM];

static void log_arguments(const char *format, va_list arguments)
{
	char text[ROOM];

	vsnprintf(text, sizeof(text), format, arguments);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

void log_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_arguments(format, arguments);
	va_end(arguments);
}

void log_once(enum log_subject subject, const char *format, ...)
{
	char text[ROOM];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!strcmp(text, last[subject]))
		return;
	memcpy(last[subject], text, sizeof(text));
	log_line("%s", text);
}

void bad_input(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_arguments(format, arguments);
	va_end(arguments);
	exit(2);
}
