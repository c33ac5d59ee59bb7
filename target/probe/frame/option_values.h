/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of options: their texts, their defaults, and the conflicts between them. */
#ifndef OPTION_VALUES_H
#define OPTION_VALUES_H

#include "options.h"

/* Sets the option's target; bad input where the text is no value of it.  The text may be NULL where none is needed. */
void option_set(const struct option_spec *option, const char *value);

/* Replaces values that were not given by their defaults, joins the control group and sets the thread's name; bad input
 * where options conflict. */
void options_resolve(const struct probe *probe, struct settings *settings);

#endif
