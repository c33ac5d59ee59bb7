/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface between the core and the machine it runs on: pins, a clock, a serial line.  Each machine, and the host of
 * the tests, implements this header in its own folder.  Its `hardware.h`, found by the include path, defines (times are in
 * ticks):
 *
 *   MACHINE_NAME              the value of mcu in the reply to `id`
 *   MACHINE_TICK_PS           length of a tick in picoseconds
 *   MACHINE_K, MACHINE_BITS   the histogram: 2^K buckets in each octave, and 2^BITS ticks as the longest latency
 *   MACHINE_CARRIES           maximum number of buckets that have wrapped at the same time
 *   MACHINE_QUEUE             size of the sample queue, a power of two from 4 to 128
 *   MACHINE_SHORTEST_PERIOD   shortest period; closer edges might be captured as one
 *   MACHINE_SHORTEST_TIMEOUT  shortest time-out of an answer
 *   MACHINE_WAIT_MIN, _MAX    default limits of the wait before a stimulus
 *   MACHINE_SELFTEST_WAIT, MACHINE_SELFTEST_TIMEOUT
 *   TEXT(), TEXT_CONST, text_byte(), text_copy()   access to constant text, which may be in program memory
 */
#ifndef GAUGE_MACHINE_H
#define GAUGE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hardware.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "64-bit numbers are two words, the low one first");
_Static_assert(MACHINE_BITS <= 30, "a latency leaves the top bit free for its level, and twice a latency fits 32 bits");
_Static_assert(MACHINE_QUEUE >= 4 && MACHINE_QUEUE <= 128 && (MACHINE_QUEUE & (MACHINE_QUEUE - 1)) == 0,
	       "the queue's indices are bytes that wrap at a power of two");
_Static_assert(MACHINE_CARRIES <= UINT8_MAX, "carries are counted in a byte");
_Static_assert(MACHINE_WAIT_MIN <= MACHINE_WAIT_MAX, "waits are drawn from the shortest to the longest");
_Static_assert(MACHINE_SELFTEST_TIMEOUT >= MACHINE_SHORTEST_TIMEOUT, "the time-out of the self-test is supported");

/* Text that may be in program memory: read it with text_byte() only. */
typedef const char *text_t;

/* The clock, in ticks of MACHINE_TICK_PS picoseconds.  machine_now() requires interrupts off. */
uint32_t machine_now(void);
uint64_t machine_ticks(void);

/* No interrupt runs between these two calls.  They do not nest. */
void machine_lock(void);
void machine_unlock(void);

/* The serial line.  machine_put() requires machine_send_space(). */
void machine_put(uint8_t byte);
uint8_t machine_send_space(void);
bool machine_send_done(void);
bool machine_get(uint8_t *byte);
uint16_t machine_bytes_dropped(void);

/* The pins.  All calls but machine_is_prepared() require interrupts off. */
void machine_schedule_stimulus(void); /* schedules the change to response.level at tick response.stimulus */
void machine_prepare_stimulus(void);  /* lets the next answer schedule its stimulus itself, response.wait later */
bool machine_is_prepared(void);
void machine_drive(bool high);        /* changes the output now and discards captured edges */
void machine_listen_periodic(void);   /* queues each falling edge from now on */
void machine_stop_capture(void);
void machine_resume_capture(void);    /* continues after the queue was closed */
bool machine_input(void);             /* level of the input */
bool machine_capture_pending(void);   /* true if an edge was captured that no interrupt has handled */
void machine_clear_capture(void);

/* True in a simulation; only the simulator sets this. */
bool machine_is_simulated(void);

/* Bytes of the stack that were never used. */
uint16_t machine_stack_free(void);

#endif
