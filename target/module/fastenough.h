/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fastenough.ko: one timed task in the kernel, its histograms, and a device to read them from.
 *
 * main.c           parameters, the list of tasks, load and unload
 * pins.c           GPIO lines by chip label and offset
 * response.c  periodic.c  timer_handler.c  timer_thread.c      the tasks, one file each
 * grid.c           the due times of a periodic act, and what an act that comes late owes
 * recorder.c       histograms in two banks: the task fills one, the reader empties the other
 * recording.c      /dev/fastenough: the recording of format/, a line at a time
 */
#ifndef FASTENOUGH_H
#define FASTENOUGH_H

#include <linux/ktime.h>
#include <linux/types.h>

#include "fe_hist.h"

struct gpio_desc;

#define FE_MODULE_VERSION "0.1.0"
#define FE_K 10 /* 1024 buckets per octave: at most 0.1 % wide */
#define FE_BUCKETS FE_HIST_BUCKETS(64, FE_K)
#define FE_MAX_SERIES 2
#define FE_MAX_COUNTERS 3
#define FE_MAX_SETTINGS 3

/* What the module was asked to do; see main.c for each parameter. */
struct fe_options {
	char *task;
	char *chip;
	char *run_id;
	int in_line, out_line;
	int cpu;
	int priority;
	unsigned long period_ns;
	unsigned int interval_ms;
	unsigned int duration_ms;
};
extern struct fe_options fe_options;

struct fe_series_kind {
	const char *name, *from, *to;
	bool periodic;
};

struct fe_setting {
	const char *name;
	s64 asked, granted;
};

/* A task owns the timed act and nothing else. */
struct fe_task {
	const char *name;
	const char *probe, *method; /* as they stand in the recording's head */
	bool needs_input, needs_output, needs_period;
	const struct fe_series_kind *series[FE_MAX_SERIES];
	const char *counters[FE_MAX_COUNTERS];
	int (*start)(void);
	void (*stop)(void);
	int (*settings)(struct fe_setting settings[FE_MAX_SETTINGS]); /* read back; returns how many */
};
extern const struct fe_task fe_response, fe_periodic, fe_timer_handler, fe_timer_thread;

/* pins.c; levels are plain: 0 low, 1 high. */
int fe_pins_get(const struct fe_task *task);
void fe_pins_put(void);
extern struct gpio_desc *fe_input, *fe_output;
extern int fe_output_level; /* as it was set when the pins were taken: not every controller can read it back */

/* recorder.c */
struct fe_tally {
	struct fe_stats stats;
	u64 lost, missed;
	ktime_t max_at;
	int max_cpu;
	u32 *buckets[2]; /* magnitudes of values >= 0, and of values < 0 */
};

struct fe_bank {
	struct fe_tally series[FE_MAX_SERIES];
	u64 counters[FE_MAX_COUNTERS];
};

int fe_recorder_create(void);
void fe_recorder_destroy(void);
/* For the task: one act, with preemption or interrupts off, asks for the bank once and fills only that. */
struct fe_bank *fe_recorder_filling(void);
void fe_record(struct fe_bank *bank, unsigned int series, s64 value_ns, ktime_t at);
/* For the one reader: swap banks and get the one just filled; it must be cleared before the next swap. */
struct fe_bank *fe_recorder_swap(void);
void fe_recorder_clear(struct fe_bank *bank);
/* What was counted since the module was loaded, in banks already cleared. */
u64 fe_recorder_counted(unsigned int counter);

/* recording.c */
int fe_recording_create(const struct fe_task *task);
void fe_recording_destroy(void);

/* grid.c */
enum { FE_WAKEUP, FE_WAKEUP_OWED };
extern const struct fe_series_kind fe_wakeup, fe_wakeup_owed;
u64 fe_grid_act(struct fe_bank *bank, ktime_t due, ktime_t now);
ktime_t fe_grid_first(void);

#endif
