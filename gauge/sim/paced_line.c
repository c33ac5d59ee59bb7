/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "paced.h"

void on_byte(void *context, uint8_t byte)
{
	struct bench *bench = context;

	if (bench->unsent_length == UNSENT)
		bench->bytes_dropped++;
	else
		bench->unsent[bench->unsent_length++] = byte;
}

void hear_terminal(struct bench *bench)
{
	uint8_t byte;

	while (bench->machine.uart_ready && read(bench->terminal, &byte, 1) == 1)
		machine_give(&bench->machine, byte);
}

void tell_terminal(struct bench *bench)
{
	ssize_t length = bench->unsent_length ? write(bench->terminal, bench->unsent, bench->unsent_length) : 0;

	if (length <= 0)
		return;
	bench->unsent_length -= (size_t)length;
	memmove(bench->unsent, bench->unsent + length, bench->unsent_length);
}

int open_terminal(struct bench *bench)
{
	struct termios raw;

	bench->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (bench->terminal < 0 || grantpt(bench->terminal) || unlockpt(bench->terminal))
		return -1;
	/* kept open, so that a program that leaves does not hang the line up */
	bench->terminal_end = open(ptsname(bench->terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (bench->terminal_end < 0 || tcgetattr(bench->terminal_end, &raw))
		return -1;
	cfmakeraw(&raw);
	if (tcsetattr(bench->terminal_end, TCSANOW, &raw))
		return -1;
	if (!bench->link_path)
		return 0;
	return symlink(ptsname(bench->terminal), bench->link_path);
}
