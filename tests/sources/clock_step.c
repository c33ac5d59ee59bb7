/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clock-step MS..: moves the wall clock by each of these, one right after the other, exactly.  For guests of tests. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		long long ms = atoll(argv[i]);
		long long seconds = ms / 1000 - (ms % 1000 < 0);
		struct timex step = {.modes = ADJ_SETOFFSET | ADJ_NANO};

		step.time.tv_sec = seconds;
		step.time.tv_usec = (ms - seconds * 1000) * 1000000; /* in ns, as ADJ_NANO says */
		if (adjtimex(&step) < 0) {
			perror("adjtimex");
			return 1;
		}
	}
	return 0;
}
