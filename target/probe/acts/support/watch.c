/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch.h"

#include "units.h"
#include "waiting.h"

#define CHECK_NS (50 * NS_PER_MS)
#define RELEASE_NS NS_PER_MS
#define RELEASE_FOR_NS NS_PER_S
/* A member that has not left this long after the end is dead. */
#define DEAD_NS (NS_PER_S / 2)

static void watch_until_end(struct worker *self, struct watch *watch)
{
	int64_t silence_limit_ns = watch->period_ns + watch->timeout_ns;
	uint64_t seen = 0;
	int64_t seen_ns = mono_ns();

	while (run_is_active(self)) {
		uint64_t progress = atomic_load_explicit(&watch->progress, memory_order_relaxed);
		int64_t now_ns = mono_ns();
		char text[32];

		if (progress != seen) {
			seen = progress;
			seen_ns = now_ns;
		} else if (now_ns - seen_ns > silence_limit_ns) {
			run_fail(worker_run(self), "no act completed within %s of its due time (%llu before it did): a partner is dead, "
				 "deadlocked or starved", format_least(text, sizeof(text), watch->timeout_ns),
				 (unsigned long long)progress);
		}
		if (watch->check)
			watch->check(worker_run(self));
		nap(CHECK_NS);
	}
}

static void watch_worker(struct worker *self, void *argument)
{
	struct watch *watch = argument;
	int members = atomic_load(&watch->members);
	int64_t end_ns;

	watch_until_end(self, watch);
	end_ns = mono_ns();
	while (atomic_load(&watch->members) > 0 && mono_ns() < end_ns + RELEASE_FOR_NS) {
		bool dead = mono_ns() > end_ns + DEAD_NS;

		if (watch->release && (dead || atomic_load(&watch->members) < members))
			watch->release();
		if (watch->rescue && dead)
			watch->rescue();
		nap(RELEASE_NS);
	}
	if (watch->finish)
		watch->finish();
}

void watch_add(struct run *run, struct watch *watch)
{
	run_add_worker(run, &(struct worker_spec){.name = "watch", .cpu = -1, .ordinary = !watch->urgent,
						  .function = watch_worker, .argument = watch});
}
