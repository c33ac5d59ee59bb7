/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between the microcontrollers: which 16-bit timer, which pins, which serial port. */
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

#elif defined(__AVR_ATmega2560__) /* Mega 2560: output D46, input D48; Timer 1's input is not on its header */
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
#error "this microcontroller is not known; add its timer, pins and serial port here"
#endif

#define TIMER_1_COUNT TCNT1
#define TIMER_1_CAPTURE ICR1
#define TIMER_1_COMPARE_A OCR1A
#define TIMER_1_COMPARE_B OCR1B
#define TIMER_1_CONTROL_A TCCR1A
#define TIMER_1_CONTROL_B TCCR1B
#define TIMER_1_CONTROL_C TCCR1C
#define TIMER_1_FLAGS TIFR1
#define TIMER_1_MASK TIMSK1
#define TIMER_1_OVERFLOW_VECTOR TIMER1_OVF_vect
#define TIMER_1_CAPTURE_VECTOR TIMER1_CAPT_vect
#define TIMER_1_COMPARE_B_VECTOR TIMER1_COMPB_vect

#define TIMER_5_COUNT TCNT5
#define TIMER_5_CAPTURE ICR5
#define TIMER_5_COMPARE_A OCR5A
#define TIMER_5_COMPARE_B OCR5B
#define TIMER_5_CONTROL_A TCCR5A
#define TIMER_5_CONTROL_B TCCR5B
#define TIMER_5_CONTROL_C TCCR5C
#define TIMER_5_FLAGS TIFR5
#define TIMER_5_MASK TIMSK5
#define TIMER_5_OVERFLOW_VECTOR TIMER5_OVF_vect
#define TIMER_5_CAPTURE_VECTOR TIMER5_CAPT_vect
#define TIMER_5_COMPARE_B_VECTOR TIMER5_COMPB_vect

#define UART_0_DATA UDR0
#define UART_0_STATUS UCSR0A
#define UART_0_CONTROL UCSR0B
#define UART_0_FORMAT UCSR0C
#define UART_0_RATE UBRR0
#define UART_1_DATA UDR1
#define UART_1_STATUS UCSR1A
#define UART_1_CONTROL UCSR1B
#define UART_1_FORMAT UCSR1C
#define UART_1_RATE UBRR1

/* These bits lie alike in all 16-bit timers and serial ports of the family. */
#define CONTROL_A_SET ((1 << 7) | (1 << 6)) /* output A is set on match */
#define CONTROL_A_CLEAR (1 << 7)
#define CONTROL_B_CLOCK (1 << 0)            /* undivided: a tick is a cycle */
#define CONTROL_B_RISING (1 << 6)           /* capture rising edges */
#define CONTROL_C_FORCE_A (1 << 7)
#define FLAG_OVERFLOW (1 << 0)
#define FLAG_COMPARE_B (1 << 2)
#define FLAG_CAPTURE (1 << 5)
#define STATUS_DOUBLE (1 << 1)
#define CONTROL_SEND (1 << 3)
#define CONTROL_RECEIVE (1 << 4)
#define CONTROL_WHEN_EMPTY (1 << 5)
#define CONTROL_WHEN_RECEIVED (1 << 7)
#define FORMAT_8N1 ((1 << 2) | (1 << 1))

#endif
