/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edges by the PIO (pio_program.h): the output changes at a given tick, and the input is time-stamped.  Both are exact to
 * the cycle, whatever the program does.
 */
#include "drivers.h"
#include "gauge.h"
#include "machine.h"
#include "pio_program.h"
#include "registers.h"

#define OUT_PIN 2
#define IN_PIN 3

#define SAMPLERS 2 /* state machines 0 and 1 */
#define SENDER 2
#define SAMPLER_MASK 0x3u
#define STATE_MACHINE_MASK 0x7u
#define SAMPLERS_EMPTY (SAMPLER_MASK << PIO_FSTAT_RXEMPTY_LSB)
#define SAMPLERS_STALLED (SAMPLER_MASK << PIO_FDEBUG_RXSTALL_LSB) /* an edge was lost: its FIFO was full */

/* Cycles from the test of the pin until X is read. */
#define SAMPLE_AGE 3
/* Approximate number of cycles from the reading of the clock in edges_begin() to the first instruction of the PIO. */
#define START_CYCLES 8
/* A stimulus with a wait below this can be prepared (the limit of clock_ahead()). */
#define MAX_PREPARED_WAIT (1u << 22)
/* The sender gets a stimulus at least this many ticks ahead; an earlier one is sent late, and counted. */
#define MIN_LEAD 40

/* Start of the samplers and the sender, in pairs of ticks. */
static uint32_t origin;

/* The next edge of each sampler: its reading of X, and the tick. */
static struct {
	bool valid;
	uint32_t x, when;
} samples[SAMPLERS];

/* The samplers have not yet reported the same edge: one of them may have started just after an edge. */
static bool synchronising;

/* The next answer sends its stimulus itself, gauge.response.wait later. */
static volatile bool prepared;

static bool read_sample(uint8_t sampler)
{
	uint32_t x;

	if (samples[sampler].valid)
		return true;
	if (PIO_FSTAT & 1u << (PIO_FSTAT_RXEMPTY_LSB + sampler))
		return false;
	x = PIO_RXF(sampler);
	samples[sampler].valid = true;
	samples[sampler].x = x;
	samples[sampler].when = 2 * (origin - x) - SAMPLE_AGE + sampler;
	return true;
}

/* Both samplers report each edge, one of them one cycle later.  An edge that only one reports belongs to a pulse of one
 * cycle. */
static bool read_edge(uint32_t *when)
{
	bool first = read_sample(0), second = read_sample(1);
	uint8_t taken;

	if (second && !first)
		first = read_sample(0); /* sampler 0 may have been the later one */
	if (!first && !second)
		return false;
	taken = first ? 0 : 1;
	if (first && second) {
		int32_t later = (int32_t)(samples[1].when - samples[0].when);

		taken = later < 0;
		if (later == 1 || later == -1)
			samples[!taken].valid = synchronising = false;
	}
	samples[taken].valid = false;
	*when = samples[taken].when;
	return true;
}

bool machine_capture_pending(void)
{
	return (PIO_FSTAT & SAMPLERS_EMPTY) != SAMPLERS_EMPTY;
}

void machine_clear_capture(void)
{
	do {
		(void)PIO_RXF(0);
		(void)PIO_RXF(1);
	} while (machine_capture_pending());
	samples[0].valid = samples[1].valid = false;
	PIO_FDEBUG = SAMPLERS_STALLED;
}

static void stop_listening(void)
{
	PIO_IRQ0_INTE = 0;
}

/* Selects the direction of the edges to capture; earlier captures are discarded. */
static void set_capture(bool rising)
{
	PIO_INSTR_MEM(SAMPLE_FALL) = PIO_INSTR_MEM(SAMPLE_RISE) = PIO_NOP;
	machine_clear_capture();
	synchronising = true;
	PIO_INSTR_MEM(rising ? SAMPLE_RISE : SAMPLE_FALL) = PIO_PUSH_NOBLOCK;
}

static void listen(bool rising)
{
	set_capture(rising);
	PIO_IRQ0_INTE = PIO_IRQ0_INTE_SM0_RXNEMPTY_BITS | PIO_IRQ0_INTE_SM1_RXNEMPTY_BITS;
}

void machine_prepare_stimulus(void)
{
	prepared = gauge.response.wait < MAX_PREPARED_WAIT;
}

/* Called as soon as a stimulus is scheduled, because its answer may come at once.  Does nothing while the main loop has many
 * samples to store. */
static void prepare_next_stimulus(void)
{
	if (gauge.queue.credit < QUEUE_CREDIT / 2)
		return;
	response_draw_wait(&gauge.response, &gauge.random);
	if (response_continues(&gauge.response))
		machine_prepare_stimulus();
}

/* Stimuli are on even ticks, because the sender compares every second cycle.  The answer may come at once, so capture starts
 * first. */
void machine_schedule_stimulus(void)
{
	uint32_t now;
	int32_t ahead;

	if (!gauge.queue.closed)
		listen(gauge.response.level);
	PIO_INSTR_MEM(SEND_CHANGE) = PIO_SET_PINS(gauge.response.level);
	now = clock_pairs();
	ahead = (int32_t)(gauge.response.stimulus - 2 * now);
	if (ahead < MIN_LEAD) {
		ahead = MIN_LEAD;
		gauge.response.late++;
	}
	now += (uint32_t)(ahead + 1) / 2;
	PIO_TXF(SENDER) = origin - now;
	gauge.response.stimulus = 2 * now;
	prepare_next_stimulus();
}

/* True if more edges may follow. */
static bool handle_edge(uint32_t when)
{
	bool more = queue_use_credit(&gauge.queue);

	if (!more)
		stop_listening();
	if (gauge.mode == GAUGE_PERIODIC) {
		queue_push(&gauge.queue, when);
		return more;
	}
	if (!gauge_handle_response(when))
		return more;
	if (response_next(&gauge.response))
		machine_schedule_stimulus();
	else
		stop_listening();
	return false;
}

/* Stops the capture after edges were lost. */
static void stop_blind(void)
{
	stop_listening();
	gauge.queue.closed = true;
}

/* Sends the prepared stimulus for the answer at X = x, as soon as possible if its time has passed.  The answer is accounted
 * for afterwards, because that takes longer than the shortest wait. */
static void send_prepared(uint32_t x, uint32_t when, uint8_t sampler)
{
	uint8_t level = !gauge.response.level;
	uint32_t stimulus, y = x - (uint32_t)((int32_t)(gauge.response.wait + sampler - SAMPLE_AGE + 1) >> 1);
	int32_t ahead;

	listen(level);
	PIO_INSTR_MEM(SEND_CHANGE) = PIO_SET_PINS(level);
	stimulus = 2 * (origin - y);
	ahead = clock_ahead(stimulus);
	if (ahead < MIN_LEAD)
		y -= (uint32_t)(MIN_LEAD - ahead + 1) / 2;
	PIO_TXF(SENDER) = y;
	queue_use_credit(&gauge.queue);
	gauge_handle_response(when);
	response_schedule(&gauge.response);
	if (ahead < MIN_LEAD)
		gauge.response.late++;
	gauge.response.stimulus = 2 * (origin - y);
	prepare_next_stimulus();
}

/* True if the edge was the expected answer: both samplers report it, and the stimulus was sent before. */
static bool handle_prepared(void)
{
	int32_t later;
	uint8_t taken;

	if (!read_sample(0) || !read_sample(1))
		return false;
	later = (int32_t)(samples[1].when - samples[0].when);
	taken = later < 0;
	if ((later != 1 && later != -1) || (int32_t)(samples[taken].when - gauge.response.stimulus) < 0)
		return false;
	send_prepared(samples[taken].x, samples[taken].when, taken);
	return true;
}

void edges_interrupt(void)
{
	uint32_t when;

	if (prepared) {
		prepared = false;
		if (handle_prepared())
			return;
	}
	do {
		if (PIO_FDEBUG & SAMPLERS_STALLED) {
			stop_blind();
			return;
		}
		if (!read_edge(&when))
			return;
		if (synchronising) {
			stop_blind();
			return;
		}
	} while (handle_edge(when));
}

static bool sender_is_idle(void)
{
	return PIO_FSTAT & 1u << (PIO_FSTAT_TXEMPTY_LSB + SENDER) && PIO_SM_ADDR(SENDER) <= SEND_WRAP;
}

static bool output_is_high(void)
{
	return PIO_DBG_PADOUT & (1u << OUT_PIN);
}

bool machine_is_prepared(void)
{
	return prepared;
}

/* Sends a waiting stimulus at once; without one, sends a stimulus for the change. */
void machine_drive(bool high)
{
	machine_stop_capture();
	prepared = false;
	PIO_INSTR_MEM(SEND_CHANGE) = PIO_SET_PINS(high);
	PIO_INSTR_MEM(SEND_COMPARE) = PIO_NOP;
	while (!sender_is_idle())
		;
	while (output_is_high() != high) {
		PIO_TXF(SENDER) = 0;
		while (!sender_is_idle())
			;
	}
	PIO_INSTR_MEM(SEND_COMPARE) = PIO_JMP_X_NE_Y(SEND_WAIT);
	set_capture(false);
}

void machine_listen_periodic(void)
{
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
	return IO_BANK0_GPIO_STATUS(IN_PIN) & IO_BANK0_GPIO_STATUS_INFROMPAD_BITS;
}

static void load(uint8_t machine, uint8_t first, uint8_t wrap, uint8_t wrap_target)
{
	PIO_SM_CLKDIV(machine) = 1u << PIO_SM_CLKDIV_INT_LSB;
	PIO_SM_EXECCTRL(machine) = (uint32_t)IN_PIN << PIO_SM_EXECCTRL_JMP_PIN_LSB |
	                           (uint32_t)wrap << PIO_SM_EXECCTRL_WRAP_TOP_LSB |
	                           (uint32_t)wrap_target << PIO_SM_EXECCTRL_WRAP_BOTTOM_LSB;
	PIO_SM_PINCTRL(machine) = 1u << PIO_SM_PINCTRL_SET_COUNT_LSB | OUT_PIN << PIO_SM_PINCTRL_SET_BASE_LSB;
	PIO_SM_INSTR(machine) = PIO_SET_X_0;
	PIO_SM_INSTR(machine) = PIO_JMP(first);
}

/* The output is set high before it is enabled; the input has a pull-up, so that a loose wire causes no edges. */
void edges_begin(void)
{
	for (uint8_t at = 0; at < PROGRAM_LENGTH; at++)
		PIO_INSTR_MEM(at) = PROGRAM[at];
	PIO_CTRL = STATE_MACHINE_MASK << PIO_CTRL_SM_RESTART_LSB;
	load(0, SAMPLE_HIGH, SAMPLE_WRAP, SAMPLE_LOW);
	load(1, SAMPLE_LATER, SAMPLE_WRAP, SAMPLE_LOW);
	load(SENDER, SEND_IDLE, SEND_WRAP, SEND_IDLE);
	PIO_SM_SHIFTCTRL(0) = PIO_SM_SHIFTCTRL(1) = PIO_SM_SHIFTCTRL_FJOIN_RX_BITS;
	PIO_SM_INSTR(SENDER) = PIO_SET_PINS(1);
	PIO_SM_INSTR(SENDER) = PIO_SET_PINDIRS_1;
	PADS_BANK0_GPIO(IN_PIN) = PAD_INPUT_PULLED_UP;
	IO_BANK0_GPIO_CTRL(OUT_PIN) = IO_BANK0_GPIO2_CTRL_FUNCSEL_VALUE_PIO0_2;
	IO_BANK0_GPIO_CTRL(IN_PIN) = IO_BANK0_GPIO3_CTRL_FUNCSEL_VALUE_PIO0_3;
	M0PLUS_NVIC_ISER = 1u << PIO0_IRQ_0;
	origin = clock_pairs() + START_CYCLES / 2;
	PIO_CTRL = STATE_MACHINE_MASK << PIO_CTRL_SM_ENABLE_LSB;
}
