/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edges by hardware: the output changes on a compare match, and the capture unit time-stamps the input.  Both are exact to
 * the cycle, whatever the program does.
 */
#include <avr/interrupt.h>

#include "capture.h"
#include "drivers.h"
#include "gauge.h"
#include "machine.h"
#include "port.h"

/* A compare can be armed at most this far ahead: the sign of a 16-bit difference separates past from future. */
#define MAX_LEAD 30000
/* A stimulus that is farther ahead is armed this long before its time. */
#define ARM_LEAD 4096
/* A compare can be armed at least this far ahead; an earlier stimulus is sent late, and counted. */
#define MIN_LEAD 112
/* Maximum age of a reading of the counter when it is compared. */
#define READ_AGE 4
/* The shortest wait for a prepared stimulus. */
#define SHORTEST_PREPARED_WAIT 48

static uint32_t wraps;

/* Ticks from an answer to its prepared stimulus, less one: the output changes one tick after a match. */
uint16_t prepared_wait;

/* Functions of an interrupt are inlined: with a call it would save every register. */
#define ISR_INLINE static inline __attribute__((always_inline))

/* A 32-bit tick and its halves: shifting the halves together would take twice the registers. */
union tick {
	uint32_t whole;
	struct {
		uint16_t low, high;
	};
};

/* Extends a 16-bit reading, at most half a wrap old, to 32 bits. */
ISR_INLINE uint32_t extend(uint16_t reading)
{
	union tick tick = { .low = reading, .high = (uint16_t)wraps };

	if (TIMER(TIFR) & TOVn && reading < 0x8000)
		tick.high++;
	return tick.whole;
}

uint32_t machine_now(void)
{
	return extend(TIMER(TCNT));
}

uint64_t machine_ticks(void)
{
	uint32_t high;
	uint16_t low;

	machine_lock();
	low = TIMER(TCNT);
	high = wraps;
	if (TIMER(TIFR) & TOVn && low < 0x8000)
		high++;
	machine_unlock();
	return ((uint64_t)high << 16) | low;
}

void machine_lock(void)
{
	cli();
}

void machine_unlock(void)
{
	sei();
}

ISR_INLINE bool output_is_high(void)
{
	return OUT_PIN & (1 << OUT_BIT);
}

ISR_INLINE void set_on_match(bool high)
{
	TIMER(TCCRA) = high ? SET_OUTPUT_ON_MATCH : CLEAR_OUTPUT_ON_MATCH;
}

/* Captures edges of one direction from now on; earlier captures are discarded. */
ISR_INLINE void listen(bool rising)
{
	TIMER(TCCRB) = rising ? CSn0 | ICESn : CSn0;
	TIMER(TIFR) = ICFn;
	TIMER(TIMSK) |= ICIEn;
}

ISR_INLINE void stop_listening(void)
{
	TIMER(TIMSK) &= ~ICIEn;
}

/* True if the armed stimulus is in the future or was sent.  Otherwise its match was missed, and would occur 65,536 ticks
 * late. */
ISR_INLINE bool match_is_valid(uint32_t stimulus, uint8_t level)
{
	if ((int16_t)((uint16_t)stimulus - TIMER(TCNT)) > READ_AGE)
		return true;
	__builtin_avr_delay_cycles(2 * READ_AGE);
	return output_is_high() == level;
}

/* Arms the compare for a stimulus within MAX_LEAD, moved if its match would be missed; returns its tick. */
ISR_INLINE uint32_t arm_compare(uint32_t stimulus, uint8_t level)
{
	for (;;) {
		TIMER(OCRA) = (uint16_t)stimulus - 1;
		set_on_match(level);
		if (match_is_valid(stimulus, level))
			return stimulus;
		stimulus = extend(TIMER(TCNT)) + MIN_LEAD;
	}
}

/* Arms gauge.response.stimulus, which is less than MAX_LEAD ahead. */
ISR_INLINE void arm_stimulus(uint32_t now)
{
	uint32_t stimulus = gauge.response.stimulus;

	if ((int32_t)(stimulus - now) < MIN_LEAD) {
		stimulus = now + MIN_LEAD;
		gauge.response.late++;
	}
	gauge.response.stimulus = arm_compare(stimulus, gauge.response.level);
}

/* A match with the previous level is harmless, because the output already has it.  The answer may arrive at once, so capture
 * starts before the compare is armed. */
ISR_INLINE void schedule(uint32_t now)
{
	uint32_t ahead = gauge.response.stimulus - now;

	if ((int32_t)ahead < MAX_LEAD) {
		if (!gauge.queue.closed)
			listen(gauge.response.level);
		arm_stimulus(now);
		return;
	}
	TIMER(OCRB) = (uint16_t)gauge.response.stimulus - ARM_LEAD;
	TIMER(TIFR) = OCFnB;
	TIMER(TIMSK) = TOIEn | OCIEnB;
}

void machine_schedule_stimulus(void)
{
	schedule(machine_now());
}

ISR(TIMER(COMPB_VECTOR))
{
	uint32_t now = machine_now();

	if ((int32_t)(gauge.response.stimulus - now) >= MAX_LEAD)
		return;
	TIMER(TIMSK) &= ~OCIEnB;
	schedule(now);
}

ISR(TIMER(OVF_VECTOR))
{
	wraps++;
}

ISR_INLINE void handle_response(uint32_t when)
{
	if (!gauge_handle_response(when))
		return;
	if (response_next(&gauge.response))
		schedule(extend(TIMER(TCNT)));
	else
		stop_listening();
}

/* The tick of the captured edge; stops the capture when the credit is used up. */
ISR_INLINE uint32_t read_capture(void)
{
	uint32_t when = extend(TIMER(ICR));

	if (!queue_use_credit(&gauge.queue))
		stop_listening();
	return when;
}

void __attribute__((signal, used)) __vector_response(void)
{
	handle_response(read_capture());
}

void __attribute__((signal, used)) __vector_periodic(void)
{
	queue_push(&gauge.queue, read_capture());
}

/* The stimulus is already armed, prepared_wait after the edge.  A spurious edge arms it too, if it comes just before capture.S
 * tests whether the previous stimulus was sent; its sample is cut, as in a storm. */
void __attribute__((signal, used)) __vector_prepared(void)
{
	uint8_t level = gauge.response.level;
	uint32_t when = extend(TIMER(OCRA) - prepared_wait);
	uint32_t planned;

	GPIOR0 &= ~(1 << STIMULUS_PREPARED);
	queue_use_credit(&gauge.queue);
	if (!gauge_handle_response(when)) {
		stop_listening();
		gauge.queue.closed = true;
		return;
	}
	planned = when + prepared_wait + 1;
	response_schedule(&gauge.response);
	if (!match_is_valid(planned, !level))
		planned = arm_compare(extend(TIMER(TCNT)) + MIN_LEAD, !level);
	if (planned != gauge.response.stimulus)
		gauge.response.late++;
	gauge.response.stimulus = planned;
}

bool machine_is_prepared(void)
{
	return GPIOR0 & 1 << STIMULUS_PREPARED;
}

/* A shorter wait than SHORTEST_PREPARED_WAIT is late, by as little as possible. */
void machine_prepare_stimulus(void)
{
	uint32_t wait = gauge.response.wait;

	if (wait >= MAX_LEAD || gauge.queue.credit < 2)
		return;
	prepared_wait = wait < SHORTEST_PREPARED_WAIT ? SHORTEST_PREPARED_WAIT - 1 : (uint16_t)wait - 1;
	if (gauge.response.level)
		GPIOR0 |= 1 << STIMULUS_RISING;
	else
		GPIOR0 &= ~(1 << STIMULUS_RISING);
	GPIOR0 |= 1 << STIMULUS_PREPARED;
}

void machine_drive(bool high)
{
	machine_stop_capture();
	GPIOR0 &= ~(1 << MODE_PERIODIC | 1 << STIMULUS_PREPARED);
	TIMER(TIMSK) = TOIEn;
	TIMER(TCCRB) = CSn0;
	set_on_match(high);
	TIMER(TCCRC) = FOCnA;
	TIMER(TIFR) = ICFn;
}

void machine_listen_periodic(void)
{
	GPIOR0 |= 1 << MODE_PERIODIC;
	listen(false);
}

void machine_stop_capture(void)
{
	stop_listening();
}

void machine_resume_capture(void)
{
	if (gauge.mode == GAUGE_PERIODIC && gauge.periodic.running)
		listen(false);
}

bool machine_input(void)
{
	return IN_PIN & (1 << IN_BIT);
}

bool machine_capture_pending(void)
{
	return TIMER(TIFR) & ICFn;
}

void machine_clear_capture(void)
{
	TIMER(TIFR) = ICFn;
}

/* The output is set high before it is enabled; the input has a pull-up, so that a loose wire causes no edges. */
void timer_begin(void)
{
	OUT_PORT |= 1 << OUT_BIT;
	OUT_DDR |= 1 << OUT_BIT;
	IN_PORT |= 1 << IN_BIT;
	set_on_match(true);
	TIMER(TCCRC) = FOCnA;
	TIMER(TCCRB) = CSn0;
	TIMER(TIMSK) = TOIEn;
}
