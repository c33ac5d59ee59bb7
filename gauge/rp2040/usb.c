/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line over USB: the controller, the data endpoint, and the control endpoint, by which the host configures the
 * device.  Bytes to send wait in a ring buffer until the host has read the previous packet; while no program has the port
 * open, they are discarded.  Received bytes wait in the controller while the ring buffer is full, so none is lost.
 *
 * Sent packets are shorter than the endpoint allows: after a packet of full size the host expects another one.
 */
#include <string.h>

#include "descriptors.h"
#include "drivers.h"
#include "machine.h"
#include "registers.h"

/* Passes a buffer of an endpoint to the controller.  AVAILABLE is set last, some cycles later: the controller has another
 * clock, and must find the other fields in place. */
static inline void usb_start_buffer(uint8_t endpoint, bool out, uint32_t length, bool data1)
{
	uint32_t buffer = length | (data1 ? USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_PID_0_BITS : 0) |
	                  (out ? 0 : USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_FULL_0_BITS);

	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) = buffer;
	for (uint8_t i = 0; i < 4; i++)
		__asm__ volatile("nop\n\tnop\n\tnop");
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) = buffer | USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_AVAILABLE_0_BITS;
}

/* Number of bytes in a buffer of an endpoint. */
static inline uint32_t usb_buffer_length(uint8_t endpoint, bool out)
{
	return USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, out) & USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_LENGTH_0_BITS;
}

/* Writes the controls of both buffers of an endpoint; 0 returns them to the firmware. */
static inline void usb_set_buffers(uint8_t endpoint, uint32_t control)
{
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, true) = control;
	USB_DEVICE_DPRAM_EP_BUFFER_CONTROL(endpoint, false) = control;
}

#define RING_SIZE 256 /* indices are bytes that wrap */
#define MAX_PACKET (PACKET_SIZE - 1)
#define OUT_BUFFER 0x180
#define IN_BUFFER 0x1c0
#define NOTIFICATION_BUFFER 0x200
#define INTERRUPT_PER_BUFFER USB_DEVICE_DPRAM_EP_CONTROL_INTERRUPT_PER_BUFF_BITS
#define BULK_TYPE (USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_VALUE_BULK << USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_LSB)
#define INTERRUPT_TYPE \
	(USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_VALUE_INTERRUPT << USB_DEVICE_DPRAM_EP_CONTROL_ENDPOINT_TYPE_LSB)

static uint8_t send_head, send_tail;
static volatile uint8_t receive_head, receive_tail;
static uint8_t send[RING_SIZE], receive[RING_SIZE];

static struct {
	volatile bool set_up, open;
	volatile bool stale;            /* the bytes to send are for a host that has gone */
	volatile bool sending;          /* the host has not yet read the packet */
	volatile bool receiving_packet; /* the controller has a buffer for the next packet */
	bool in_data1, out_data1;
} line;

static uint8_t receive_room(void)
{
	return receive_tail - receive_head - 1;
}

static void receive_next(void)
{
	line.receiving_packet = true;
	usb_start_buffer(DATA_ENDPOINT, true, PACKET_SIZE, line.out_data1);
	line.out_data1 = !line.out_data1;
}

static void receive_packet(void)
{
	uint8_t size = (uint8_t)usb_buffer_length(DATA_ENDPOINT, true);

	for (uint8_t i = 0; i < size; i++)
		receive[receive_head++] = USB_DEVICE_DPRAM[OUT_BUFFER + i];
	line.receiving_packet = false;
	if (receive_room() >= PACKET_SIZE)
		receive_next();
}

static void cancel_packets(void)
{
	usb_set_buffers(DATA_ENDPOINT, 0);
	line.sending = line.receiving_packet = false;
	line.in_data1 = line.out_data1 = false;
}

static void begin_endpoint(uint8_t number, bool out, uint32_t control)
{
	USB_DEVICE_DPRAM_EP_CONTROL(number, out) = USB_DEVICE_DPRAM_EP_CONTROL_ENABLE_BITS | control;
}

static void line_configure(bool configured)
{
	cancel_packets();
	line.open = false;
	line.stale = true;
	line.set_up = configured;
	begin_endpoint(DATA_ENDPOINT, true, INTERRUPT_PER_BUFFER | BULK_TYPE | OUT_BUFFER);
	begin_endpoint(DATA_ENDPOINT, false, INTERRUPT_PER_BUFFER | BULK_TYPE | IN_BUFFER);
	begin_endpoint(NOTIFICATION_ENDPOINT, false, INTERRUPT_TYPE | NOTIFICATION_BUFFER);
}

static void line_open(bool open)
{
	line.stale = true;
	line.open = open;
}

/* The host restarts its packet toggle, so a pending buffer is passed to the controller again. */
static void line_clear_halt(uint8_t endpoint)
{
	if (endpoint == DATA_ENDPOINT) {
		line.out_data1 = false;
		if (line.receiving_packet)
			receive_next();
	} else if (endpoint == (ENDPOINT_IN | DATA_ENDPOINT)) {
		line.in_data1 = line.sending;
		if (line.sending)
			usb_start_buffer(DATA_ENDPOINT, false, usb_buffer_length(DATA_ENDPOINT, false), false);
	}
}

/* Endpoint 0: standard requests, and requests of the class CDC.  The line coding that the host sets is stored and returned;
 * it has no effect. */
enum { REQUEST_TYPE_MASK = 0x60, REQUEST_STANDARD = 0x00, REQUEST_CLASS = 0x20, REQUEST_RECIPIENT_MASK = 0x1f,
       RECIPIENT_ENDPOINT = 2 };
enum { GET_STATUS = 0, CLEAR_FEATURE = 1, SET_ADDRESS = 5, GET_DESCRIPTOR = 6, GET_CONFIGURATION = 8,
       SET_CONFIGURATION = 9, GET_INTERFACE = 10, SET_INTERFACE = 11 };
enum { SET_LINE_CODING = 0x20, GET_LINE_CODING = 0x21, SET_CONTROL_LINE_STATE = 0x22, SEND_BREAK = 0x23 };
enum { CONTROL_LINE_DTR = 1, LINE_CODING_SIZE = 7, SERIAL_LETTERS = 2 * FLASH_ID_BYTES };

struct setup {
	uint8_t type, request;
	uint16_t value, index, length;
};

static struct {
	const uint8_t *answer; /* the part that is not yet sent */
	uint16_t left;
	bool answering, receiving, data1;
	uint8_t address; /* takes effect after the status stage; 0: none */
	uint8_t configuration;
} control;

static uint8_t line_coding[LINE_CODING_SIZE];
static uint16_t serial_number[SERIAL_LETTERS];
static uint8_t dynamic_descriptor[2 + 2 * SERIAL_LETTERS]; /* a string descriptor in RAM */

_Static_assert(sizeof(dynamic_descriptor) >= sizeof(PRODUCT_NAME) && sizeof(dynamic_descriptor) < PACKET_SIZE,
	       "every string fits, and one packet carries it");

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
	usb_start_buffer(0, false, size, control.data1);
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

static bool send_status(void)
{
	usb_start_buffer(0, false, 0, true);
	return true;
}

static bool send_string(const struct setup *setup, const uint16_t *letters, uint8_t count)
{
	dynamic_descriptor[0] = 2 + 2 * count;
	dynamic_descriptor[1] = DESCRIPTOR_STRING;
	memcpy(dynamic_descriptor + 2, letters, 2 * count);
	return answer(setup, dynamic_descriptor, dynamic_descriptor[0]);
}

static bool send_string_descriptor(const struct setup *setup)
{
	static const uint16_t LANGUAGES[] = { US_ENGLISH };

	switch (setup->value & 0xff) {
	case LANGUAGES_STRING:
		return send_string(setup, LANGUAGES, 1);
	case MANUFACTURER_STRING:
		return send_string(setup, MANUFACTURER, LETTERS(MANUFACTURER));
	case PRODUCT_STRING:
		return send_string(setup, PRODUCT_NAME, LETTERS(PRODUCT_NAME));
	case SERIAL_STRING:
		return send_string(setup, serial_number, SERIAL_LETTERS);
	default:
		return false;
	}
}

static bool send_descriptor(const struct setup *setup)
{
	switch (setup->value >> 8) {
	case DESCRIPTOR_DEVICE:
		return answer(setup, DEVICE, sizeof(DEVICE));
	case DESCRIPTOR_CONFIGURATION:
		return answer(setup, CONFIGURATION, sizeof(CONFIGURATION));
	case DESCRIPTOR_STRING:
		return send_string_descriptor(setup);
	default:
		return false;
	}
}

static bool configure(uint16_t value)
{
	if (value > 1)
		return false;
	control.configuration = (uint8_t)value;
	line_configure(value);
	return send_status();
}

static bool clear_feature(const struct setup *setup)
{
	if ((setup->type & REQUEST_RECIPIENT_MASK) == RECIPIENT_ENDPOINT)
		line_clear_halt((uint8_t)setup->index);
	return send_status();
}

static bool handle_standard(const struct setup *setup)
{
	static const uint8_t NOTHING[2];

	switch (setup->request) {
	case SET_ADDRESS:
		control.address = setup->value & 0x7f;
		return send_status();
	case GET_DESCRIPTOR:
		return send_descriptor(setup);
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
		return setup->value == 0 && send_status();
	default:
		return false;
	}
}

static bool handle_class(const struct setup *setup)
{
	switch (setup->request) {
	case SET_LINE_CODING:
		control.receiving = true;
		usb_start_buffer(0, true, PACKET_SIZE, true);
		return true;
	case GET_LINE_CODING:
		return answer(setup, line_coding, sizeof(line_coding));
	case SET_CONTROL_LINE_STATE:
		line_open(setup->value & CONTROL_LINE_DTR);
		return send_status();
	case SEND_BREAK:
		return send_status();
	default:
		return false;
	}
}

static void stall(void)
{
	USB_EP_STALL_ARM = USB_EP_STALL_ARM_EP0_IN_BITS | USB_EP_STALL_ARM_EP0_OUT_BITS;
	usb_set_buffers(0, USB_DEVICE_DPRAM_EP_BUFFER_CONTROL_STALL_BITS);
}

/* Handles a setup packet; it cancels any previous request. */
static void control_setup(void)
{
	struct setup setup;

	for (uint8_t i = 0; i < sizeof(setup); i++)
		((uint8_t *)&setup)[i] = USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_SETUP_PACKET_LOW_OFFSET + i];
	control.left = 0;
	control.answering = control.receiving = false;
	control.address = 0;
	control.data1 = true;
	usb_set_buffers(0, 0);
	if ((setup.type & REQUEST_TYPE_MASK) == REQUEST_STANDARD ?
		    !handle_standard(&setup) :
		    (setup.type & REQUEST_TYPE_MASK) != REQUEST_CLASS || !handle_class(&setup))
		stall();
}

/* The host ends an answer with an empty packet, the status stage. */
static void control_sent(void)
{
	if (control.address) {
		USB_ADDR_ENDP = control.address;
		control.address = 0;
	} else if (control.left) {
		send_answer();
	} else if (control.answering) {
		control.answering = false;
		usb_start_buffer(0, true, 0, true);
	}
}

static void control_received(void)
{
	if (!control.receiving)
		return;
	control.receiving = false;
	for (uint8_t i = 0; i < sizeof(line_coding); i++)
		line_coding[i] = USB_DEVICE_DPRAM[USB_DEVICE_DPRAM_EP0_BUFFER_OFFSET + i];
	send_status();
}

static void control_reset(void)
{
	control.left = 0;
	control.answering = control.receiving = false;
	control.address = control.configuration = 0;
	usb_set_buffers(0, 0);
	USB_ADDR_ENDP = 0;
}

/* The serial number of the device is that of its flash. */
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
	line_configure(false);
}

static void handle_buffers(uint32_t done)
{
	USB_BUFF_STATUS = done;
	if (done & USB_BUFF_STATUS_EP_BITS(0, false))
		control_sent();
	if (done & USB_BUFF_STATUS_EP_BITS(0, true))
		control_received();
	if (done & USB_BUFF_STATUS_EP_BITS(DATA_ENDPOINT, false))
		line.sending = false;
	if (done & USB_BUFF_STATUS_EP_BITS(DATA_ENDPOINT, true))
		receive_packet();
}

void usb_interrupt(void)
{
	uint32_t pending = USB_INTS;

	if (pending & USB_INTS_BUS_RESET_BITS)
		end_session();
	else if (pending & USB_INTS_BUFF_STATUS_BITS)
		handle_buffers(USB_BUFF_STATUS);
	if (pending & USB_INTS_SETUP_REQ_BITS) {
		USB_SIE_STATUS = USB_SIE_STATUS_SETUP_REC_BITS;
		control_setup();
	}
}

static void send_packet(void)
{
	uint8_t size = 0;

	while (send_tail != send_head && size < MAX_PACKET)
		USB_DEVICE_DPRAM[IN_BUFFER + size++] = send[send_tail++];
	line.sending = true;
	usb_start_buffer(DATA_ENDPOINT, false, size, line.in_data1);
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
	if (line.set_up && !line.receiving_packet && receive_room() >= PACKET_SIZE)
		receive_next();
}

uint8_t machine_send_space(void)
{
	feed();
	return send_tail - send_head - 1;
}

bool machine_send_done(void)
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

/* No pin senses the bus voltage, so VBUS detection is overridden: without VBUS no host communicates. */
void line_begin(void)
{
	unreset_blocks(RESETS_RESET_PLL_USB_BITS);
	pll_begin(PLL_USB_BASE, 100, 5, 5);
	CLOCKS_CLK_USB_CTRL = CLOCKS_CLK_USB_CTRL_ENABLE_BITS;
	unreset_blocks(RESETS_RESET_USBCTRL_BITS);
	for (uint16_t at = 0; at < OUT_BUFFER; at += 4)
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
