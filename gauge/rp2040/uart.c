/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The serial line, 500,000 baud as on every gauge.  Bytes to send wait in a ring buffer, from which the main loop fills the
 * UART's FIFO of 32 bytes.  An interrupt reads the received bytes, so that a measurement loses no command.
 */
#include "drivers.h"
#include "machine.h"
#include "registers.h"

#define DIVISOR_64THS (CLOCK_HZ * 4 / SERIAL_BAUD)
#define SEND_SIZE 256 /* indices are bytes that wrap */
#define RECEIVE_SIZE 256

_Static_assert(DIVISOR_64THS * SERIAL_BAUD == CLOCK_HZ * 4, "the clock divides to the baud rate exactly");

static uint8_t send_head, send_tail;
static volatile uint8_t receive_head, receive_tail;
static volatile uint16_t dropped;
static uint8_t send[SEND_SIZE], receive[RECEIVE_SIZE];

static void feed(void)
{
	while (send_tail != send_head && !(UART_UARTFR & UART_UARTFR_TXFF_BITS))
		UART_UARTDR = send[send_tail++];
}

void uart_interrupt(void)
{
	while (!(UART_UARTFR & UART_UARTFR_RXFE_BITS)) {
		uint8_t byte = (uint8_t)UART_UARTDR, next = receive_head + 1;

		if (next == receive_tail) {
			dropped++;
			continue;
		}
		receive[receive_head] = byte;
		receive_head = next;
	}
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
	CLOCKS_CLK_PERI_CTRL = CLOCKS_CLK_PERI_CTRL_ENABLE_BITS; /* without it the UART stays in reset */
	unreset_blocks(RESETS_RESET_UART0_BITS);
	IO_BANK0_GPIO_CTRL(0) = IO_BANK0_GPIO0_CTRL_FUNCSEL_VALUE_UART0_TX;
	IO_BANK0_GPIO_CTRL(1) = IO_BANK0_GPIO1_CTRL_FUNCSEL_VALUE_UART0_RX;
	PADS_BANK0_GPIO(1) = PAD_INPUT_PULLED_UP;
	UART_UARTIBRD = DIVISOR_64THS / 64;
	UART_UARTFBRD = DIVISOR_64THS % 64;
	UART_UARTLCR_H = 3u << UART_UARTLCR_H_WLEN_LSB | UART_UARTLCR_H_FEN_BITS;
	UART_UARTCR = UART_UARTCR_UARTEN_BITS | UART_UARTCR_TXE_BITS | UART_UARTCR_RXE_BITS;
	UART_UARTIMSC = UART_UARTIMSC_RXIM_BITS | UART_UARTIMSC_RTIM_BITS;
	M0PLUS_NVIC_IPR(UART0_IRQ) = LOWEST_PRIORITY(UART0_IRQ);
	M0PLUS_NVIC_ISER = 1u << UART0_IRQ;
}
