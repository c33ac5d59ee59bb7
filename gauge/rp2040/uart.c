/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line, 500,000 baud as on every gauge.  What is sent waits in a ring and in the chip's own 32 bytes, which
 * the main loop keeps filled; what is received is fetched by interrupt, so that a measurement loses no command.
 */
#include "chip.h"
#include "machine.h"
#include "parts.h"

#define DIVISOR_64THS (CLOCK_HZ * 4 / SERIAL_BAUD)
#define SEND_SIZE 256 /* what a byte counts */
#define RECEIVE_SIZE 256

_Static_assert(DIVISOR_64THS * SERIAL_BAUD == CLOCK_HZ * 4, "the clock divides to the baud rate exactly");

static uint8_t send_head, send_tail;
static volatile uint8_t receive_head, receive_tail;
static volatile uint16_t dropped;
static uint8_t send[SEND_SIZE], receive[RECEIVE_SIZE];

static void feed(void)
{
	while (send_tail != send_head && !(UART_FLAGS & UART_SEND_FULL))
		UART_DATA = send[send_tail++];
}

void uart_interrupt(void)
{
	while (!(UART_FLAGS & UART_RECEIVE_EMPTY)) {
		uint8_t byte = (uint8_t)UART_DATA, next = receive_head + 1;

		if (next == receive_tail) {
			dropped++;
			continue;
		}
		receive[receive_head] = byte;
		receive_head = next;
	}
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
	feed();
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
	return dropped;
}

void line_begin(void)
{
	CLK_PERI_CTRL = CLK_ENABLE; /* without it the serial port would never be out of its reset */
	chip_begin(RESET_UART0);
	PIN_FUNCTION(0) = FUNCTION_UART;
	PIN_FUNCTION(1) = FUNCTION_UART;
	PAD(1) = PAD_INPUT_PULLED_UP;
	UART_DIVISOR = DIVISOR_64THS / 64;
	UART_DIVISOR_64THS = DIVISOR_64THS % 64;
	UART_LINE = UART_8_BITS_FIFO;
	UART_CONTROL = UART_ON;
	UART_INTERRUPTS = UART_WHEN_RECEIVED;
	INTERRUPT_PRIORITY(INTERRUPT_UART0) = AFTER_OTHERS(INTERRUPT_UART0);
	INTERRUPT_ENABLE = 1u << INTERRUPT_UART0;
}
