/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edges by the PIO (program.h): the output changes at a given tick, the input is time-stamped, both exact to the cycle
 * whatever the program is doing.
 */
#include "chip.h"
#include "gauge.h"
#include "machine.h"
#include "parts.h"
#include "program.h"

#define OUT_PIN 2
#define IN_PIN 3

#define SAMPLERS 2 /* machines 0 and 1 */
#define SENDER 2
#define BOTH_SAMPLERS 0x3u
#define ALL_MACHINES 0x7u
#define SAMPLERS_EMPTY (BOTH_SAMPLERS << PIO_FSTAT_RXEMPTY_LSB)
#define SAMPLERS_STALLED (BOTH_SAMPLERS << PIO_FDEBUG_RXSTALL_LSB) /* an edge was lost: its FIFO was full */

/* A reading of X is so many cycles younger than the look at the pin. */
#define COUNTED_SINCE_LOOK 3
/* Cycles between the reading of the clock in edges_begin() and the first instruction of the PIO, about. */
#define START_TAKES 8
/* A stimulus less than so far from its answer can be prepared (clock_ahead()). */
#define NEAR (1u << 22)
/* The least distance at which a stimulus can be handed to the sender; what is nearer is sent late, and counted. */
#define LEAD 40

/* When the samplers and the sender began, in pairs of ticks. */
static uint32_t origin;

/* The next edge of each sampler: its reading of X, and the tick that it means. */
static struct {
	bool held;
	uint32_t x, when;
} sampled[SAMPLERS];

/* Both samplers have not seen the same edge yet since they listen: one may have passed by when that began. */
static bool settling;

/* The answer awaited sends the next stimulus by itself, gauge.response.wait after it. */
static volatile bool prepared;

static bool holds(uint8_t sampler)
{
	uint32_t x;

	if (sampled[sampler].held)
		return true;
	if (PIO_FSTAT & 1u << (PIO_FSTAT_RXEMPTY_LSB + sampler))
		return false;
	x = PIO_RXF(sampler);
	sampled[sampler].held = true;
	sampled[sampler].x = x;
	sampled[sampler].when = 2 * (origin - x) - COUNTED_SINCE_LOOK + sampler;
	return true;
}

/* Both samplers see an edge, one of them a cycle after the other.  What only one has seen was too short for the other. */
static bool next_edge(uint32_t *when)
{
	bool first = holds(0), second = holds(1);
	uint8_t taken;

	if (second && !first)
		first = holds(0); /* it may have been the later one */
	if (!first && !second)
		return false;
	taken = first ? 0 : 1;
	if (first && second) {
		int32_t later = (int32_t)(sampled[1].when - sampled[0].when);

		taken = later < 0;
		if (later == 1 || later == -1)
			sampled[!taken].held = settling = false;
	}
	sampled[taken].held = false;
	*when = sampled[taken].when;
	return true;
}

bool machine_captured(void)
{
	return (PIO_FSTAT & SAMPLERS_EMPTY) != SAMPLERS_EMPTY;
}

void machine_forget_capture(void)
{
	do {
		(void)PIO_RXF(0);
		(void)PIO_RXF(1);
	} while (machine_captured());
	sampled[0].held = sampled[1].held = false;
	PIO_FDEBUG = SAMPLERS_STALLED;
}

static void stop_listening(void)
{
	PIO_IRQ0_INTE = 0;
}

/* Edges up to now are not meant. */
static void note_edges(bool rising)
{
	PIO_INSTR_MEM(SAMPLE_FALL) = PIO_INSTR_MEM(SAMPLE_RISE) = DO_NOTHING;
	machine_forget_capture();
	settling = true;
	PIO_INSTR_MEM(rising ? SAMPLE_RISE : SAMPLE_FALL) = PUSH_X_TAKEN;
}

static void listen(bool rising)
{
	note_edges(rising);
	PIO_IRQ0_INTE = PIO_IRQ0_INTE_SM0_RXNEMPTY_BITS | PIO_IRQ0_INTE_SM1_RXNEMPTY_BITS;
}

void machine_prepare(void)
{
	prepared = gauge.response.wait < NEAR;
}

/* As soon as a stimulus is on its way, for its answer may come at once; unless the main loop has so many samples to count
 * that it must have its turn first. */
static void prepare_next(void)
{
	if (gauge.queue.grant < QUEUE_GRANT / 2)
		return;
	response_draw_wait(&gauge.response, &gauge.random);
	if (response_goes_on(&gauge.response))
		machine_prepare();
}

/* Stimuli lie on every second tick, where the sender compares.  The answer may come at once, so the input is listened
 * to before. */
void machine_send(void)
{
	uint32_t now;
	int32_t ahead;

	if (!gauge.queue.shut)
		listen(gauge.response.level);
	PIO_INSTR_MEM(SEND_CHANGE) = SET_PIN(gauge.response.level);
	now = clock_pairs();
	ahead = (int32_t)(gauge.response.stimulus - 2 * now);
	if (ahead < LEAD) {
		ahead = LEAD;
		gauge.response.late++;
	}
	now += (uint32_t)(ahead + 1) / 2;
	PIO_TXF(SENDER) = origin - now;
	gauge.response.stimulus = 2 * now;
	prepare_next();
}

/* False when that was the last edge for now. */
static bool take_edge(uint32_t when)
{
	bool more = queue_spend(&gauge.queue);

	if (!more)
		stop_listening();
	if (gauge.mode == GAUGE_PERIODIC) {
		queue_push(&gauge.queue, when);
		return more;
	}
	if (!gauge_take_answer(when))
		return more;
	if (response_next(&gauge.response))
		machine_send();
	else
		stop_listening();
	return false;
}

/* Edges were lost. */
static void go_blind(void)
{
	stop_listening();
	gauge.queue.shut = true;
}

/* Hands over the stimulus that the answer at X = x has been waiting for, and only then works out what the answer means for
 * the measurement: that takes longer than the shortest wait.  Where that is too late it goes out as soon as it can. */
static void follow(uint32_t x, uint32_t when, uint8_t sampler)
{
	uint8_t level = !gauge.response.level;
	uint32_t stimulus, y = x - (uint32_t)((int32_t)(gauge.response.wait + sampler - COUNTED_SINCE_LOOK + 1) >> 1);
	int32_t ahead;

	listen(level);
	PIO_INSTR_MEM(SEND_CHANGE) = SET_PIN(level);
	stimulus = 2 * (origin - y);
	ahead = clock_ahead(stimulus);
	if (ahead < LEAD)
		y -= (uint32_t)(LEAD - ahead + 1) / 2;
	PIO_TXF(SENDER) = y;
	queue_spend(&gauge.queue);
	gauge_take_answer(when);
	response_go(&gauge.response);
	if (ahead < LEAD)
		gauge.response.late++;
	gauge.response.stimulus = 2 * (origin - y);
	prepare_next();
}

/* True where the edge is what was prepared for: both samplers have seen it, and the stimulus was out. */
static bool take_prepared(void)
{
	int32_t later;
	uint8_t taken;

	if (!holds(0) || !holds(1))
		return false;
	later = (int32_t)(sampled[1].when - sampled[0].when);
	taken = later < 0;
	if ((later != 1 && later != -1) || (int32_t)(sampled[taken].when - gauge.response.stimulus) < 0)
		return false;
	follow(sampled[taken].x, sampled[taken].when, taken);
	return true;
}

void edges_interrupt(void)
{
	uint32_t when;

	if (prepared) {
		prepared = false;
		if (take_prepared())
			return;
	}
	do {
		if (PIO_FDEBUG & SAMPLERS_STALLED) {
			go_blind();
			return;
		}
		if (!next_edge(&when))
			return;
		if (settling) {
			go_blind();
			return;
		}
	} while (take_edge(when));
}

static bool sender_rests(void)
{
	return PIO_FSTAT & 1u << (PIO_FSTAT_TXEMPTY_LSB + SENDER) && PIO_SM_ADDR(SENDER) <= SEND_WRAP;
}

static bool output_is_high(void)
{
	return PIO_DBG_PADOUT & (1u << OUT_PIN);
}

bool machine_prepared(void)
{
	return prepared;
}

/* A stimulus that waits goes out at once; where none does, one is sent for this. */
void machine_drive(bool high)
{
	machine_deaf();
	prepared = false;
	PIO_INSTR_MEM(SEND_CHANGE) = SET_PIN(high);
	PIO_INSTR_MEM(SEND_COMPARE) = DO_NOTHING;
	while (!sender_rests())
		;
	while (output_is_high() != high) {
		PIO_TXF(SENDER) = 0;
		while (!sender_rests())
			;
	}
	PIO_INSTR_MEM(SEND_COMPARE) = JUMP_UNLESS_X_IS_Y(SEND_WAIT);
	note_edges(false);
}

void machine_listen_periodic(void)
{
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
	return IO_BANK0_GPIO_STATUS(IN_PIN) & IO_BANK0_GPIO_STATUS_INFROMPAD_BITS;
}

static void load(uint8_t machine, uint8_t first, uint8_t wrap, uint8_t wrap_target)
{
	PIO_SM_CLKDIV(machine) = 1u << PIO_SM_CLKDIV_INT_LSB;
	PIO_SM_EXECCTRL(machine) = (uint32_t)IN_PIN << PIO_SM_EXECCTRL_JMP_PIN_LSB |
	                           (uint32_t)wrap << PIO_SM_EXECCTRL_WRAP_TOP_LSB |
	                           (uint32_t)wrap_target << PIO_SM_EXECCTRL_WRAP_BOTTOM_LSB;
	PIO_SM_PINCTRL(machine) = 1u << PIO_SM_PINCTRL_SET_COUNT_LSB | OUT_PIN << PIO_SM_PINCTRL_SET_BASE_LSB;
	PIO_SM_INSTR(machine) = SET_X_0;
	PIO_SM_INSTR(machine) = JUMP(first);
}

/* Output high before it becomes an output; pull-up on the input, so that a loose wire is quiet. */
void edges_begin(void)
{
	for (uint8_t at = 0; at < PROGRAM_LENGTH; at++)
		PIO_INSTR_MEM(at) = PROGRAM[at];
	PIO_CTRL = ALL_MACHINES << PIO_CTRL_SM_RESTART_LSB;
	load(0, SAMPLE_HIGH, SAMPLE_WRAP, SAMPLE_LOW);
	load(1, SAMPLE_LATER, SAMPLE_WRAP, SAMPLE_LOW);
	load(SENDER, SEND_IDLE, SEND_WRAP, SEND_IDLE);
	PIO_SM_SHIFTCTRL(0) = PIO_SM_SHIFTCTRL(1) = PIO_SM_SHIFTCTRL_FJOIN_RX_BITS;
	PIO_SM_INSTR(SENDER) = SET_PIN(1);
	PIO_SM_INSTR(SENDER) = SET_PIN_OUTPUT;
	PADS_BANK0_GPIO(IN_PIN) = PAD_INPUT_PULLED_UP;
	IO_BANK0_GPIO_CTRL(OUT_PIN) = IO_BANK0_GPIO2_CTRL_FUNCSEL_VALUE_PIO0_2;
	IO_BANK0_GPIO_CTRL(IN_PIN) = IO_BANK0_GPIO3_CTRL_FUNCSEL_VALUE_PIO0_3;
	M0PLUS_NVIC_ISER = 1u << PIO0_IRQ_0;
	origin = clock_pairs() + START_TAKES / 2;
	PIO_CTRL = ALL_MACHINES << PIO_CTRL_SM_ENABLE_LSB;
}
