/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps of the wall clock, and time in which the machine was suspended. */
#include "clocks.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "run.h"

/* Smaller differences are due to readings of two clocks at different instants. */
#define CLOCK_STEP_NS 100000

/* A timer that never expires, but is cancelled when the wall clock is set: so a step and its reversal are detected too. */
static int watch_clock(void)
{
	struct itimerspec never = {.it_value = {.tv_sec = INT64_MAX / NS_PER_S}};
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) == 0)
		return fd;
	close(fd);
	return -1;
}

/* True if the wall clock was set since the last call. */
static bool clock_was_set(const struct machine *machine)
{
	uint64_t expiries;

	return machine->clock_set_fd >= 0 && read(machine->clock_set_fd, &expiries, sizeof(expiries)) < 0 && errno == ECANCELED;
}

/* While the machine is suspended the monotonic clock stands still, and the others go on. */
static int64_t read_suspended(struct run *run, struct counters *counters)
{
	struct machine *machine = &run->machine;
	int64_t offset = boot_offset_ns();
	int64_t suspended = offset - machine->boot_offset_ns;

	if (suspended < CLOCK_STEP_NS)
		suspended = 0;
	else
		machine->boot_offset_ns = offset;
	machine->suspended_ns += suspended;
	if (suspended)
		record_event(run, "note", NULL, mono_ns(), suspended, "the machine was suspended");
	counter_set(counters, COUNTER_SUSPENDED_NS, machine->suspended_ns);
	return suspended;
}

/* The kernel sets the wall clock on resume; that does not count as a step. */
static void read_clock_steps(struct run *run, struct counters *counters, int64_t suspended)
{
	struct machine *machine = &run->machine;
	bool was_set = clock_was_set(machine) && !suspended;
	int64_t offset = wall_offset_ns();
	int64_t step = offset - machine->wall_offset_ns - suspended;
	bool stepped = step > CLOCK_STEP_NS || step < -CLOCK_STEP_NS;

	if (stepped)
		machine->clock_step_ns += step < 0 ? -step : step;
	if (stepped || was_set)
		record_event(run, "clock-step", NULL, mono_ns(), step, "the wall clock was set");
	machine->wall_offset_ns = offset;
	machine->clock_sets += was_set;
	counter_set(counters, COUNTER_CLOCK_STEP_NS, machine->clock_step_ns);
	if (machine->clock_set_fd >= 0)
		counter_set(counters, COUNTER_CLOCK_SETS, machine->clock_sets);
}

void clocks_open(struct machine *machine)
{
	machine->clock_set_fd = watch_clock();
	machine->wall_offset_ns = wall_offset_ns();
	machine->boot_offset_ns = boot_offset_ns();
}

void clocks_read(struct run *run, struct counters *counters)
{
	read_clock_steps(run, counters, read_suspended(run, counters));
}
