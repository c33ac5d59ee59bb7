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
	uint32_t buffer = length | (data1 ? USB_BUFFER_DATA1 : 0) | (out ? 0 : USB_BUFFER_FULL);

	USB_BUFFER(endpoint, out) = buffer;
	for (uint8_t cycles = 0; cycles < 4; cycles++)
		__asm__ volatile("nop\n\tnop\n\tnop");
	USB_BUFFER(endpoint, out) = buffer | USB_BUFFER_READY;
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
