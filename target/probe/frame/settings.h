/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Building the list of settings, for the files that read them. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "run.h"

/* Adds a setting of this thread or (NULL) of the whole run; both its values are "null" until set. */
struct setting *setting_add(struct settings_read *read, const char *name, const struct worker *worker);
void setting_explain(struct setting *setting, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool setting_as_requested(const struct setting *setting);

/* Replace a value, as JSON. */
void setting_bool(char **setting, bool value);
void setting_int(char **setting, int64_t value);
void setting_text(char **setting, const char *value);
void setting_cpus(char **setting, const struct cpu_list *cpus);

const char *policy_text(int policy); /* POLICY_*; "unknown" for another */

/* Wake-up latency limit in effect, as read back; -1 if there is none. */
int64_t settings_held_us(const struct run *run);

/* settings_place.c: CPUs, control group and name of this program; the first also moves the calling thread there. */
void settings_place_before(struct run *run);
void settings_place_after(struct run *run);

/* Adds all settings of a thread, in a fixed order. */
void settings_of_thread(struct settings_read *read, const struct worker *worker, const struct thread_state *state);

#endif
