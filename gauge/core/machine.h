/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the core asks of the machine it runs on: pins, a clock, a serial line.
 * avr/ implements it; so does the host program of the tests.
 */
#ifndef GAUGE_MACHINE_H
#define GAUGE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVR__
#include <avr/pgmspace.h>
#define TEXT(string) PSTR(string)
#define TEXT_CONST PROGMEM
#define text_byte(address) ((char)pgm_read_byte(address))
#define text_copy(to, from, size) memcpy_P(to, from, size)
#else
#define TEXT(string) (string)
#define TEXT_CONST
#define text_byte(address) (*(address))
#define text_copy(to, from, size) memcpy(to, from, size)
#endif

/* Text that may live in program memory; read it with text_byte() only. */
typedef const char *text_t;

/* The clock: ticks of tick_ps picoseconds.  machine_now() wants interrupts off. */
uint32_t machine_now(void);
uint64_t machine_ticks(void);

/* Between these two no interrupt runs; they do not nest. */
void machine_lock(void);
void machine_unlock(void);

/* The serial line.  machine_put() wants room. */
void machine_put(uint8_t byte);
uint8_t machine_room(void);
bool machine_sent_all(void);
bool machine_get(uint8_t *byte);
uint16_t machine_bytes_dropped(void);

/* The pins.  All want interrupts off. */
void machine_send(void);             /* schedule the change to response.level at response.stimulus */
void machine_drive(bool high);       /* change the output now; awaited edges are forgotten */
void machine_listen_periodic(void);  /* each falling edge goes to the queue from now on */
void machine_deaf(void);             /* no edge is taken in any more */
void machine_reopen(void);           /* the queue has room again: go on where shut left off */
bool machine_input(void);
bool machine_captured(void);         /* an edge is noted that no interrupt has fetched */
void machine_forget_capture(void);

/* Whether this is a simulation, which tells by itself; no other machine does. */
bool machine_is_simulated(void);

/* How much of the stack has never been used, in bytes. */
uint16_t machine_stack_free(void);

#endif
