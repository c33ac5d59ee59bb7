/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "frame.h"

int main(int argc, char **argv)
{
	struct settings settings;
	const struct probe *probe = options_parse(argc, argv, &settings);
	struct run *run = run_new(probe, &settings);

	probe->setup(run);
	return run_execute(run);
}
