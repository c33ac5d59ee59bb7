/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The USB descriptors of the gauge: a serial port (CDC ACM), its two interfaces and three endpoints.  The vendor's
 * and product's numbers are those that the chip's maker gives to every program that is such a port.
 */
#ifndef GAUGE_DESCRIPTORS_H
#define GAUGE_DESCRIPTORS_H

#include <stdint.h>

#define VENDOR 0x2e8a
#define PRODUCT 0x000a
#define MAKER u"fastenough"
#define NAME u"fastenough gauge"

#define PACKET_SIZE 64
#define STATE_SIZE 8
#define LINE_ENDPOINT 1 /* in and out */
#define STATE_ENDPOINT 2 /* of the line, which never changes by itself */

enum { DESCRIBES_DEVICE = 1, DESCRIBES_CONFIGURATION, DESCRIBES_STRING, DESCRIBES_INTERFACE, DESCRIBES_ENDPOINT,
       DESCRIBES_CLASS = 0x24 };
enum { LANGUAGES_STRING, MAKER_STRING, NAME_STRING, SERIAL_STRING };
enum { CDC = 2, CDC_DATA = 10, ACM = 2, BULK = 2, INTERRUPT = 3, INTO_HOST = 0x80 };

#define LOW_HIGH(value) (value) & 0xff, (value) >> 8

static const uint8_t DEVICE[] = {
	18, DESCRIBES_DEVICE, LOW_HIGH(0x0200), CDC, 0, 0, PACKET_SIZE, LOW_HIGH(VENDOR), LOW_HIGH(PRODUCT), LOW_HIGH(0x0100),
	MAKER_STRING, NAME_STRING, SERIAL_STRING, 1,
};

#define CONFIGURATION_SIZE 67
static const uint8_t CONFIGURATION[] = {
	9, DESCRIBES_CONFIGURATION, LOW_HIGH(CONFIGURATION_SIZE), 2, 1, 0, 0x80, 100 / 2, /* mA, from the bus */
	9, DESCRIBES_INTERFACE, 0, 0, 1, CDC, ACM, 0, 0,
	5, DESCRIBES_CLASS, 0, LOW_HIGH(0x0110),
	5, DESCRIBES_CLASS, 1, 0, 1, /* calls are not managed */
	4, DESCRIBES_CLASS, 2, 2,    /* the line's state can be set */
	5, DESCRIBES_CLASS, 6, 0, 1, /* interface 1 carries the data of 0 */
	7, DESCRIBES_ENDPOINT, INTO_HOST | STATE_ENDPOINT, INTERRUPT, LOW_HIGH(STATE_SIZE), 255,
	9, DESCRIBES_INTERFACE, 1, 0, 2, CDC_DATA, 0, 0, 0,
	7, DESCRIBES_ENDPOINT, LINE_ENDPOINT, BULK, LOW_HIGH(PACKET_SIZE), 0,
	7, DESCRIBES_ENDPOINT, INTO_HOST | LINE_ENDPOINT, BULK, LOW_HIGH(PACKET_SIZE), 0,
};
_Static_assert(sizeof(CONFIGURATION) == CONFIGURATION_SIZE, "a configuration states its size");
_Static_assert(CONFIGURATION_SIZE % PACKET_SIZE != 0, "the last packet of an answer is shorter than others");

#define US_ENGLISH 0x0409
#define LETTERS(text) (sizeof(text) / 2 - 1)

#endif
