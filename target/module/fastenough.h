/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough.ko: one timed task in the kernel, its histograms, and a device to read them from.
 *
 * main.c           parameters, load and unload
 * linux.c          the list of tasks, and what they need of the rest: as each real-time core has one
 * pins.c           GPIO lines by chip label and offset
 * response.c  periodic.c  timer_handler.c  timer_thread.c  spin.c      the tasks, one file each
 * toggle.c         the act of `periodic`, which ends low
 * interrupt.c      what `response` is answered in: as each real-time core has one
 * grid.c           the due times of a periodic act, and what an act that comes late is charged with
 * tally.c          what a value, or a stall of many periods, adds to a series
 * recorder.c       the series in two banks: the task fills one, the reader empties the other
 * device.c         /dev/fastenough: each read gives a bank as format/bank.h lays it out
 */
#ifndef FASTENOUGH_H
#define FASTENOUGH_H

#include <linux/ktime.h>
#include <linux/types.h>

#include "bank.h"
#include "periodic.h"

struct gpio_desc;

#define FE_MODULE_VERSION "0.2.0"

/* What the module was requested to do; see main.c for each parameter. */
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
	bool stays; /* on one CPU, also where none is chosen */
	unsigned int series_count;
	enum fe_bank_kind series[FE_BANK_MAX_SERIES];
	u32 counters; /* bits, as in struct fe_bank_head */
	int (*start)(void);
	void (*stop)(void);
	/* Reads back what only the task knows; the rest is unknown. */
	void (*settings)(struct fe_bank_value settings[FE_BANK_SETTINGS]);
	struct task_struct *const *thread; /* while it runs; NULL: it has none */
	const s64 *floor_ns; /* of a task that spins: the shortest turn of its loop, which is no gap */
};
/* The task timer-handler, whose timer each core starts and stops in its own way. */
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

/* Who schedules the tasks: Linux, or a real-time core beside it.  A module is built for one. */
struct fe_core {
	const char *implementation;          /* in recordings */
	const char *names;                   /* of its tasks, for who is refused another */
	const struct fe_task *const *tasks;  /* ended by NULL */
	ktime_t (*now)(void);                /* CLOCK_MONOTONIC, as its acts read it */
	/* Returns once no act that was under way can be any more. */
	void (*settle)(void);
	/* Where it cannot run tasks now, says why; 0 where it can. */
	int (*check)(void);
};
extern const struct fe_core fe_core;

/* tally.c */
void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at);
/* What an act that was just recorded is charged with besides. */
void fe_record_charges(struct fe_bank *bank, unsigned int series, struct fe_charges charges);
s32 fe_bucket(s64 value_ns);
void fe_tally_clear(struct fe_tally *tally);
/* The next value of a series follows none. */
void fe_tally_forget(unsigned int series);

/* main.c: stops the task, once; its pins and banks stay until the module is taken out. */
void fe_stop(void);
/* Says why, in the kernel log and in the parameter `refused`. */
__printf(1, 2) void fe_refuse(const char *format, ...);

/* pins.c; levels are plain: 0 low, 1 high. */
int fe_pins_get(const struct fe_task *task);
void fe_pins_put(void);
extern struct gpio_desc *fe_input, *fe_output;
/* The interrupt of the input; below 0, and said why, where it can raise none. */
int fe_pins_irq(void);
extern int fe_output_level; /* as it was set when the pins were taken: not every controller can read it back */

/* recorder.c */
int fe_recorder_create(unsigned int series_count);
void fe_recorder_destroy(void);
/* Before the first act: from when on the first bank counts. */
void fe_recorder_begin(ktime_t begin);
/* For the task: no act takes place any more; only the first call counts. */
void fe_recorder_end(ktime_t end);
/* For the task: an act that fe_core.settle() waits for asks for its instant's bank and fills only that. */
struct fe_bank *fe_recorder_filling(ktime_t at);
/*
 * For the one reader: parts the banks at an instant, waits until no act before it can still be under way, and gives
 * the bank of the time from *begin to *end.  It must be cleared before the next turn.
 */
struct fe_bank *fe_recorder_part(ktime_t *begin, ktime_t *end);
void fe_recorder_clear(struct fe_bank *bank);
/* What was counted since the module was loaded, in banks already cleared. */
u64 fe_recorder_counted(unsigned int counter);

/* device.c */
int fe_device_create(const struct fe_task *task);
void fe_device_destroy(void);

/* grid.c */
enum { FE_WAKEUP, FE_WAKEUP_CORRECTED };
/* Records one act; returns how many periods the grid moves on (1 if none was missed). */
u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now);
/* The grid, and with it the first bank, begins a little later than now; returns its first due time, a period after its
 * begin.  Lay it before the task may first run: from its begin on every period counts. */
ktime_t fe_grid_lay(void);

#endif
