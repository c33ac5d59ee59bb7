/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Endpoint 0: what a host asks of any device, and of a serial port.  The speed that it sets for the port is kept and shown, and
 * means nothing. */
#include <string.h>

#include "descriptors.h"
#include "parts.h"
#include "usb.h"

enum { TO_HOST = 0x80, KIND = 0x60, STANDARD = 0x00, OF_CLASS = 0x20, RECIPIENT = 0x1f, ENDPOINT = 2 };
enum { GET_STATUS = 0, CLEAR_FEATURE = 1, SET_FEATURE = 3, SET_ADDRESS = 5, GET_DESCRIPTOR = 6, GET_CONFIGURATION = 8,
       SET_CONFIGURATION = 9, GET_INTERFACE = 10, SET_INTERFACE = 11 };
enum { SET_LINE_CODING = 0x20, GET_LINE_CODING = 0x21, SET_LINE_STATE = 0x22, SEND_BREAK = 0x23 };
enum { LINE_IS_OPEN = 1, LINE_CODING_SIZE = 7, SERIAL_LETTERS = 2 * FLASH_ID_BYTES };

struct setup {
	uint8_t type, request;
	uint16_t value, index, length;
};

static struct {
	const uint8_t *answer; /* what of it is not sent yet */
	uint16_t left;
	bool answering, receiving, data1;
	uint8_t address; /* which begins once the host knows that it was taken; 0 for none */
	uint8_t configuration;
} control;

static uint8_t line_coding[LINE_CODING_SIZE];
static uint16_t serial_number[SERIAL_LETTERS];
static uint8_t made[2 + 2 * SERIAL_LETTERS]; /* an answer that is no constant */

_Static_assert(sizeof(made) >= sizeof(NAME) && sizeof(made) < PACKET_SIZE, "every string fits, and one packet carries it");

static void copy_to_usb(const uint8_t *from, uint16_t size)
{
	for (uint16_t i = 0; i < size; i++)
		USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_EP0_BUFFER_OFFSET + i] = from[i];
}

static void send_packet(void)
{
	uint16_t size = control.left < PACKET_SIZE ? control.left : PACKET_SIZE;

	copy_to_usb(control.answer, size);
	control.answer += size;
	control.left -= size;
	usb_give(0, false, size, control.data1);
	control.data1 = !control.data1;
}

static bool answer(const struct setup *setup, const void *data, uint16_t size)
{
	control.answer = data;
	control.left = size < setup->length ? size : setup->length;
	control.answering = true;
	send_packet();
	return true;
}

static bool agree(void)
{
	usb_give(0, false, 0, true);
	return true;
}

static bool answer_string(const struct setup *setup, const uint16_t *letters, uint8_t count)
{
	made[0] = 2 + 2 * count;
	made[1] = DESCRIBES_STRING;
	memcpy(made + 2, letters, 2 * count);
	return answer(setup, made, made[0]);
}

static bool describe_string(const struct setup *setup)
{
	static const uint16_t LANGUAGES[] = { US_ENGLISH };

	switch (setup->value & 0xff) {
	case LANGUAGES_STRING:
		return answer_string(setup, LANGUAGES, 1);
	case MAKER_STRING:
		return answer_string(setup, MAKER, LETTERS(MAKER));
	case NAME_STRING:
		return answer_string(setup, NAME, LETTERS(NAME));
	case SERIAL_STRING:
		return answer_string(setup, serial_number, SERIAL_LETTERS);
	default:
		return false;
	}
}

static bool describe(const struct setup *setup)
{
	switch (setup->value >> 8) {
	case DESCRIBES_DEVICE:
		return answer(setup, DEVICE, sizeof(DEVICE));
	case DESCRIBES_CONFIGURATION:
		return answer(setup, CONFIGURATION, sizeof(CONFIGURATION));
	case DESCRIBES_STRING:
		return describe_string(setup);
	default:
		return false;
	}
}

static bool configure(uint16_t value)
{
	if (value > 1)
		return false;
	control.configuration = (uint8_t)value;
	usb_line_set_up(value);
	return agree();
}

static bool clear_feature(const struct setup *setup)
{
	if ((setup->type & RECIPIENT) == ENDPOINT)
		usb_line_unstall((uint8_t)setup->index);
	return agree();
}

static bool standard(const struct setup *setup)
{
	static const uint8_t NOTHING[2];

	switch (setup->request) {
	case SET_ADDRESS:
		control.address = setup->value & 0x7f;
		return agree();
	case GET_DESCRIPTOR:
		return describe(setup);
	case SET_CONFIGURATION:
		return configure(setup->value);
	case GET_CONFIGURATION:
		return answer(setup, &control.configuration, 1);
	case GET_STATUS:
		return answer(setup, NOTHING, 2);
	case GET_INTERFACE:
		return answer(setup, NOTHING, 1);
	case CLEAR_FEATURE:
		return clear_feature(setup);
	case SET_INTERFACE:
		return setup->value == 0 && agree();
	default:
		return false;
	}
}

static bool of_class(const struct setup *setup)
{
	switch (setup->request) {
	case SET_LINE_CODING:
		control.receiving = true;
		usb_give(0, true, PACKET_SIZE, true);
		return true;
	case GET_LINE_CODING:
		return answer(setup, line_coding, sizeof(line_coding));
	case SET_LINE_STATE:
		usb_line_open(setup->value & LINE_IS_OPEN);
		return agree();
	case SEND_BREAK:
		return agree();
	default:
		return false;
	}
}

static void refuse(void)
{
	USB_EP_STALL_ARM = USB_EP_STALL_ARM_EP0_IN_BITS | USB_EP_STALL_ARM_EP0_OUT_BITS;
	usb_set_buffers(0, USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_STALL_BITS);
}

/* What was asked before is forgotten. */
void usb_control_setup(void)
{
	struct setup setup;

	for (uint8_t i = 0; i < sizeof(setup); i++)
		((uint8_t *)&setup)[i] = USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_SETUP_PACKET_OFFSET + i];
	control.left = 0;
	control.answering = control.receiving = false;
	control.address = 0;
	control.data1 = true;
	usb_set_buffers(0, 0);
	if ((setup.type & KIND) == STANDARD ? !standard(&setup) : (setup.type & KIND) != OF_CLASS || !of_class(&setup))
		refuse();
}

/* An answer ends when the host says, by an empty packet, that it has come. */
void usb_control_sent(void)
{
	if (control.address) {
		USB_ADDR_ENDP = control.address;
		control.address = 0;
	} else if (control.left) {
		send_packet();
	} else if (control.answering) {
		control.answering = false;
		usb_give(0, true, 0, true);
	}
}

void usb_control_received(void)
{
	if (!control.receiving)
		return;
	control.receiving = false;
	for (uint8_t i = 0; i < sizeof(line_coding); i++)
		line_coding[i] = USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_EP0_BUFFER_OFFSET + i];
	agree();
}

void usb_control_reset(void)
{
	control.left = 0;
	control.answering = control.receiving = false;
	control.address = control.configuration = 0;
	usb_set_buffers(0, 0);
	USB_ADDR_ENDP = 0;
}

/* The serial number is that of the flash. */
void usb_control_begin(void)
{
	static const char DIGITS[] = "0123456789ABCDEF";
	uint8_t id[FLASH_ID_BYTES];

	flash_id(id);
	for (uint8_t i = 0; i < SERIAL_LETTERS; i++)
		serial_number[i] = (uint16_t)DIGITS[id[i / 2] >> (i % 2 ? 0 : 4) & 15];
}
