/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which events are the path of a wake-up, and which code is the program's. */
#include <string.h>

#include "check.h"
#include "program.h"
#include "wakeup.h"

/* Plays events, one each 10 instructions: n number read, c interrupt completed, s switch, t the task runs. */
static uint64_t last_path(const char *events)
{
	struct wakeup wakeup = {0};
	struct counts now = {0}, path = {0};
	uint64_t found = 0;

	for (; *events; events++) {
		now.instructions += 10;
		now.instruction_misses += 2;
		now.data_misses++;
		if (*events == 'n')
			wakeup_read(&wakeup, now);
		else if (*events == 'c')
			wakeup_completed(&wakeup);
		else if (*events == 's')
			wakeup_switch(&wakeup);
		else if (*events == 't') {
			found = 0;
			if (wakeup_run(&wakeup, now, &path)) {
				found = path.instructions;
				check(path.instruction_misses * 5 == found && path.data_misses * 10 == found);
			}
		}
	}
	return found;
}

static void paths(void)
{
	check(last_path("ncst") == 30);
	check(last_path("ncnst") == 40); /* the second number is none */
	check(last_path("ncncst") == 30); /* the latest interrupt */
	check(last_path("nct") == 0);	 /* no switch: it was interrupted */
	check(last_path("st") == 0);
	check(last_path("snct") == 0);
	check(last_path("ncsst") == 40);
	check(last_path("ncsnct") == 0); /* interrupted after the switch */
	check(last_path("ncstt") == 0);
	check(last_path("ncstst") == 0);
	check(last_path("ncst...ncnst") == 40);
}

static void program_code(void)
{
	const char code[] = "0123456789abcdefghijklmnopqrstuv";
	struct program program = {(const uint8_t *)code, 0x400000, 32};

	check(program_has(&program, 0x400000, code, 16));
	check(program_has(&program, 0x400010, code + 16, 16));
	check(program_has(&program, 0x400000, code, 32));
	check(!program_has(&program, 0x400000, code, 15));
	check(!program_has(&program, 0x400004, code, 16));
	check(!program_has(&program, 0x400011, code + 17, 16));
	check(!program_has(&program, 0x3ffff0, code, 16));
	check(!program_has(&program, UINT64_MAX - 7, code, 16));
}

static void program_files(const char *self)
{
	struct program program;

	check(!program_read(&program, "/nonexistent"));
	check(!program_read(&program, "/dev/null"));
	check(program_read(&program, self) && program.size > 1000);
	check(program_has(&program, (uintptr_t)program_files, (const void *)program_files, 64));
}

int main(int argc, char **argv)
{
	paths();
	program_code();
	program_files(argc ? argv[0] : "");
	return failures != 0;
}
