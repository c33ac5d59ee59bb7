/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The start of a run.  The head announces a begin, from which all grids of due times are laid.  The run starts
 * there, or later where writing the head or letting the workers go took longer: that is no latency of the machine's.
 * From the start on every due time counts, also those that pass before a worker runs for the first time.
 */
#include <errno.h>

#include "periodic.h"
#include "run.h"
#include "sleep.h"
#include "source.h"

#define ANNOUNCED_NS (10 * NS_PER_MS)
/* From letting the workers go to the start. */
#define LEAD_NS (5 * NS_PER_MS)

void run_announce(struct run *run)
{
	if (run->source) {
		run->source->begin(run);
		run->announced_ns = run->begin.mono_ns;
		atomic_store(&run->start_ns, run->begin.mono_ns);
		return;
	}
	run->begin = instant_now();
	run->begin.mono_ns += ANNOUNCED_NS;
	run->begin.wall_ns += ANNOUNCED_NS;
	run->announced_ns = run->begin.mono_ns;
}

int64_t run_start_ns(const struct run *run)
{
	return atomic_load(&run->start_ns);
}

int64_t run_first_due_ns(const struct run *run, int64_t offset_ns, int64_t period_ns)
{
	return fe_due_after(run->announced_ns + offset_ns + period_ns, run_start_ns(run), period_ns);
}

/* The first thread released sets the start for all: the time until then is not predictable. */
void run_set_start(struct run *run)
{
	int64_t none = 0, start_ns = mono_ns() + LEAD_NS;

	if (start_ns < run->announced_ns)
		start_ns = run->announced_ns;
	atomic_compare_exchange_strong(&run->start_ns, &none, start_ns);
}

void run_begin_at_start(struct run *run)
{
	int64_t ahead_ns;

	run_set_start(run);
	run->begin = instant_now();
	ahead_ns = run_start_ns(run) - run->begin.mono_ns;
	run->begin.mono_ns += ahead_ns;
	run->begin.wall_ns += ahead_ns;
}

/* Signals wait meanwhile, so that no run ends before it began; workers too, so that none acts before. */
void run_await_start(const struct run *run)
{
	while (sleep_until(run_start_ns(run)) == EINTR)
		;
}
