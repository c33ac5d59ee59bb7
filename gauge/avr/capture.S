/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capture interrupt.  If the next stimulus is prepared, it first listens for the other edge and arms the compare,
 * prepared_wait ticks after the answer (less one: the output changes one tick after a match).  That takes less than 48
 * cycles (3 us) after the edge.  The C part then accounts for it.
 *
 * An edge that arrives before its stimulus was sent is no answer; the ordinary interrupt handles it.
 */
#include "port.h"
#include "capture.h"

#define IO(name) _SFR_IO_ADDR(name)
#define LOW(name) _SFR_MEM_ADDR(name)
#define HIGH(name) _SFR_MEM_ADDR(name) + 1

/* The pins of some ports can be read only as memory, which takes one cycle more. */
.macro read_output register
#if _SFR_IO_REG_P(OUT_PIN)
	in	\register, IO(OUT_PIN)
#else
	lds	\register, LOW(OUT_PIN)
#endif
.endm

/* r24 is already saved in GPIOR1.  The capture flag is cleared, so that the next edge is a new capture. */
.macro arm listen_for, then
	in	r24, IO(SREG)
	push	r24
	out	IO(GPIOR2), r25
	push	r18
	lds	r24, LOW(TIMER(ICR))
	lds	r25, HIGH(TIMER(ICR))
	lds	r18, prepared_wait
	add	r24, r18
	lds	r18, prepared_wait + 1
	adc	r25, r18
	ldi	r18, \listen_for
	sts	LOW(TIMER(TCCRB)), r18
	ldi	r18, ICFn
	out	IO(TIMER(TIFR)), r18
	sts	HIGH(TIMER(OCRA)), r25
	sts	LOW(TIMER(OCRA)), r24
	ldi	r18, \then
	sts	LOW(TIMER(TCCRA)), r18
	pop	r18
	in	r25, IO(GPIOR2)
	pop	r24
	out	IO(SREG), r24
	in	r24, IO(GPIOR1)
	jmp	__vector_prepared
.endm

.global TIMER(CAPT_VECTOR)
TIMER(CAPT_VECTOR):
	sbis	IO(GPIOR0), STIMULUS_PREPARED
	rjmp	ordinary
	out	IO(GPIOR1), r24
	read_output r24
	sbrc	r24, OUT_BIT
	rjmp	high
	sbic	IO(GPIOR0), STIMULUS_RISING
	rjmp	not_out
	arm	(CSn0 | ICESn), SET_OUTPUT_ON_MATCH
high:
	sbis	IO(GPIOR0), STIMULUS_RISING
	rjmp	not_out
	arm	CSn0, CLEAR_OUTPUT_ON_MATCH
not_out:
	in	r24, IO(GPIOR1)
ordinary:
	sbis	IO(GPIOR0), MODE_PERIODIC
	jmp	__vector_response
	jmp	__vector_periodic
