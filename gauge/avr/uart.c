/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line: 500,000 baud, which 16 MHz divides exactly (115,200 would be 2.1 % off) and every serial driver supports.
 * A ring buffer for each direction: a reply does not delay a measurement, and a measurement does not lose a command.
 */
#include <avr/interrupt.h>

#include "drivers.h"
#include "machine.h"
#include "port.h"

#define SEND_SIZE 32 /* powers of two */
#define RECEIVE_SIZE 32

static volatile uint8_t send_head, send_tail, receive_head, receive_tail;
static volatile uint16_t dropped;
static uint8_t send[SEND_SIZE], receive[RECEIVE_SIZE];

ISR(EMPTY_VECTOR)
{
	uint8_t tail = send_tail;

	if (send_head == tail) {
		UART(UCSRB) &= ~UDRIEn;
		return;
	}
	UART(UDR) = send[tail];
	send_tail = (tail + 1) & (SEND_SIZE - 1);
}

ISR(RX_VECTOR)
{
	uint8_t head = receive_head, next = (head + 1) & (RECEIVE_SIZE - 1);
	uint8_t byte = UART(UDR);

	if (next == receive_tail) {
		dropped++;
		return;
	}
	receive[head] = byte;
	receive_head = next;
}

uint8_t machine_send_space(void)
{
	return (send_tail - send_head - 1) & (SEND_SIZE - 1);
}

bool machine_send_done(void)
{
	return send_tail == send_head;
}

void machine_put(uint8_t byte)
{
	uint8_t head = send_head;

	send[head] = byte;
	send_head = (head + 1) & (SEND_SIZE - 1);
	UART(UCSRB) |= UDRIEn;
}

bool machine_get(uint8_t *byte)
{
	uint8_t tail = receive_tail;

	if (receive_head == tail)
		return false;
	*byte = receive[tail];
	receive_tail = (tail + 1) & (RECEIVE_SIZE - 1);
	return true;
}

uint16_t machine_bytes_dropped(void)
{
	uint16_t count;

	machine_lock();
	count = dropped;
	machine_unlock();
	return count;
}

void uart_begin(void)
{
	UART(UCSRA) = U2Xn;
	UART(UBRR) = CLOCK_HZ / 8 / SERIAL_BAUD - 1;
	UART(UCSRC) = UCSZn1 | UCSZn0;
	UART(UCSRB) = TXENn | RXENn | RXCIEn;
}
