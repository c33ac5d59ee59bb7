/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edges by hardware: the output changes on a compare match, the input is time-stamped by the
 * capture unit, both exact to the cycle whatever the program is doing.
 */
#include <avr/interrupt.h>

#include "gauge.h"
#include "machine.h"
#include "parts.h"
#include "port.h"
#include "quick.h"

/* A compare can be armed this far ahead: the sign of a 16-bit difference must tell before from after. */
#define NEAR 30000
/* Stimuli farther off than that are armed this long before their time. */
#define EARLY 4096
/* The least distance at which arming succeeds; what is nearer is sent late, and counted. */
#define LEAD 112
/* A read of the counter may be this old by the time it is compared. */
#define DOUBT 4
/* The shortest wait that an answer can arm by itself. */
#define QUICKEST 48

static uint32_t wraps;

/* From an answer to the next stimulus where that is prepared, less the tick from a match to the output's change. */
uint16_t quick_wait;

/* What the capture interrupt calls is part of it: a call would make it save every register. */
#define PART_OF_INTERRUPT static inline __attribute__((always_inline))

/* A tick of 32 bits in the halves it is read in: shifted together they would take twice the registers. */
union tick {
	uint32_t whole;
	struct {
		uint16_t low, high;
	};
};

/* The 32-bit tick of a 16-bit reading not older than half a wrap. */
PART_OF_INTERRUPT uint32_t extend(uint16_t reading)
{
	union tick tick = { .low = reading, .high = (uint16_t)wraps };

	if (TIMER(FLAGS) & FLAG_OVERFLOW && reading < 0x8000)
		tick.high++;
	return tick.whole;
}

uint32_t machine_now(void)
{
	return extend(TIMER(COUNT));
}

uint64_t machine_ticks(void)
{
	uint32_t high;
	uint16_t low;

	machine_lock();
	low = TIMER(COUNT);
	high = wraps;
	if (TIMER(FLAGS) & FLAG_OVERFLOW && low < 0x8000)
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

PART_OF_INTERRUPT bool output_is_high(void)
{
	return OUT_PIN & (1 << OUT_BIT);
}

PART_OF_INTERRUPT void set_on_match(bool high)
{
	TIMER(CONTROL_A) = high ? CONTROL_A_SET : CONTROL_A_CLEAR;
}

/* Edges captured up to now are not meant. */
PART_OF_INTERRUPT void listen(bool rising)
{
	TIMER(CONTROL_B) = rising ? CONTROL_B_CLOCK | CONTROL_B_RISING : CONTROL_B_CLOCK;
	TIMER(FLAGS) = FLAG_CAPTURE;
	TIMER(MASK) |= FLAG_CAPTURE;
}

PART_OF_INTERRUPT void stop_listening(void)
{
	TIMER(MASK) &= ~FLAG_CAPTURE;
}

/* Whether the armed stimulus is still to come or has come.  A match that was missed would come 65,536 ticks later and
 * nobody would know. */
PART_OF_INTERRUPT bool comes(uint32_t stimulus, uint8_t level)
{
	if ((int16_t)((uint16_t)stimulus - TIMER(COUNT)) > DOUBT)
		return true;
	__builtin_avr_delay_cycles(2 * DOUBT);
	return output_is_high() == level;
}

/* Arms the compare for a stimulus that is near; one that would be missed is moved.  The tick it comes at. */
PART_OF_INTERRUPT uint32_t armed(uint32_t stimulus, uint8_t level)
{
	for (;;) {
		TIMER(COMPARE_A) = (uint16_t)stimulus - 1;
		set_on_match(level);
		if (comes(stimulus, level))
			return stimulus;
		stimulus = extend(TIMER(COUNT)) + LEAD;
	}
}

/* Arms the compare for gauge.response.stimulus, which is less than NEAR away. */
PART_OF_INTERRUPT void arm(uint32_t now)
{
	uint32_t stimulus = gauge.response.stimulus;

	if ((int32_t)(stimulus - now) < LEAD) {
		stimulus = now + LEAD;
		gauge.response.late++;
	}
	gauge.response.stimulus = armed(stimulus, gauge.response.level);
}

/* Matching an old level is harmless: the output has it already.  The answer may come at once, so
 * the input is listened to before the compare is armed. */
PART_OF_INTERRUPT void schedule(uint32_t now)
{
	uint32_t ahead = gauge.response.stimulus - now;

	if ((int32_t)ahead < NEAR) {
		if (!gauge.queue.shut)
			listen(gauge.response.level);
		arm(now);
		return;
	}
	TIMER(COMPARE_B) = (uint16_t)gauge.response.stimulus - EARLY;
	TIMER(FLAGS) = FLAG_COMPARE_B;
	TIMER(MASK) = FLAG_OVERFLOW | FLAG_COMPARE_B;
}

void machine_send(void)
{
	schedule(machine_now());
}

ISR(TIMER(COMPARE_B_VECTOR))
{
	uint32_t now = machine_now();

	if ((int32_t)(gauge.response.stimulus - now) >= NEAR)
		return;
	TIMER(MASK) &= ~FLAG_COMPARE_B;
	schedule(now);
}

ISR(TIMER(OVERFLOW_VECTOR))
{
	wraps++;
}

PART_OF_INTERRUPT void take_answer(uint32_t when)
{
	if (!gauge_take_answer(when))
		return;
	if (response_next(&gauge.response))
		schedule(extend(TIMER(COUNT)));
	else
		stop_listening();
}

/* The tick of the edge captured; the last one that was granted is the last for now. */
PART_OF_INTERRUPT uint32_t take_edge(void)
{
	uint32_t when = extend(TIMER(CAPTURE));

	if (!queue_spend(&gauge.queue))
		stop_listening();
	return when;
}

void __attribute__((signal, used)) __vector_response(void)
{
	take_answer(take_edge());
}

void __attribute__((signal, used)) __vector_periodic(void)
{
	queue_push(&gauge.queue, take_edge());
}

/* The stimulus is armed already, quick_wait after the edge.  An edge that was no answer has armed it too, where it came in
 * the moment between the stimulus before and the question whether that is out: the sample is cut, as in a storm. */
void __attribute__((signal, used)) __vector_quick(void)
{
	uint8_t level = gauge.response.level;
	uint32_t when = extend(TIMER(COMPARE_A) - quick_wait);
	uint32_t planned;

	GPIOR0 &= ~(1 << MEANT_QUICK);
	queue_spend(&gauge.queue);
	if (!gauge_take_answer(when)) {
		stop_listening();
		gauge.queue.shut = true;
		return;
	}
	planned = when + quick_wait + 1;
	response_go(&gauge.response);
	if (!comes(planned, !level))
		planned = armed(extend(TIMER(COUNT)) + LEAD, !level);
	if (planned != gauge.response.stimulus)
		gauge.response.late++;
	gauge.response.stimulus = planned;
}

bool machine_prepared(void)
{
	return GPIOR0 & 1 << MEANT_QUICK;
}

/* A wait that is too short even for that is late, but no later than it must be. */
void machine_prepare(void)
{
	uint32_t wait = gauge.response.wait;

	if (wait >= NEAR || gauge.queue.grant < 2)
		return;
	quick_wait = wait < QUICKEST ? QUICKEST - 1 : (uint16_t)wait - 1;
	if (gauge.response.level)
		GPIOR0 |= 1 << IN_FLIGHT_RISES;
	else
		GPIOR0 &= ~(1 << IN_FLIGHT_RISES);
	GPIOR0 |= 1 << MEANT_QUICK;
}

void machine_drive(bool high)
{
	machine_deaf();
	GPIOR0 &= ~(1 << MEANT_PERIODIC | 1 << MEANT_QUICK);
	TIMER(MASK) = FLAG_OVERFLOW;
	TIMER(CONTROL_B) = CONTROL_B_CLOCK;
	set_on_match(high);
	TIMER(CONTROL_C) = CONTROL_C_FORCE_A;
	TIMER(FLAGS) = FLAG_CAPTURE;
}

void machine_listen_periodic(void)
{
	GPIOR0 |= 1 << MEANT_PERIODIC;
	listen(false);
}

void machine_deaf(void)
{
	stop_listening();
}

void machine_reopen(void)
{
	if (gauge.mode == GAUGE_PERIODIC && gauge.periodic.running)
		listen(false);
}

bool machine_input(void)
{
	return IN_PIN & (1 << IN_BIT);
}

bool machine_captured(void)
{
	return TIMER(FLAGS) & FLAG_CAPTURE;
}

void machine_forget_capture(void)
{
	TIMER(FLAGS) = FLAG_CAPTURE;
}

/* Output high before it becomes an output; pull-up on the input, so that a loose wire is quiet. */
void timer_begin(void)
{
	OUT_PORT |= 1 << OUT_BIT;
	OUT_DDR |= 1 << OUT_BIT;
	IN_PORT |= 1 << IN_BIT;
	set_on_match(true);
	TIMER(CONTROL_C) = CONTROL_C_FORCE_A;
	TIMER(CONTROL_B) = CONTROL_B_CLOCK;
	TIMER(MASK) = FLAG_OVERFLOW;
}
