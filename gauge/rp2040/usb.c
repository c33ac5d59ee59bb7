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

void usb_line_set_up(bool configured)
{
	end_packets();
	line.open = false;
	line.stale = true;
	line.set_up = configured;
	begin_endpoint(LINE_ENDPOINT, true, INTERRUPT_PER_BUFFER | BULK_TYPE | OUT_DATA);
	begin_endpoint(LINE_ENDPOINT, false, INTERRUPT_PER_BUFFER | BULK_TYPE | IN_DATA);
	begin_endpoint(STATE_ENDPOINT, false, INTERRUPT_TYPE | STATE_DATA);
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
			usb_give(LINE_ENDPOINT, false, usb_length(LINE_ENDPOINT, false), false);
	}
}

static void end_session(void)
{
	USB_SIE_STATUS = USB_SIE_STATUS_BUS_RESET_BITS;
	USB_BUFF_STATUS = USB_BUFF_STATUS;
	usb_control_reset();
	usb_line_set_up(false);
}

static void take_buffers(uint32_t done)
{
	USB_BUFF_STATUS = done;
	if (done & USB_BUFF_STATUS_EP_BITS(0, false))
		usb_control_sent();
	if (done & USB_BUFF_STATUS_EP_BITS(0, true))
		usb_control_received();
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
		usb_control_setup();
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

/* It is not known whether the bus has power, but without it nobody asks. */
void line_begin(void)
{
	pll_begin(PLL_USB_BASE, 100, 5, 5);
	CLOCKS_CLK_USB_CTRL = CLOCKS_CLK_USB_CTRL_ENABLE_BITS;
	chip_begin(RESETS_RESET_USBCTRL_BITS);
	for (uint16_t at = 0; at < OUT_DATA; at += 4)
		REGISTER(USBCTRL_DPRAM_BASE + at) = 0;
	usb_control_begin();
	USB_USB_MUXING = USB_USB_MUXING_TO_PHY_BITS | USB_USB_MUXING_SOFTCON_BITS;
	USB_USB_PWR = USB_USB_PWR_VBUS_DETECT_BITS | USB_USB_PWR_VBUS_DETECT_OVERRIDE_EN_BITS;
	USB_MAIN_CTRL = USB_MAIN_CTRL_CONTROLLER_EN_BITS;
	USB_INTE = USB_INTE_BUS_RESET_BITS | USB_INTE_SETUP_REQ_BITS | USB_INTE_BUFF_STATUS_BITS;
	M0PLUS_NVIC_IPR(USBCTRL_IRQ) = LOWEST_PRIORITY(USBCTRL_IRQ);
	M0PLUS_NVIC_ISER = 1u << USBCTRL_IRQ;
	USB_SIE_CTRL = USB_SIE_CTRL_EP0_INT_1BUF_BITS | USB_SIE_CTRL_PULLUP_EN_BITS;
}
