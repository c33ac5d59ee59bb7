/* SPDX-License-Identifier: GPL-2.0-or-later */
/* semaphore: from posting it to the waiting thread going on. */
#include <semaphore.h>

#include "pair.h"

static sem_t semaphore;

static bool open_semaphore(struct run *run)
{
	(void)run;
	return sem_init(&semaphore, 0, 0) == 0;
}

static void give(struct pair *pair)
{
	pair_note(pair);
	sem_post(&semaphore);
}

static int64_t take(uint64_t number)
{
	(void)number;
	return pair_time(sem_wait(&semaphore) == 0);
}

static const struct pair_act act = {
	.series = "wake",
	.from = "the waker reads the clock before sem_post()",
	.to = "the waiter reads the clock after sem_wait() returned",
	.open = open_semaphore,
	.give = give,
	.take = take,
};

static void setup(struct run *run)
{
	pair_setup(run, &act);
}

const struct probe semaphore_probe = {
	.name = "semaphore",
	.summary = "from posting a POSIX semaphore to the waiting thread going on",
	.options = pair_options,
	.setup = setup,
};
