/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines for the journal; a lasting state is logged once. */
#ifndef LOG_H
#define LOG_H

enum log_subject { LOG_RING, LOG_SERVER, LOG_TAKER, LOG_ORDER, LOG_SUBJECTS };

__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);
/* The same, unless it repeats the last line of this subject. */
__attribute__((format(printf, 2, 3))) void log_once(enum log_subject subject, const char *format, ...);
/* Logs a line and exits with status 2. */
__attribute__((format(printf, 1, 2), noreturn)) void bad_input(const char *format, ...);

#endif
