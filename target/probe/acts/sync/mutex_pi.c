/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mutex-pi: the same as mutex-contended, with priority inheritance. */
#include "contended.h"
#include "pair.h"

static void setup(struct run *run)
{
	contended_setup(run, true);
}

const struct probe mutex_pi_probe = {
	.name = "mutex-pi",
	.summary = "the same as mutex-contended, for a mutex with priority inheritance",
	.options = pair_options,
	.setup = setup,
};
