/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reply.h"

#include "crc16.h"
#include "gauge.h"

void reply_begin(struct reply *reply, bool checked)
{
	reply->checked = checked;
	reply->column = 0;
	reply->lines = 0;
	reply->crc = 0;
}

/* A reply waits at most this many turns of the main loop for the sample queue to become empty. */
#define MAX_TURNS 64

/* Samples take precedence over a reply, unless they arrive faster than they can be stored. */
static bool samples_pending(void)
{
	return !gauge.queue.closed && !queue_is_empty(&gauge.queue);
}

static void make_room(uint8_t bytes)
{
	uint8_t turns = MAX_TURNS;

	do {
		gauge_serve();
	} while (machine_send_space() < bytes || (samples_pending() && --turns));
}

static void send(uint8_t byte)
{
	make_room(1);
	machine_put(byte);
}

static void put_at_once(struct reply *reply, char c)
{
	reply->crc = crc16_add(reply->crc, (uint8_t)c);
	reply->column = 1;
	machine_put((uint8_t)c);
}

static void put(struct reply *reply, char c)
{
	make_room(1);
	put_at_once(reply, c);
}

void reply_text(struct reply *reply, text_t text)
{
	char c;

	while ((c = text_byte(text++)))
		put(reply, c);
}

void reply_string(struct reply *reply, const char *text)
{
	while (*text)
		put(reply, *text++);
}

/* Powers of ten: a small machine then needs neither division nor a buffer. */
static const uint64_t HIGH_POWERS[] TEXT_CONST = {
	10000000000000000000u, 1000000000000000000u, 100000000000000000u, 10000000000000000u, 1000000000000000u,
	100000000000000u, 10000000000000u, 1000000000000u, 100000000000u, 10000000000u, 1000000000u,
};

static const uint32_t LOW_POWERS[] TEXT_CONST = {
	100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1,
};

/* For 16-bit numbers, as nearly all of a histogram are.  No sample is stored while a number is written. */
static const uint16_t SMALL_POWERS[] TEXT_CONST = { 10000, 1000, 100, 10, 1 };

#define MOST_DIGITS 20
#define COUNT(array) (sizeof(array) / sizeof(array[0]))

static bool put_high_digits(struct reply *reply, uint64_t *value)
{
	bool begun = false;

	for (uint8_t i = 0; i < COUNT(HIGH_POWERS); i++) {
		uint64_t power;
		char digit = '0';

		text_copy(&power, &HIGH_POWERS[i], sizeof(power));
		for (; *value >= power; *value -= power)
			digit++;
		begun |= digit != '0';
		if (begun)
			put_at_once(reply, digit);
	}
	return begun;
}

static void put_low_digits(struct reply *reply, uint32_t value, bool begun)
{
	for (uint8_t i = 0; i < COUNT(LOW_POWERS); i++) {
		uint32_t power;
		char digit = '0';

		text_copy(&power, &LOW_POWERS[i], sizeof(power));
		for (; value >= power; value -= power)
			digit++;
		begun |= digit != '0' || i == COUNT(LOW_POWERS) - 1;
		if (begun)
			put_at_once(reply, digit);
	}
}

static void put_small_digits(struct reply *reply, uint16_t value)
{
	bool begun = false;

	for (uint8_t i = 0; i < COUNT(SMALL_POWERS); i++) {
		uint16_t power;
		char digit = '0';

		text_copy(&power, &SMALL_POWERS[i], sizeof(power));
		for (; value >= power; value -= power)
			digit++;
		begun |= digit != '0' || i == COUNT(SMALL_POWERS) - 1;
		if (begun)
			put_at_once(reply, digit);
	}
}

static void __attribute__((noinline)) put_digits(struct reply *reply, uint64_t value)
{
	bool begun;

	if (value <= UINT16_MAX) {
		put_small_digits(reply, (uint16_t)value);
		return;
	}
	begun = value >> 29 && put_high_digits(reply, &value);
	put_low_digits(reply, (uint32_t)value, begun);
}

/* Makes room for all digits first: gauge_serve() needs stack, and put_digits() has taken much of it. */
void reply_unsigned(struct reply *reply, uint64_t value)
{
	make_room(MOST_DIGITS);
	put_digits(reply, value);
}

static void key(struct reply *reply, text_t name)
{
	if (reply->column)
		put(reply, ' ');
	reply_text(reply, name);
	put(reply, '=');
}

void reply_key(struct reply *reply, text_t name, uint64_t value)
{
	key(reply, name);
	reply_unsigned(reply, value);
}

void reply_signed_key(struct reply *reply, text_t name, int64_t value)
{
	key(reply, name);
	if (value < 0)
		put(reply, '-');
	reply_unsigned(reply, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_hex(uint16_t value)
{
	for (int8_t shift = 12; shift >= 0; shift -= 4) {
		uint8_t digit = (value >> shift) & 15;

		send(digit < 10 ? '0' + digit : 'A' - 10 + digit);
	}
}

void reply_line_end(struct reply *reply)
{
	if (reply->checked) {
		send(' ');
		send('*');
		put_hex(reply->crc);
	}
	send('\r');
	send('\n');
	reply->crc = 0;
	reply->column = 0;
	reply->lines++;
}

void reply_ok(struct reply *reply)
{
	uint16_t lines = reply->lines;

	reply_text(reply, TEXT("ok"));
	reply_key(reply, TEXT("lines"), lines);
	reply_line_end(reply);
}

void reply_error(struct reply *reply, text_t reason)
{
	reply_text(reply, TEXT("error "));
	reply_text(reply, reason);
	reply_line_end(reply);
}
