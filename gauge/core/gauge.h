/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instrument: the measurement in progress, its counts, and the command line. */
#ifndef GAUGE_GAUGE_H
#define GAUGE_GAUGE_H

#include "histogram.h"
#include "periodic.h"
#include "protocol.h"
#include "queue.h"
#include "response.h"
#include "stream.h"

#define GAUGE_PROTOCOL 3

enum gauge_mode { GAUGE_NONE, GAUGE_RESPONSE, GAUGE_PERIODIC };

/* A sample of RESPONSE is a latency, with the level of the stimulus in the top bit; a sample of PERIODIC is a time stamp. */
#define SAMPLE_RISING ((uint32_t)1 << 31)

struct gauge {
	volatile uint8_t mode;
	uint8_t turns; /* of the main loop while the machine was prepared */
	uint32_t not_stored[2]; /* samples for which the histogram had no room */
	uint32_t random; /* state of the generator of waits */
	union {          /* by mode */
		struct response response;
		struct periodic periodic;
	};
	struct queue queue;
	struct stream stream;
	struct line line;
	struct histogram histogram;
};

extern struct gauge gauge;

/* For the capture interrupt in RESPONSE, after queue_use_credit(): handles an edge at tick `when`; true if it is an answer.
 * Inlined, because a call from an interrupt saves every register. */
static inline __attribute__((always_inline)) bool gauge_handle_response(uint32_t when)
{
	uint8_t level = gauge.response.level;
	uint32_t latency;

	if (!response_edge(&gauge.response, when, &latency))
		return false;
	if (latency <= gauge.response.timeout)
		queue_push(&gauge.queue, level ? latency | SAMPLE_RISING : latency);
	return true;
}

void gauge_begin(void);

/* The measurement's part of one turn of the main loop; replies call it too while they wait for the serial line. */
void gauge_serve(void);

/* True if no measurement is in progress. */
bool gauge_is_idle(void);

/* Start and stop a measurement, for the commands and the self-test. */
void gauge_start_response(uint32_t min_wait, uint32_t span, uint32_t timeout, uint32_t count);
void gauge_start_periodic(uint32_t period, uint32_t timeout);
void gauge_stop(void);

#endif
