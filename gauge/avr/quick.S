/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capture interrupt.  Where the next stimulus is prepared, the first that it does is to listen for the other edge
 * and to arm the compare, quick_wait ticks after the answer (less one: the output changes the tick after a match):
 * 48 cycles after the edge, 3 us, are time enough.  What that means for the measurement is worked out afterwards, in C.
 *
 * A stimulus that is not out yet cannot be answered: such an edge is left to the ordinary interrupt.
 */
#include "port.h"
#include "quick.h"

#define IO(name) _SFR_IO_ADDR(name)
#define LOW(name) _SFR_MEM_ADDR(name)
#define HIGH(name) _SFR_MEM_ADDR(name) + 1

/* The pins of some ports can be read like memory only, which takes a cycle more. */
.macro read_output register
#if _SFR_IO_REG_P(OUT_PIN)
	in	\register, IO(OUT_PIN)
#else
	lds	\register, LOW(OUT_PIN)
#endif
.endm

/* r24 is in GPIOR1 already.  The flag of the capture is cleared, so that an answer from now on is a capture anew. */
.macro arm listen_for, then
	in	r24, IO(SREG)
	push	r24
	out	IO(GPIOR2), r25
	push	r18
	lds	r24, LOW(TIMER(CAPTURE))
	lds	r25, HIGH(TIMER(CAPTURE))
	lds	r18, quick_wait
	add	r24, r18
	lds	r18, quick_wait + 1
	adc	r25, r18
	ldi	r18, \listen_for
	sts	LOW(TIMER(CONTROL_B)), r18
	ldi	r18, FLAG_CAPTURE
	out	IO(TIMER(FLAGS)), r18
	sts	HIGH(TIMER(COMPARE_A)), r25
	sts	LOW(TIMER(COMPARE_A)), r24
	ldi	r18, \then
	sts	LOW(TIMER(CONTROL_A)), r18
	pop	r18
	in	r25, IO(GPIOR2)
	pop	r24
	out	IO(SREG), r24
	in	r24, IO(GPIOR1)
	jmp	__vector_quick
.endm

.global TIMER(CAPTURE_VECTOR)
TIMER(CAPTURE_VECTOR):
	sbis	IO(GPIOR0), MEANT_QUICK
	rjmp	ordinary
	out	IO(GPIOR1), r24
	read_output r24
	sbrc	r24, OUT_BIT
	rjmp	high
	sbic	IO(GPIOR0), IN_FLIGHT_RISES
	rjmp	not_out
	arm	(CONTROL_B_CLOCK | CONTROL_B_RISING), CONTROL_A_SET
high:
	sbis	IO(GPIOR0), IN_FLIGHT_RISES
	rjmp	not_out
	arm	CONTROL_B_CLOCK, CONTROL_A_CLEAR
not_out:
	in	r24, IO(GPIOR1)
ordinary:
	sbis	IO(GPIOR0), MEANT_PERIODIC
	jmp	__vector_response
	jmp	__vector_periodic
