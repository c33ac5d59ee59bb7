/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the values of a complete wake-up, and reports each new maximum. */
#include "task.h"

struct finding_map findings SEC(".maps");

/* User space makes it smaller without --samples. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} samples SEC(".maps");

fe_u32 epoch = 0;     /* counted up by user space */
fe_u32 counting = 0;  /* set by user space for the length of a run */
fe_u64 unmatched = 0, dropped = 0;
fe_u64 lost_findings = 0;    /* findings for which there was no room */
fe_u64 lost_samples = 0;    /* samples for which there was no room */
fe_u64 no_return = 0; /* wake-ups that were counted without their return to user space */

static __always_inline bool in_order(const struct wakeup *wakeup)
{
	return wakeup->expiry_ns <= wakeup->interrupt_ns && wakeup->interrupt_ns <= wakeup->runnable_ns &&
	       wakeup->runnable_ns <= wakeup->running_ns &&
	       (!wakeup->return_ns || wakeup->running_ns <= wakeup->return_ns);
}

/* Resets the worst times at the begin of a recording. */
static __always_inline void enter_recording(struct cpu *cpu, u32 recording)
{
	if (cpu->recording == recording)
		return;
	cpu->recording = recording;
	__builtin_memset(cpu->worst, 0, sizeof(cpu->worst));
}

static __always_inline void update_worst(struct worst *worst, const struct wakeup *wakeup)
{
	u64 late_ns = wakeup->expiry_ns ? wakeup->interrupt_ns - wakeup->expiry_ns : 0;
	u64 waited_ns = wakeup->running_ns - wakeup->runnable_ns;
	u64 first_ns = wakeup->expiry_ns ? wakeup->expiry_ns : wakeup->interrupt_ns;
	u64 total_ns = wakeup->running_ns - (first_ns ? first_ns : wakeup->runnable_ns);

	worst->late_ns = late_ns > worst->late_ns ? late_ns : worst->late_ns;
	worst->waited_ns = waited_ns > worst->waited_ns ? waited_ns : worst->waited_ns;
	worst->total_ns = total_ns > worst->total_ns ? total_ns : worst->total_ns;
}

/* Copies the records of the CPU.  Those of another CPU than that on which the task waited are not of the wait, of which
 * only the last task is known then. */
static __always_inline void copy_records(struct finding *finding, const struct cpu *cpu, bool moved, u64 before_from_ns)
{
	if (moved) {
		finding->vector = VECTOR_NONE;
		finding->unknown_until_ns = before_from_ns;
		__builtin_memset(finding->recent, 0, sizeof(finding->recent));
		__builtin_memset(finding->holders, 0, sizeof(finding->holders));
		return;
	}
	finding->vector = cpu->vector;
	finding->unknown_until_ns = cpu->unknown_until_ns;
	__builtin_memcpy(finding->recent, cpu->recent, sizeof(finding->recent));
	__builtin_memcpy(finding->holders, cpu->holders, sizeof(finding->holders));
}

static __noinline int report(struct cpu *cpu, u32 id, u32 now, struct task *task, const void *who)
{
	struct finding *finding = bpf_ringbuf_reserve(&findings, sizeof(*finding), 0);

	if (!finding) {
		__sync_fetch_and_add(&lost_findings, 1);
		return 0;
	}
	finding->wakeup = task->wakeup;
	finding->at_ns = bpf_ktime_get_ns();
	finding->maxima = cpu->maxima;
	finding->over = cpu->over;
	__builtin_memcpy(finding->values, cpu->values, sizeof(finding->values));
	finding->cpu = id;
	finding->epoch = now;
	finding->frequency_khz = cpu->frequency_khz;
	finding->idle_state = task->idle_left;
	describe(&finding->task, who);
	copy_context(&finding->interrupted, task->knows & KNOWS_INTERRUPTED ? &task->at_wakeup : NULL);
	copy_context(&finding->before, task->knows & KNOWS_BEFORE ? &task->before : NULL);
	copy_context(&finding->after, task->knows & KNOWS_AFTER ? &task->after : NULL);
	finding->before_from_ns = task->before_from_ns;
	copy_records(finding, cpu, task->cpu != id, task->before_from_ns);
	bpf_ringbuf_submit(finding, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline int store_sample(const struct cpu *cpu, u32 id, const struct wakeup *wakeup)
{
	struct timer_sample *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);

	if (!sample) {
		__sync_fetch_and_add(&lost_samples, 1);
		return 0;
	}
	sample->expiry_ns = wakeup->expiry_ns;
	__builtin_memcpy(sample->values, cpu->values, sizeof(sample->values));
	sample->cpu = id;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void add(struct cpu *cpu, u32 id, u32 now, u32 station, s64 value)
{
	int flags;

	if (value < 0)
		return;
	cpu->values[station] = value;
	flags = station_add(cpu, now, id, station, value);
	cpu->maxima |= (u64)(flags & VALUE_MAXIMUM) << station;
	cpu->over |= (u64)(flags >> 1) << station;
}

/* Calls the stations of the wake-up's origin. */
#define STATION(NAME, TEXT, FROM, TO, ORIGIN) OF_##ORIGIN(NAME)
#define OF_TIMER(NAME) OF(ORIGIN_TIMER, NAME)
#define OF_DEVICE(NAME) OF(ORIGIN_DEVICE, NAME)
#define OF_TASK(NAME) OF(ORIGIN_TASK, NAME)
#define OF_NOISE(NAME)

#define OF(ORIGIN, NAME) __hidden s64 NAME(const struct wakeup *wakeup);
#include "stations.inc"
#undef OF

#define OF(ORIGIN, NAME) \
	if (wakeup->origin == ORIGIN) \
		add(cpu, id, now, STATION_##NAME, NAME(wakeup));
static __always_inline void add_all(struct cpu *cpu, u32 id, u32 now, const struct wakeup *wakeup)
{
	cpu->maxima = cpu->over = 0;
	__builtin_memset(cpu->values, 0xff, sizeof(cpu->values)); /* NO_VALUE */
#include "stations.inc"
}

__hidden int count(struct cpu *cpu, u32 id, struct task *task, const void *who)
{
	const struct wakeup *wakeup;
	u32 now = epoch;

	if (!cpu || !task)
		return 0;
	wakeup = &task->wakeup;
	task->state = NONE;
	if (!counting)
		return 0;
	if (cpu->busy) {
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}
	if (!in_order(wakeup)) {
		__sync_fetch_and_add(&unmatched, 1);
		return 0;
	}
	cpu->busy = 1;
	if (wakeup->origin != ORIGIN_TASK && !wakeup->return_ns)
		__sync_fetch_and_add(&no_return, 1);
	enter_recording(cpu, recordings[now & 1]);
	add_all(cpu, id, now, wakeup);
	if (wakeup->origin < ORIGINS)
		update_worst(&cpu->worst[wakeup->origin], wakeup);
	if (cpu->maxima | cpu->over)
		report(cpu, id, now, task, who);
	if (filter.store_samples && wakeup->expiry_ns)
		store_sample(cpu, id, wakeup);
	cpu->busy = 0;
	return 0;
}
