/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ways to the lines of a test: with a queue of edges that have time stamps, and with a pending edge that has none. */
#ifndef PINS_H
#define PINS_H

#define PINS_WAYS(X)                                                                                               \
	X(queue)                                                                                                   \
	X(level)

#endif
