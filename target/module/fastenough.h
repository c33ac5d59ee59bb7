/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough.ko: one timed task in the kernel, its histograms, and a device to read them from.
 *
 * main.c           parameters, load and unload
 * linux.c          the core Linux: its tasks and calls; each real-time core has such a file
 * pins.c           GPIO lines by chip label and offset
 * response.c  periodic.c  timer_handler.c  timer_thread.c  spin.c      the tasks, one file each
 * toggle.c         the act of `periodic`, which ends low
 * interrupt.c      the interrupt of `response`; each real-time core has such a file
 * grid.c           the due times of a periodic act, and the charges of a late act
 * tally.c          adds a value, or the charges of a stall, to a series
 * recorder.c       the series in two banks: the task fills one, the reader empties the other
 * device.c         /dev/fastenough: each read returns a bank in the format of format/bank.h
 */
#ifndef FASTENOUGH_H
#define FASTENOUGH_H

#include <linux/ktime.h>
#include <linux/types.h>

#include "bank.h"
#include "periodic.h"

struct gpio_desc;

#define FE_MODULE_VERSION "0.2.0"

/* The module's parameters; main.c describes each. */
struct fe_options {
	char *task;
	char *chip;
	int in_line, out_line;
	int cpu;
	int priority;
	unsigned long period_ns;
	unsigned long width_ns, window_ns;
	bool explain;
};
extern struct fe_options fe_options;
extern int fe_cpu; /* of timer or thread; -1: any */

struct fe_tally {
	struct fe_stats stats;
	u64 lost, missed, gaps;
	ktime_t max_at;
	int max_cpu;
	s32 rises[FE_BANK_EDGES + 1];
	u32 *buckets; /* points at bucket 0; -(FE_BANK_HALF - 1) .. FE_BANK_HALF - 1 are valid */
};

struct fe_bank {
	struct fe_tally series[FE_BANK_MAX_SERIES];
	u64 counters[FE_BANK_COUNTERS];
	int cpu; /* of the last act; -1: none */
};

/* A task owns the timed act and nothing else. */
struct fe_task {
	const char *name;
	enum fe_bank_task number;
	bool needs_input, needs_output, needs_period, needs_window;
	bool stays; /* on one CPU, even if none is requested */
	unsigned int series_count;
	enum fe_bank_kind series[FE_BANK_MAX_SERIES];
	u32 counters; /* bits, as in struct fe_bank_head */
	int (*start)(void);
	void (*stop)(void);
	/* Fills in the settings that the task knows; the others stay unknown. */
	void (*settings)(struct fe_bank_value settings[FE_BANK_SETTINGS]);
	struct task_struct *const *thread; /* valid while it runs; NULL: the task has no thread */
	const s64 *floor_ns; /* of `spin`: the shortest iteration of its loop, which is no gap */
};
/* The task timer-handler; each core starts and stops its own timer. */
#define FE_TIMER_HANDLER(START, STOP)                                                                              \
	const struct fe_task fe_timer_handler = {                                                                  \
		.name = "timer-handler",                                                                           \
		.number = FE_BANK_TIMER_HANDLER,                                                                   \
		.needs_period = true,                                                                              \
		.stays = true,                                                                                     \
		.series_count = 2,                                                                                 \
		.series = { FE_BANK_WAKEUP, FE_BANK_WAKEUP_CORRECTED },                                            \
		.start = START,                                                                                    \
		.stop = STOP,                                                                                      \
	}

/* A setting of which both the requested value and the one in effect are known. */
static inline struct fe_bank_value fe_setting(int requested, int in_effect)
{
	return (struct fe_bank_value){ FE_BANK_REQUESTED | FE_BANK_IN_EFFECT, requested, in_effect };
}

extern const struct fe_task fe_response, fe_periodic, fe_timer_handler, fe_timer_thread, fe_spin;

/* The core that schedules the tasks: Linux, or a real-time core beside it.  A module is built for one core. */
struct fe_core {
	const char *implementation;          /* in recordings */
	const char *names;                   /* of its tasks, for the message about an unknown task */
	const struct fe_task *const *tasks;  /* ended by NULL */
	ktime_t (*now)(void);                /* CLOCK_MONOTONIC, as its acts read it */
	/* Returns after all acts that were in progress have ended. */
	void (*settle)(void);
	/* 0, or an error after fe_refuse() if the core cannot run tasks now; may be NULL. */
	int (*check)(void);
};
extern const struct fe_core fe_core;

/* tally.c */
void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at);
/* Adds the charges for the periods that the act just recorded missed. */
void fe_record_charges(struct fe_bank *bank, unsigned int series, struct fe_charges charges);
s32 fe_bucket(s64 value_ns);
void fe_tally_clear(struct fe_tally *tally);
/* Breaks the order of a series: the next value has no predecessor. */
void fe_tally_break(unsigned int series);

/* main.c: stops the task, once; its pins and banks stay until the module is unloaded. */
void fe_stop(void);
/* Prints the reason to the kernel log and stores it in the parameter `refused`. */
__printf(1, 2) void fe_refuse(const char *format, ...);

/* pins.c; levels are plain: 0 low, 1 high. */
int fe_pins_get(const struct fe_task *task);
void fe_pins_put(void);
extern struct gpio_desc *fe_input, *fe_output;
/* The interrupt number of the input, or an error after fe_refuse(). */
int fe_pins_irq(void);
extern int fe_output_level; /* the initial level of the output; not every controller can read it back */

/* recorder.c */
int fe_recorder_create(unsigned int series_count);
void fe_recorder_destroy(void);
/* Before the first act: the begin of the first bank. */
void fe_recorder_begin(ktime_t begin);
/* For the task: ends its last bank; only the first call has an effect. */
void fe_recorder_end(ktime_t end);
/* For the task, in an act that fe_core.settle() waits for: the bank of an instant; the act fills only this bank. */
struct fe_bank *fe_recorder_bank_at(ktime_t at);
/*
 * For the only reader: switches the banks at an instant, waits until all acts before it have ended, and returns the bank
 * for the time from *begin to *end.  The reader clears it before the next switch.
 */
struct fe_bank *fe_recorder_switch(ktime_t *begin, ktime_t *end);
void fe_recorder_clear(struct fe_bank *bank);
/* A counter's sum over all cleared banks since the module was loaded. */
u64 fe_recorder_counted(unsigned int counter);

/* device.c */
int fe_device_create(const struct fe_task *task);
void fe_device_destroy(void);

/* grid.c */
enum { FE_WAKEUP, FE_WAKEUP_CORRECTED };
/* Records one act; returns how many periods the grid moves on (1 if none was missed). */
u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now);
/* Begins the grid and the first bank slightly after now; returns the first due time, one period after the begin.  Call it
 * before the task can run: every period from the begin on counts. */
ktime_t fe_grid_begin(void);

#endif
