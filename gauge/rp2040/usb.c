/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line over USB: the controller, the line's endpoint, and the control endpoint, by which the host sets the device
 * up.  Bytes to send wait in a ring until the host has taken the packet before; while no program has the port open they are
 * discarded.  Received bytes wait in the controller while the ring has no room, so none is lost.
 *
 * A packet is shorter than its endpoint allows: after a packet of full size the host would expect more of the same transfer.
 */
#include <string.h>

#include "chip.h"
#include "descriptors.h"
#include "machine.h"
#include "parts.h"

/* Hands a buffer of an endpoint to the controller.  It is given last, for the controller has another clock and must find the
 * rest in place. */
static inline void usb_give(uint8_t endpoint, bool out, uint32_t length, bool data1)
{
	uint32_t buffer = length | (data1 ? USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_PID_0_BITS : 0) |
	                  (out ? 0 : USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_FULL_0_BITS);

	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) = buffer;
	for (uint8_t cycles = 0; cycles < 4; cycles++)
		__asm__ volatile("nop\n\tnop\n\tnop");
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) = buffer | USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_AVAILABLE_0_BITS;
}

/* Bytes in a buffer of an endpoint. */
static inline uint32_t usb_length(uint8_t endpoint, bool out)
{
	return USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) & USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_LENGTH_0_BITS;
}

/* Writes both buffers of an endpoint: with 0 the firmware takes them back. */
static inline void usb_set_buffers(uint8_t endpoint, uint32_t control)
{
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, true) = control;
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, false) = control;
}

#define RING_SIZE 256 /* what a byte counts */
#define SENT_AT_ONCE (PACKET_SIZE - 1)
#define OUT_DATA 0x180
#define IN_DATA 0x1c0
#define STATE_DATA 0x200
#define INTERRUPT_PER_BUFFER USB_DEVICE_DPRAM_EP_CONTROL_INTERRUPT_PER_BUFF_BITS
#define BULK_TYPE (USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_VALUE_BULK << USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_LSB)
#define INTERRUPT_TYPE \
	(USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_VALUE_INTERRUPT << USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_LSB)

static uint8_t send_head, send_tail;
static volatile uint8_t receive_head, receive_tail;
static uint8_t send[RING_SIZE], receive[RING_SIZE];

static struct {
	volatile bool set_up, open;
	volatile bool stale;    /* what waits to be sent is for a host that has gone */
	volatile bool sending;  /* a packet that the host has not taken */
	volatile bool offering; /* a buffer for what the host sends */
	bool in_data1, out_data1;
} line;

static uint8_t receive_room(void)
{
	return receive_tail - receive_head - 1;
}

static void offer(void)
{
	line.offering = true;
	usb_give(LINE_ENDPOINT, true, PACKET_SIZE, line.out_data1);
	line.out_data1 = !line.out_data1;
}

static void receive_packet(void)
{
	uint8_t size = (uint8_t)usb_length(LINE_ENDPOINT, true);

	for (uint8_t i = 0; i < size; i++)
		receive[receive_head++] = USB_DEVICE_DPRAM[OUT_DATA + i];
	line.offering = false;
	if (receive_room() >= PACKET_SIZE)
		offer();
}

static void end_packets(void)
{
	usb_set_buffers(LINE_ENDPOINT, 0);
	line.sending = line.offering = false;
	line.in_data1 = line.out_data1 = false;
}

static void begin_endpoint(uint8_t number, bool out, uint32_t control)
{
	USB_DEVICE_DPRAM_EP_CONTROL(number, out) = USB_DEVICE_DPRAM_EP_CONTROL_ENABLE_BITS | control;
}

static void line_set_up(bool configured)
{
	end_packets();
	line.open = false;
	line.stale = true;
	line.set_up = configured;
	begin_endpoint(LINE_ENDPOINT, true, INTERRUPT_PER_BUFFER | BULK_TYPE | OUT_DATA);
	begin_endpoint(LINE_ENDPOINT, false, INTERRUPT_PER_BUFFER | BULK_TYPE | IN_DATA);
	begin_endpoint(STATE_ENDPOINT, false, INTERRUPT_TYPE | STATE_DATA);
}

static void line_open(bool open)
{
	line.stale = true;
	line.open = open;
}

/* The host counts packets anew; what waits for it is given once more. */
static void line_unstall(uint8_t endpoint)
{
	if (endpoint == LINE_ENDPOINT) {
		line.out_data1 = false;
		if (line.offering)
			offer();
	} else if (endpoint == (INTO_HOST | LINE_ENDPOINT)) {
		line.in_data1 = line.sending;
		if (line.sending)
			usb_give(LINE_ENDPOINT, false, usb_length(LINE_ENDPOINT, false), false);
	}
}

/* Endpoint 0: the requests to any device, and to a serial port.  The speed that the host sets for the port is stored and
 * returned, and has no effect. */
enum { KIND = 0x60, STANDARD = 0x00, OF_CLASS = 0x20, RECIPIENT = 0x1f, ENDPOINT = 2 };
enum { GET_STATUS = 0, CLEAR_FEATURE = 1, SET_ADDRESS = 5, GET_DESCRIPTOR = 6, GET_CONFIGURATION = 8,
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

static void send_answer(void)
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
	send_answer();
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
	line_set_up(value);
	return agree();
}

static bool clear_feature(const struct setup *setup)
{
	if ((setup->type & RECIPIENT) == ENDPOINT)
		line_unstall((uint8_t)setup->index);
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
		line_open(setup->value & LINE_IS_OPEN);
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
static void control_setup(void)
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
static void control_sent(void)
{
	if (control.address) {
		USB_ADDR_ENDP = control.address;
		control.address = 0;
	} else if (control.left) {
		send_answer();
	} else if (control.answering) {
		control.answering = false;
		usb_give(0, true, 0, true);
	}
}

static void control_received(void)
{
	if (!control.receiving)
		return;
	control.receiving = false;
	for (uint8_t i = 0; i < sizeof(line_coding); i++)
		line_coding[i] = USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_EP0_BUFFER_OFFSET + i];
	agree();
}

static void control_reset(void)
{
	control.left = 0;
	control.answering = control.receiving = false;
	control.address = control.configuration = 0;
	usb_set_buffers(0, 0);
	USB_ADDR_ENDP = 0;
}

/* The serial number is that of the flash. */
static void control_begin(void)
{
	static const char DIGITS[] = "0123456789ABCDEF";
	uint8_t id[FLASH_ID_BYTES];

	flash_id(id);
	for (uint8_t i = 0; i < SERIAL_LETTERS; i++)
		serial_number[i] = (uint16_t)DIGITS[id[i / 2] >> (i % 2 ? 0 : 4) & 15];
}

static void end_session(void)
{
	USB_SIE_STATUS = USB_SIE_STATUS_BUS_RESET_BITS;
	USB_BUFF_STATUS = USB_BUFF_STATUS;
	control_reset();
	line_set_up(false);
}

static void take_buffers(uint32_t done)
{
	USB_BUFF_STATUS = done;
	if (done & USB_BUFF_STATUS_EP_BITS(0, false))
		control_sent();
	if (done & USB_BUFF_STATUS_EP_BITS(0, true))
		control_received();
	if (done & USB_BUFF_STATUS_EP_BITS(LINE_ENDPOINT, false))
		line.sending = false;
	if (done & USB_BUFF_STATUS_EP_BITS(LINE_ENDPOINT, true))
		receive_packet();
}

void usb_interrupt(void)
{
	uint32_t pending = USB_INTS;

	if (pending & USB_INTS_BUS_RESET_BITS)
		end_session();
	else if (pending & USB_INTS_BUFF_STATUS_BITS)
		take_buffers(USB_BUFF_STATUS);
	if (pending & USB_INTS_SETUP_REQ_BITS) {
		USB_SIE_STATUS = USB_SIE_STATUS_SETUP_REC_BITS;
		control_setup();
	}
}

static void send_packet(void)
{
	uint8_t size = 0;

	while (send_tail != send_head && size < SENT_AT_ONCE)
		USB_DEVICE_DPRAM[IN_DATA + size++] = send[send_tail++];
	line.sending = true;
	usb_give(LINE_ENDPOINT, false, size, line.in_data1);
	line.in_data1 = !line.in_data1;
}

static void feed(void)
{
	if (line.stale || !line.open) {
		line.stale = false;
		send_tail = send_head;
	}
	if (send_tail != send_head && !line.sending)
		send_packet();
	if (line.set_up && !line.offering && receive_room() >= PACKET_SIZE)
		offer();
}

uint8_t machine_room(void)
{
	feed();
	return send_tail - send_head - 1;
}

bool machine_sent_all(void)
{
	feed();
	return send_tail == send_head;
}

void machine_put(uint8_t byte)
{
	send[send_head++] = byte;
}

bool machine_get(uint8_t *byte)
{
	feed();
	if (receive_head == receive_tail)
		return false;
	*byte = receive[receive_tail];
	receive_tail++;
	return true;
}

uint16_t machine_bytes_dropped(void)
{
	return 0;
}

/* The pin that would show the bus voltage is not used: VBUS is taken as present, since the host only talks if it is. */
void line_begin(void)
{
	chip_begin(RESETS_RESET_PLL_USB_BITS);
	pll_begin(PLL_USB_BASE, 100, 5, 5);
	CLOCKS_CLK_USB_CTRL = CLOCKS_CLK_USB_CTRL_ENABLE_BITS;
	chip_begin(RESETS_RESET_USBCTRL_BITS);
	for (uint16_t at = 0; at < OUT_DATA; at += 4)
		REGISTER(USBCTRL_DPRAM_BASE + at) = 0;
	control_begin();
	USB_USB_MUXING = USB_USB_MUXING_TO_PHY_BITS | USB_USB_MUXING_SOFTCON_BITS;
	USB_USB_PWR = USB_USB_PWR_VBUS_DETECT_BITS | USB_USB_PWR_VBUS_DETECT_OVERRIDE_EN_BITS;
	USB_MAIN_CTRL = USB_MAIN_CTRL_CONTROLLER_EN_BITS;
	USB_INTE = USB_INTE_BUS_RESET_BITS | USB_INTE_SETUP_REQ_BITS | USB_INTE_BUFF_STATUS_BITS;
	M0PLUS_NVIC_IPR(USBCTRL_IRQ) = LOWEST_PRIORITY(USBCTRL_IRQ);
	M0PLUS_NVIC_ISER = 1u << USBCTRL_IRQ;
	USB_SIE_CTRL = USB_SIE_CTRL_EP0_INT_1BUF_BITS | USB_SIE_CTRL_PULLUP_EN_BITS;
}
