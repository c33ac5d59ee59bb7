/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines for the journal; a lasting state is reported once. */
#ifndef SAY_H
#define SAY_H

enum say_subject { SAY_RING, SAY_SERVER, SAY_TAKER, SAY_ORDER, SAY_SUBJECTS };

__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* The same unless it was the last line of this subject. */
__attribute__((format(printf, 2, 3))) void say_once(enum say_subject subject, const char *format, ...);
/* One line, and status 2. */
__attribute__((format(printf, 1, 2), noreturn)) void bad_input(const char *format, ...);

#endif
