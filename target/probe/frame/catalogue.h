/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "options.h"

/* Prints every probe with its options, and the common ones, as one line of JSON. */
void catalogue_print(const struct option_spec *common);

#endif
