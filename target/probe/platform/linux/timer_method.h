/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways to sleep until a due time. */
#ifndef TIMER_METHOD_H
#define TIMER_METHOD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "grid.h"

/* One thread's periodic sleep. */
struct sleep {
	clockid_t clock;
	struct grid grid;  /* on that clock */
	int64_t begin_ns;  /* when the last act began; 0 before the first */
	uint64_t overruns; /* told by the kernel at the last wake-up, where it tells */
	timer_t timer;
	int fd;
	uint32_t word; /* a futex nobody wakes */
};

struct timer_method {
	const char *name;
	bool relative;         /* sleeps a length of time: due = before the sleep + interval */
	bool one_per_process;  /* the kernel has only one of these for all threads */
	bool monotonic_only;
	bool whole_microseconds;
	int (*begin)(struct sleep *sleep);  /* the grid begins with the first due time; an errno */
	int (*wait)(struct sleep *sleep);   /* 0: a due time has come; EINTR: none has, wait again; else an errno */
	uint64_t (*missed)(const struct sleep *sleep, int64_t begin_ns);
	void (*finish)(struct sleep *sleep);
};

enum { METHODS = 8 };
extern const struct timer_method timer_methods[METHODS];
extern const char *const timer_method_names[METHODS + 1];

#endif
