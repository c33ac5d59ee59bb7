/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "timer16.h"

#include <string.h>

#include <sim_cycle_timers.h>
#include <sim_interrupts.h>
#include <sim_io.h>

#define WRAP 65536

/* Bits of TIFRn, TCCRnB and TCCRnC, named as in the datasheets. */
enum { TOVn = 1 << 0, OCFnA = 1 << 1, OCFnB = 1 << 2, ICFn = 1 << 5 };
enum { CSn_MASK = 7, CSn0 = 1, ICESn = 1 << 6, FOCnA = 1 << 7 };

static const struct timer16_map MAPS[] = {
	{ "atmega328p", '0', 0x36, 0x6f, 0x80, 0x81, 0x82, 0x84, 0x86, 0x88, 0x8a, 10, 12, 13, 0x23, 0x23, 1, 0, 4 },
	{ "atmega32u4", '1', 0x36, 0x6f, 0x80, 0x81, 0x82, 0x84, 0x86, 0x88, 0x8a, 16, 18, 20, 0x23, 0x29, 5, 4, 4 },
	{ "atmega2560", '0', 0x3a, 0x73, 0x120, 0x121, 0x122, 0x124, 0x126, 0x128, 0x12a, 46, 48, 50, 0x109, 0x109,
	  3, 1, 5 },
};

const struct timer16_map *timer16_map(const char *mcu)
{
	for (size_t i = 0; i < sizeof(MAPS) / sizeof(MAPS[0]); i++) {
		if (!strcmp(MAPS[i].mcu, mcu))
			return &MAPS[i];
	}
	return NULL;
}

static uint16_t tcnt_at(const struct timer16 *timer, avr_cycle_count_t cycle)
{
	return timer->running ? (uint16_t)(cycle - timer->zero) : 0;
}

static uint16_t word_at(const struct timer16 *timer, uint16_t address)
{
	return (uint16_t)(timer->avr->data[address] | timer->avr->data[address + 1] << 8);
}

static void set_output(struct timer16 *timer, int level, avr_cycle_count_t when)
{
	if (level == timer->output)
		return;
	timer->output = level;
	timer->changed(timer->context, level, when);
}

/* Compare output mode A (COMnA1:0): 2 clears the output on a match, 3 sets it; other modes are not used. */
static void match_a(struct timer16 *timer, avr_cycle_count_t when)
{
	int action = timer->avr->data[timer->map->tccra] >> 6;

	if (action >= 2)
		set_output(timer, action == 3, when);
}

static avr_cycle_count_t on_overflow(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct timer16 *timer = context;

	avr_raise_interrupt(avr, timer->on_overflow);
	return when + WRAP;
}

static avr_cycle_count_t on_match_a(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct timer16 *timer = context;

	avr->data[timer->map->tifr] |= OCFnA;
	match_a(timer, when);
	return when + WRAP;
}

static avr_cycle_count_t on_match_b(avr_t *avr, avr_cycle_count_t when, void *context)
{
	struct timer16 *timer = context;

	avr_raise_interrupt(avr, timer->on_b);
	return when + WRAP;
}

/* The pin changes and the flag is set one cycle after the counter equals the compare register.  A store takes two cycles, so
 * a value written now is valid from the next cycle. */
static void schedule_match(struct timer16 *timer, uint16_t address, avr_cycle_timer_t match)
{
	avr_cycle_count_t from = timer->avr->cycle + 1;
	uint16_t ahead = (uint16_t)(word_at(timer, address) - tcnt_at(timer, from));

	avr_cycle_timer_cancel(timer->avr, match, timer);
	if (timer->running)
		avr_cycle_timer_register(timer->avr, 1 + (avr_cycle_count_t)ahead + 1, match, timer);
}

static void write_ocr(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	struct timer16 *timer = context;

	avr->data[address] = value;
	schedule_match(timer, address, address == timer->map->ocra ? on_match_a : on_match_b);
}

static void write_tccrb(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	struct timer16 *timer = context;
	int run = (value & CSn_MASK) == CSn0;

	avr->data[address] = value;
	if (run == timer->running)
		return;
	timer->running = run;
	timer->zero = avr->cycle;
	avr_cycle_timer_cancel(avr, on_overflow, timer);
	if (run)
		avr_cycle_timer_register(avr, WRAP, on_overflow, timer);
	schedule_match(timer, timer->map->ocra, on_match_a);
	schedule_match(timer, timer->map->ocrb, on_match_b);
}

static void write_tccrc(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	(void)address;
	if (value & FOCnA)
		match_a(context, avr->cycle + 1);
}

static void write_plain(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	(void)context;
	avr->data[address] = value;
}

static uint8_t read_tcnt(avr_t *avr, avr_io_addr_t address, void *context)
{
	uint16_t count = tcnt_at(context, avr->cycle + 1);

	avr->data[address + 1] = count >> 8;
	return avr->data[address] = (uint8_t)count;
}

static uint8_t read_icr(avr_t *avr, avr_io_addr_t address, void *context)
{
	const struct timer16 *timer = context;

	avr->data[address + 1] = timer->captured >> 8;
	return avr->data[address] = (uint8_t)timer->captured;
}

static uint8_t read_pin_register(avr_t *avr, avr_io_addr_t address, void *context)
{
	const struct timer16 *timer = context;
	uint8_t pins = 0;

	if (address == timer->map->out_pins)
		pins |= (uint8_t)(timer->output << timer->map->out_bit);
	if (address == timer->map->in_pins)
		pins |= (uint8_t)(timer->input << timer->map->in_bit);
	return avr->data[address] = pins;
}

static void write_tifr(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	struct timer16 *timer = context;

	if (value & TOVn)
		avr_clear_interrupt(avr, timer->on_overflow);
	if (value & OCFnB)
		avr_clear_interrupt(avr, timer->on_b);
	if (value & ICFn)
		avr_clear_interrupt(avr, timer->on_capture);
	avr->data[address] &= (uint8_t)~(value & OCFnA);
}

static void raise_if(struct timer16 *timer, uint8_t due, uint8_t flag, avr_int_vector_t *vector)
{
	if (due & flag)
		avr_raise_interrupt(timer->avr, vector);
}

/* An interrupt that was flagged while masked is raised when it is enabled. */
static void write_timsk(avr_t *avr, avr_io_addr_t address, uint8_t value, void *context)
{
	struct timer16 *timer = context;
	uint8_t due = value & ~avr->data[address] & avr->data[timer->map->tifr];

	avr->data[address] = value;
	raise_if(timer, due, TOVn, timer->on_overflow);
	raise_if(timer, due, OCFnB, timer->on_b);
	raise_if(timer, due, ICFn, timer->on_capture);
}

void timer16_input(struct timer16 *timer, int level, avr_cycle_count_t when)
{
	int rising = !!(timer->avr->data[timer->map->tccrb] & ICESn);

	if (level == timer->input)
		return;
	timer->input = level;
	if (level != rising)
		return;
	timer->captured = tcnt_at(timer, when);
	avr_raise_interrupt(timer->avr, timer->on_capture);
}

static void add_entry_cycles(struct avr_irq_t *irq, uint32_t vector, void *context)
{
	struct timer16 *timer = context;

	(void)irq;
	if (vector)
		timer->avr->cycle += timer->map->entry_cycles;
}

static avr_int_vector_t *vector_of(avr_t *avr, uint8_t number)
{
	for (int i = 0; i < avr->interrupts.vector_count; i++) {
		if (avr->interrupts.vector[i]->vector == number)
			return avr->interrupts.vector[i];
	}
	return NULL;
}

static void on_write(struct timer16 *timer, uint16_t address, avr_io_write_t write)
{
	timer->avr->io[AVR_DATA_TO_IO(address)].w.c = write;
	timer->avr->io[AVR_DATA_TO_IO(address)].w.param = timer;
}

static void on_read(struct timer16 *timer, uint16_t address, avr_io_read_t read)
{
	timer->avr->io[AVR_DATA_TO_IO(address)].r.c = read;
	timer->avr->io[AVR_DATA_TO_IO(address)].r.param = timer;
}

void timer16_attach(struct timer16 *timer, avr_t *avr, const struct timer16_map *map, timer16_output changed,
		    void *context)
{
	*timer = (struct timer16){ .avr = avr, .map = map, .output = 1, .input = 1, .changed = changed,
				   .context = context };
	timer->on_capture = vector_of(avr, map->vector_capture);
	timer->on_b = vector_of(avr, map->vector_b);
	timer->on_overflow = vector_of(avr, map->vector_overflow);
	on_write(timer, map->tccra, write_plain);
	on_write(timer, map->tccrb, write_tccrb);
	on_write(timer, map->tccrc, write_tccrc);
	on_write(timer, map->ocra, write_ocr);
	on_write(timer, map->ocrb, write_ocr);
	on_write(timer, map->tifr, write_tifr);
	on_write(timer, map->timsk, write_timsk);
	on_read(timer, map->tcnt, read_tcnt);
	on_read(timer, map->icr, read_icr);
	on_read(timer, map->out_pins, read_pin_register);
	on_read(timer, map->in_pins, read_pin_register);
	avr_irq_register_notify(avr->interrupts.irq + AVR_INT_IRQ_RUNNING, add_entry_cycles, timer);
}
