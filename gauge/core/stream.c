/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stream.h"

#include "crc16.h"
#include "machine.h"

void stream_begin(struct stream *stream, bool on)
{
	stream->on = on;
	stream->length = 0;
	stream->sequence = 0;
	stream->dropped = 0;
}

static void append(struct stream *stream, uint8_t byte)
{
	stream->payload[stream->length++] = byte;
}

void stream_add(struct stream *stream, uint32_t sample)
{
	if (stream->length == 0) {
		append(stream, 'S');
		append(stream, (uint8_t)stream->sequence);
		append(stream, (uint8_t)(stream->sequence >> 8));
	}
	for (uint8_t i = 0; i < 4; i++) {
		append(stream, (uint8_t)sample);
		sample >>= 8;
	}
	stream->sequence++;
	if (stream->length == STREAM_PAYLOAD - 2)
		stream_flush(stream);
}

/* Consistent overhead byte stuffing, directly to the serial line; payloads are shorter than 254 bytes. */
static void put_stuffed(const uint8_t *payload, uint8_t length)
{
	uint8_t from = 0;

	for (uint8_t i = 0; i <= length; i++) {
		if (i < length && payload[i])
			continue;
		machine_put(i - from + 1);
		while (from < i)
			machine_put(payload[from++]);
		from++;
	}
}

void stream_flush(struct stream *stream)
{
	uint16_t crc = 0;

	if (stream->length == 0)
		return;
	if (machine_send_space() < STREAM_FRAME) {
		stream->dropped += (stream->length - STREAM_HEAD) / 4;
		stream->length = 0;
		return;
	}
	for (uint8_t i = 0; i < stream->length; i++)
		crc = crc16_add(crc, stream->payload[i]);
	append(stream, (uint8_t)crc);
	append(stream, (uint8_t)(crc >> 8));
	machine_put(0);
	put_stuffed(stream->payload, stream->length);
	machine_put(0);
	stream->length = 0;
}
