/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OPTION_VALUES_H
#define OPTION_VALUES_H

#include "options.h"

/* Sets the option's target; bad input where the text is no value of it.  The text may be NULL where none is needed. */
void option_set(const struct option_spec *option, const char *value);

#endif
