/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw samples as binary frames between the text: 0x00, a COBS block, 0x00.  The block contains 'S', the sequence number of
 * its first sample (16 bits), up to four samples (32 bits each) and their CRC-16, little endian.  Text contains no 0x00:
 * bytes between two of them with a correct CRC are a frame, everything else is text.
 */
#ifndef GAUGE_STREAM_H
#define GAUGE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define STREAM_SAMPLES 4
#define STREAM_HEAD 3
#define STREAM_PAYLOAD (STREAM_HEAD + 4 * STREAM_SAMPLES + 2)
#define STREAM_FRAME (STREAM_PAYLOAD + 3) /* COBS code and both delimiters */

struct stream {
	bool on;
	uint8_t length;    /* of the payload so far, in bytes */
	uint16_t sequence; /* number of the next sample */
	uint32_t dropped;  /* samples for which the line had no room; gaps in the sequence show where */
	uint8_t payload[STREAM_PAYLOAD];
};

void stream_begin(struct stream *stream, bool on);

/* Adds a sample, and sends the frame once it is full. */
void stream_add(struct stream *stream, uint32_t sample);

/* Sends the samples collected so far; without room on the line they are dropped and counted. */
void stream_flush(struct stream *stream);

#endif
