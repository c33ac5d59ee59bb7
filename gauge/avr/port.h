/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The differences between the microcontrollers: the 16-bit timer, the pins, the serial port.  Registers are named as in
 * the datasheets, without the number of the timer or serial port. */
#ifndef GAUGE_PORT_H
#define GAUGE_PORT_H

#include <avr/io.h>

#if defined(__AVR_ATmega328P__) /* Uno, Nano: output D9, input D8 */
#define TIMER(name) TIMER_1_##name
#define UART(name) UART_0_##name
#define RX_VECTOR USART_RX_vect
#define EMPTY_VECTOR USART_UDRE_vect
#define OUT_PORT PORTB
#define OUT_DDR DDRB
#define OUT_PIN PINB
#define OUT_BIT 1
#define IN_PORT PORTB
#define IN_PIN PINB
#define IN_BIT 0

#elif defined(__AVR_ATmega2560__) /* Mega 2560: output D46, input D48; the input of Timer 1 is not on the header */
#define TIMER(name) TIMER_5_##name
#define UART(name) UART_0_##name
#define RX_VECTOR USART0_RX_vect
#define EMPTY_VECTOR USART0_UDRE_vect
#define OUT_PORT PORTL
#define OUT_DDR DDRL
#define OUT_PIN PINL
#define OUT_BIT 3
#define IN_PORT PORTL
#define IN_PIN PINL
#define IN_BIT 1

#elif defined(__AVR_ATmega32U4__) /* Leonardo, Micro: output D9, input D4, serial on D0 and D1 */
#define TIMER(name) TIMER_1_##name
#define UART(name) UART_1_##name
#define RX_VECTOR USART1_RX_vect
#define EMPTY_VECTOR USART1_UDRE_vect
#define OUT_PORT PORTB
#define OUT_DDR DDRB
#define OUT_PIN PINB
#define OUT_BIT 5
#define IN_PORT PORTD
#define IN_PIN PIND
#define IN_BIT 4

#else
#error "unknown microcontroller: add its timer, pins and serial port here"
#endif

#define TIMER_1_TCNT TCNT1
#define TIMER_1_ICR ICR1
#define TIMER_1_OCRA OCR1A
#define TIMER_1_OCRB OCR1B
#define TIMER_1_TCCRA TCCR1A
#define TIMER_1_TCCRB TCCR1B
#define TIMER_1_TCCRC TCCR1C
#define TIMER_1_TIFR TIFR1
#define TIMER_1_TIMSK TIMSK1
#define TIMER_1_OVF_VECTOR TIMER1_OVF_vect
#define TIMER_1_CAPT_VECTOR TIMER1_CAPT_vect
#define TIMER_1_COMPB_VECTOR TIMER1_COMPB_vect

#define TIMER_5_TCNT TCNT5
#define TIMER_5_ICR ICR5
#define TIMER_5_OCRA OCR5A
#define TIMER_5_OCRB OCR5B
#define TIMER_5_TCCRA TCCR5A
#define TIMER_5_TCCRB TCCR5B
#define TIMER_5_TCCRC TCCR5C
#define TIMER_5_TIFR TIFR5
#define TIMER_5_TIMSK TIMSK5
#define TIMER_5_OVF_VECTOR TIMER5_OVF_vect
#define TIMER_5_CAPT_VECTOR TIMER5_CAPT_vect
#define TIMER_5_COMPB_VECTOR TIMER5_COMPB_vect

#define UART_0_UDR UDR0
#define UART_0_UCSRA UCSR0A
#define UART_0_UCSRB UCSR0B
#define UART_0_UCSRC UCSR0C
#define UART_0_UBRR UBRR0
#define UART_1_UDR UDR1
#define UART_1_UCSRA UCSR1A
#define UART_1_UCSRB UCSR1B
#define UART_1_UCSRC UCSR1C
#define UART_1_UBRR UBRR1

/* Bits that are in the same place in all 16-bit timers and serial ports of the family, named as in the datasheets. */
#define COMnA1 (1 << 7) /* with COMnA0: output A is set on a match; alone: it is cleared */
#define COMnA0 (1 << 6)
#define CSn0 (1 << 0)  /* undivided clock: one tick is one cycle */
#define ICESn (1 << 6) /* capture rising edges */
#define FOCnA (1 << 7)
#define TOVn (1 << 0)
#define OCFnB (1 << 2)
#define ICFn (1 << 5)
#define TOIEn (1 << 0)
#define OCIEnB (1 << 2)
#define ICIEn (1 << 5)
#define U2Xn (1 << 1)
#define TXENn (1 << 3)
#define RXENn (1 << 4)
#define UDRIEn (1 << 5)
#define RXCIEn (1 << 7)
#define UCSZn1 (1 << 2)
#define UCSZn0 (1 << 1)

#define SET_OUTPUT_ON_MATCH (COMnA1 | COMnA0)
#define CLEAR_OUTPUT_ON_MATCH COMnA1

#endif
