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

const char *host_command(const char *line)
{
	host.output_text_length = 0;
	host.output_text[0] = 0;
	host.input_text = line;
	while (*host.input_text)
		commands_serve();
	host.input_text = "\n";
	commands_serve();
	host.input_text = NULL;
	return host.output_text;
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
	if (host.output_text_length < sizeof(host.output_text) - 1)
		host.output_text[host.output_text_length++] = (char)byte;
	host.output_text[host.output_text_length] = 0;
}

uint8_t machine_send_space(void)
{
	return host.send_full ? 0 : 63;
}

bool machine_send_done(void)
{
	return true;
}

bool machine_get(uint8_t *byte)
{
	if (!host.input_text || !*host.input_text)
		return false;
	*byte = (uint8_t)*host.input_text++;
	return true;
}

uint16_t machine_bytes_dropped(void)
{
	return 0;
}

void machine_schedule_stimulus(void)
{
	host.stimuli++;
	host.ticks = gauge.response.stimulus;
	host.output = gauge.response.level;
	if (host.responds) {
		host.input = host.output;
		host.ticks += host.delay;
		gauge_handle_response((uint32_t)host.ticks);
	}
}

void machine_prepare_stimulus(void)
{
}

bool machine_is_prepared(void)
{
	return false;
}

void machine_drive(bool high)
{
	if (high != host.output)
		host.drives++;
	host.output = high;
	if (host.responds)
		host.input = high;
}

void machine_listen_periodic(void)
{
}

void machine_stop_capture(void)
{
}

void machine_resume_capture(void)
{
}

bool machine_input(void)
{
	return host.input;
}

bool machine_capture_pending(void)
{
	return false;
}

void machine_clear_capture(void)
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
