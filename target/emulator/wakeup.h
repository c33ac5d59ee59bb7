/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The path of a wake-up: from the interrupt before the switch to a task until the task's first instructions.
 *
 * An interrupt begins when the kernel reads its number from the interrupt controller.  A number that it does not
 * complete was none: the kernel reads again after each interrupt, until there is no other one.
 */
#ifndef EMULATOR_WAKEUP_H
#define EMULATOR_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct counts {
	uint64_t instructions;
	uint64_t instruction_misses;
	uint64_t data_misses;
};

struct wakeup {
	struct counts read;  /* when the kernel last read a number */
	struct counts begin; /* of the latest interrupt */
	bool interrupted;
	bool switched; /* since that interrupt */
};

static inline void wakeup_read(struct wakeup *self, struct counts now)
{
	self->read = now;
}

static inline void wakeup_completed(struct wakeup *self)
{
	self->begin = self->read;
	self->interrupted = true;
	self->switched = false;
}

static inline void wakeup_switch(struct wakeup *self)
{
	self->switched = self->interrupted;
}

/* The task runs: true at the end of a path, whose counts then are in `path`. */
static inline bool wakeup_run(struct wakeup *self, struct counts now, struct counts *path)
{
	bool ends = self->switched;

	if (ends)
		*path = (struct counts){
			now.instructions - self->begin.instructions,
			now.instruction_misses - self->begin.instruction_misses,
			now.data_misses - self->begin.data_misses,
		};
	self->interrupted = self->switched = false;
	return ends;
}

#endif
