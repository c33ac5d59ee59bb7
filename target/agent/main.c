/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent as a program of its own, for guests of the virtual bench; on other boards it is part of the probe. */
#include <stddef.h>

#include "agent.h"

int main(int argc, char **argv)
{
	return agent_main(argc, argv, NULL);
}
