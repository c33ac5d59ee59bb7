/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Durations and numbers as people type and read them. */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "200us", "1.5ms", "10m", "250": a bare number counts in plain_ns.  False for anything else. */
bool parse_duration(const char *text, int64_t plain_ns, int64_t *ns);
bool parse_integer(const char *text, int64_t *value);

/*
 * As short as three digits allow: "850 ns", "12.3 µs", "1.50 ms".  Returns buffer.  What is printed is never below the value
 * (format_most) or never above it (format_least): a maximum looks no smaller than it is, and a minimum no greater.
 */
char *format_most(char *buffer, size_t size, int64_t ns);
char *format_least(char *buffer, size_t size, int64_t ns);

#endif
