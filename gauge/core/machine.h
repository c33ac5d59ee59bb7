/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the core asks of the machine it runs on: pins, a clock, a serial line.  Each machine has a folder of its own
 * (and the host of the tests does), which implements this header and states in its `hardware.h`, found by the include
 * path, what it is, all times in its own ticks:
 *
 *   MACHINE_NAME              what `id` answers as mcu
 *   MACHINE_TICK_PS           length of a tick in picoseconds
 *   MACHINE_K, MACHINE_BITS   the histogram: 2^K buckets in each octave, and 2^BITS ticks as the longest latency
 *   MACHINE_CARRIES           how many of its buckets may have wrapped at the same time
 *   MACHINE_QUEUE             samples that wait for the main loop, a power of two from 4 to 128
 *   MACHINE_SHORTEST_PERIOD   edges closer than this might be seen as one
 *   MACHINE_SHORTEST_TIMEOUT  the least time after which an answer may count as absent
 *   MACHINE_WAIT_MIN, _MAX    the waits before a stimulus, unless others are requested
 *   MACHINE_SELFTEST_WAIT, MACHINE_SELFTEST_TIMEOUT
 *   TEXT(), TEXT_CONST, text_byte(), text_copy()   constant text, where that is apart from other memory
 */
#ifndef GAUGE_MACHINE_H
#define GAUGE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hardware.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "64 bits are kept in two words, the low one first");
_Static_assert(MACHINE_BITS <= 30, "a latency leaves the top bit to its direction, and its double fits 32 bits");
_Static_assert(MACHINE_QUEUE >= 4 && MACHINE_QUEUE <= 128 && (MACHINE_QUEUE & (MACHINE_QUEUE - 1)) == 0,
	       "the queue's indices are bytes that wrap at a power of two");
_Static_assert(MACHINE_CARRIES <= UINT8_MAX, "carries are counted in a byte");
_Static_assert(MACHINE_WAIT_MIN <= MACHINE_WAIT_MAX, "waits are drawn from the shortest to the longest");
_Static_assert(MACHINE_SELFTEST_TIMEOUT >= MACHINE_SHORTEST_TIMEOUT, "the self-test keeps to the limits of its machine");

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
void machine_prepare(void);          /* the answer awaited may schedule the next stimulus, response.wait after it */
bool machine_prepared(void);         /* and will; with interrupts on too */
void machine_drive(bool high);       /* change the output now; awaited edges are forgotten */
void machine_listen_periodic(void);  /* each falling edge goes to the queue from now on */
void machine_deaf(void);             /* no edge is taken in any more */
void machine_reopen(void);           /* the queue has room again: go on where shut left off */
bool machine_input(void);
bool machine_captured(void);         /* an edge is noted that no interrupt has fetched */
void machine_forget_capture(void);

/* Whether this is a simulation; only the simulator says so. */
bool machine_is_simulated(void);

/* How much of the stack has never been used, in bytes. */
uint16_t machine_stack_free(void);

#endif
