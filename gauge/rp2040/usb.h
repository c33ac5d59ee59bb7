/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The USB device in two parts: its control endpoint, by which the host sets it up (usb_control.c), and the line (usb.c). */
#ifndef GAUGE_USB_H
#define GAUGE_USB_H

#include <stdbool.h>
#include <stdint.h>

#include "chip.h"

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

/* The control endpoint. */
void usb_control_begin(void);
void usb_control_reset(void);
void usb_control_setup(void);
void usb_control_sent(void);
void usb_control_received(void);

/* The line: what the host has set up, or begun anew. */
void usb_line_set_up(bool configured);
void usb_line_open(bool open);
void usb_line_unstall(uint8_t endpoint);

#endif
