/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line over USB.  What is sent waits in a ring until the host has taken the packet before; while nobody has the
 * port open it is thrown away.  What is received waits in the controller while the ring has no room, so nothing is lost.
 *
 * A packet is shorter than its endpoint allows: one of full size would tell the host that more of it follows.
 */
#include "descriptors.h"
#include "machine.h"
#include "parts.h"
#include "usb.h"

#define RING_SIZE 256 /* what a byte counts */
#define SENT_AT_ONCE (PACKET_SIZE - 1)
#define OUT_DATA 0x180
#define IN_DATA 0x1c0
#define STATE_DATA 0x200

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
	uint8_t size = USB_BUFFER(LINE_ENDPOINT, true) & USB_BUFFER_LENGTH;

	for (uint8_t i = 0; i < size; i++)
		receive[receive_head++] = USB_BYTES[OUT_DATA + i];
	line.offering = false;
	if (receive_room() >= PACKET_SIZE)
		offer();
}

static void end_packets(void)
{
	USB_BUFFER(LINE_ENDPOINT, false) = USB_BUFFER(LINE_ENDPOINT, true) = 0;
	line.sending = line.offering = false;
	line.in_data1 = line.out_data1 = false;
}

void usb_line_set_up(bool configured)
{
	end_packets();
	line.open = false;
	line.stale = true;
	line.set_up = configured;
	USB_ENDPOINT(LINE_ENDPOINT, true) = USB_ENDPOINT_ON | USB_ENDPOINT_TELLS | USB_ENDPOINT_TYPE(BULK) | OUT_DATA;
	USB_ENDPOINT(LINE_ENDPOINT, false) = USB_ENDPOINT_ON | USB_ENDPOINT_TELLS | USB_ENDPOINT_TYPE(BULK) | IN_DATA;
	USB_ENDPOINT(STATE_ENDPOINT, false) = USB_ENDPOINT_ON | USB_ENDPOINT_TYPE(INTERRUPT) | STATE_DATA;
}

void usb_line_open(bool open)
{
	line.stale = true;
	line.open = open;
}

/* The host counts packets anew; what waits for it is given once more. */
void usb_line_unstall(uint8_t endpoint)
{
	if (endpoint == LINE_ENDPOINT) {
		line.out_data1 = false;
		if (line.offering)
			offer();
	} else if (endpoint == (INTO_HOST | LINE_ENDPOINT)) {
		line.in_data1 = line.sending;
		if (line.sending)
			usb_give(LINE_ENDPOINT, false, USB_BUFFER(LINE_ENDPOINT, false) & USB_BUFFER_LENGTH, false);
	}
}

static void end_session(void)
{
	USB_STATUS = USB_STATUS_RESET;
	USB_DONE = USB_DONE;
	usb_control_reset();
	usb_line_set_up(false);
}

static void take_buffers(uint32_t done)
{
	USB_DONE = done;
	if (done & 1u << 0)
		usb_control_sent();
	if (done & 1u << 1)
		usb_control_received();
	if (done & 1u << (2 * LINE_ENDPOINT))
		line.sending = false;
	if (done & 1u << (2 * LINE_ENDPOINT + 1))
		receive_packet();
}

void usb_interrupt(void)
{
	uint32_t told = USB_TELLING;

	if (told & USB_OF_RESET)
		end_session();
	else if (told & USB_OF_BUFFER)
		take_buffers(USB_DONE);
	if (told & USB_OF_SETUP) {
		USB_STATUS = USB_STATUS_SETUP;
		usb_control_setup();
	}
}

static void send_packet(void)
{
	uint8_t size = 0;

	while (send_tail != send_head && size < SENT_AT_ONCE)
		USB_BYTES[IN_DATA + size++] = send[send_tail++];
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

/* It is not known whether the bus has power, but without it nobody asks. */
void line_begin(void)
{
	pll_begin(PLL_USB, 100, 5, 5);
	CLK_USB_CTRL = CLK_ENABLE;
	chip_begin(RESET_USB);
	for (uint16_t at = 0; at < OUT_DATA; at += 4)
		REGISTER(USB_MEMORY + at) = 0;
	usb_control_begin();
	USB_WIRING = USB_WIRING_INSIDE;
	USB_POWER = USB_POWER_TAKEN_FOR_GRANTED;
	USB_MAIN = USB_MAIN_ON;
	USB_TELLS = USB_OF_RESET | USB_OF_SETUP | USB_OF_BUFFER;
	INTERRUPT_PRIORITY(INTERRUPT_USB) = AFTER_OTHERS(INTERRUPT_USB);
	INTERRUPT_ENABLE = 1u << INTERRUPT_USB;
	USB_LINE = USB_LINE_CONTROL_TELLS | USB_LINE_PULL_UP;
}
