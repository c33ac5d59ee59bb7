/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The USB descriptors of the gauge: a serial port (CDC ACM) with two interfaces and three endpoints.  Vendor and product
 * number are those that Raspberry Pi assigns to all serial ports of RP2040 programs.
 */
#ifndef GAUGE_DESCRIPTORS_H
#define GAUGE_DESCRIPTORS_H

#include <stdint.h>

#define VENDOR_ID 0x2e8a
#define PRODUCT_ID 0x000a
#define MANUFACTURER u"fastenough"
#define PRODUCT_NAME u"fastenough gauge"

#define PACKET_SIZE 64
#define NOTIFICATION_SIZE 8
#define DATA_ENDPOINT 1 /* in and out */
#define NOTIFICATION_ENDPOINT 2 /* never used: the state of the line does not change */

enum { DESCRIPTOR_DEVICE = 1, DESCRIPTOR_CONFIGURATION, DESCRIPTOR_STRING, DESCRIPTOR_INTERFACE, DESCRIPTOR_ENDPOINT,
       DESCRIPTOR_CS_INTERFACE = 0x24 };
enum { LANGUAGES_STRING, MANUFACTURER_STRING, PRODUCT_STRING, SERIAL_STRING };
enum { CDC = 2, CDC_DATA = 10, ACM = 2, BULK = 2, INTERRUPT = 3, ENDPOINT_IN = 0x80 };

#define LITTLE_ENDIAN_16(value) (value) & 0xff, (value) >> 8

static const uint8_t DEVICE[] = {
	18, DESCRIPTOR_DEVICE, LITTLE_ENDIAN_16(0x0200), CDC, 0, 0, PACKET_SIZE, LITTLE_ENDIAN_16(VENDOR_ID), LITTLE_ENDIAN_16(PRODUCT_ID), LITTLE_ENDIAN_16(0x0100),
	MANUFACTURER_STRING, PRODUCT_STRING, SERIAL_STRING, 1,
};

#define CONFIGURATION_SIZE 67
static const uint8_t CONFIGURATION[] = {
	9, DESCRIPTOR_CONFIGURATION, LITTLE_ENDIAN_16(CONFIGURATION_SIZE), 2, 1, 0, 0x80, 100 / 2, /* mA, from the bus */
	9, DESCRIPTOR_INTERFACE, 0, 0, 1, CDC, ACM, 0, 0,
	5, DESCRIPTOR_CS_INTERFACE, 0, LITTLE_ENDIAN_16(0x0110),
	5, DESCRIPTOR_CS_INTERFACE, 1, 0, 1, /* no call management */
	4, DESCRIPTOR_CS_INTERFACE, 2, 2,    /* supports SET_CONTROL_LINE_STATE */
	5, DESCRIPTOR_CS_INTERFACE, 6, 0, 1, /* union: interface 1 carries the data of interface 0 */
	7, DESCRIPTOR_ENDPOINT, ENDPOINT_IN | NOTIFICATION_ENDPOINT, INTERRUPT, LITTLE_ENDIAN_16(NOTIFICATION_SIZE), 255,
	9, DESCRIPTOR_INTERFACE, 1, 0, 2, CDC_DATA, 0, 0, 0,
	7, DESCRIPTOR_ENDPOINT, DATA_ENDPOINT, BULK, LITTLE_ENDIAN_16(PACKET_SIZE), 0,
	7, DESCRIPTOR_ENDPOINT, ENDPOINT_IN | DATA_ENDPOINT, BULK, LITTLE_ENDIAN_16(PACKET_SIZE), 0,
};
_Static_assert(sizeof(CONFIGURATION) == CONFIGURATION_SIZE, "CONFIGURATION_SIZE is the size of the configuration");
_Static_assert(CONFIGURATION_SIZE % PACKET_SIZE != 0, "the last packet of an answer is a short one");

#define US_ENGLISH 0x0409
#define LETTERS(text) (sizeof(text) / 2 - 1)

#endif
