/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host_machine.h"

#include <string.h>

#include "commands.h"
#include "gauge.h"
#include "machine.h"

struct host_machine host;

void host_begin(void)
{
	memset(&host, 0, sizeof(host));
	host.input = true;
	host.output = true;
	gauge_begin();
}

const char *host_ask(const char *line)
{
	host.said_length = 0;
	host.said[0] = 0;
	host.typed = line;
	while (*host.typed)
		commands_serve();
	host.typed = "\n";
	commands_serve();
	host.typed = NULL;
	return host.said;
}

uint32_t machine_now(void)
{
	return (uint32_t)host.ticks;
}

uint64_t machine_ticks(void)
{
	return host.ticks;
}

void machine_lock(void)
{
}

void machine_unlock(void)
{
}

void machine_put(uint8_t byte)
{
	if (host.said_length < sizeof(host.said) - 1)
		host.said[host.said_length++] = (char)byte;
	host.said[host.said_length] = 0;
}

uint8_t machine_room(void)
{
	return host.no_room ? 0 : 63;
}

bool machine_sent_all(void)
{
	return true;
}

bool machine_get(uint8_t *byte)
{
	if (!host.typed || !*host.typed)
		return false;
	*byte = (uint8_t)*host.typed++;
	return true;
}

uint16_t machine_bytes_dropped(void)
{
	return 0;
}

void machine_send(void)
{
	host.stimuli++;
	host.ticks = gauge.response.stimulus;
	host.output = gauge.response.level;
	if (host.answers) {
		host.input = host.output;
		host.ticks += host.delay;
		gauge_take_answer((uint32_t)host.ticks);
	}
}

void machine_prepare(void)
{
}

bool machine_prepared(void)
{
	return false;
}

void machine_drive(bool high)
{
	if (high != host.output)
		host.drives++;
	host.output = high;
	if (host.answers)
		host.input = high;
}

void machine_listen_periodic(void)
{
}

void machine_deaf(void)
{
}

void machine_reopen(void)
{
}

bool machine_input(void)
{
	return host.input;
}

bool machine_captured(void)
{
	return false;
}

void machine_forget_capture(void)
{
}

bool machine_is_simulated(void)
{
	return true;
}

uint16_t machine_stack_free(void)
{
	return 0;
}
