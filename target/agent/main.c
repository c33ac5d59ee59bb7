/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent alone, for the guest of the virtual bench; on other boards it is in the probe's file. */
#include <stddef.h>

#include "agent.h"

int main(int argc, char **argv)
{
	return agent_main(argc, argv, NULL);
}
