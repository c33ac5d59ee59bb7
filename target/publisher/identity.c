/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define ROOM 256

bool first_line(const char *path, char *text, size_t room)
{
	FILE *file = fopen(path, "re");
	size_t size;

	if (!file)
		return false;
	size = fread(text, 1, room - 1, file);
	text[size] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	fclose(file);
	return true;
}

void identity_read_machine(const char *path, char machine[CHUNK_MACHINE])
{
	char text[ROOM];

	if (!first_line(path, text, sizeof(text)))
		bad_input("--machine-id: %s: %s", path, strerror(errno));
	if (strlen(text) != CHUNK_MACHINE - 1 || strspn(text, "0123456789abcdef") != CHUNK_MACHINE - 1)
		bad_input("--machine-id: %s has no machine ID (32 hexadecimal digits); run systemd-machine-id-setup", path);
	memcpy(machine, text, CHUNK_MACHINE);
}
