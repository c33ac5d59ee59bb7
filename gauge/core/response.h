/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RESPONSE: after a random wait the output changes (the stimulus), and the board must follow (the answer); stimuli fall and
 * rise in turn.  This state machine needs no hardware: the capture interrupt reports edges, the main loop polls, and both
 * perform the resulting actions.
 *
 * After a time-out the state of the board is unknown, so gauge and board are resynchronised: output high, until the input is
 * high and quiet for a quarter of the time-out.  A board that missed a rising edge gets a pulse.  The edges of a
 * resynchronisation are counted separately (`resync_edges`).
 */
#ifndef GAUGE_RESPONSE_H
#define GAUGE_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "random.h"

enum response_phase {
	RESPONSE_IDLE,
	RESPONSE_REST,   /* answered; the next stimulus is not yet scheduled */
	RESPONSE_FLIGHT, /* a stimulus is scheduled or sent; its answer is expected */
	RESPONSE_QUIET,  /* resynchronising: output high, waiting for a high and quiet input */
	RESPONSE_PULSE,  /* resynchronising: output low for a while, because the input stays low */
};

enum response_action {
	RESPONSE_NOTHING,
	RESPONSE_SEND,       /* change the output to `level` at tick `stimulus` */
	RESPONSE_DRIVE_LOW,  /* change the output at once, without capture */
	RESPONSE_DRIVE_HIGH,
};

struct response_inputs {
	uint32_t now;
	bool high;     /* level of the input */
	bool captured; /* resynchronising: a falling edge since the last poll; else: a capture that is not handled yet */
	bool closed;   /* the queue is closed: edges were not captured */
};

struct response {
	volatile uint8_t phase;
	uint8_t level; /* of the current stimulus: 0 falling, 1 rising */
	volatile bool wait_ready;
	bool stopping;
	uint32_t wait;     /* the next random wait, valid if wait_ready */
	uint32_t stimulus; /* tick of the current stimulus */
	uint32_t since;    /* tick of the last answer, or of the last step of a resynchronisation */
	uint32_t quiet;    /* tick since which the input has been quiet */
	uint32_t min_wait, span, timeout;
	uint32_t remaining; /* cycles not yet started */
	uint32_t sent, late, spurious, resyncs, resync_edges, storms;
	uint32_t timeouts[2]; /* lost samples by level: no answer in time */
	uint32_t cut[2];      /* lost samples by level: a storm of edges closed the queue */
};

static inline void response_begin(struct response *response, uint32_t now)
{
	response->phase = RESPONSE_REST;
	response->level = 0;
	response->wait_ready = false;
	response->stopping = false;
	response->since = now;
	response->sent = response->late = response->spurious = 0;
	response->resyncs = response->resync_edges = response->storms = 0;
	response->timeouts[0] = response->timeouts[1] = 0;
	response->cut[0] = response->cut[1] = 0;
}

static inline void response_draw_wait(struct response *response, uint32_t *random)
{
	*random = random_next(*random);
	response->wait = response->min_wait + random_within(*random, response->span);
	response->wait_ready = true;
}

/* True between cycles, at the end.  A cycle is always completed, so a stop leaves the output high and no stimulus pending. */
static inline bool response_is_done(const struct response *response)
{
	return response->level == 0 && (response->stopping || response->remaining == 0);
}

/* True if another stimulus follows the expected answer and its wait is drawn. */
static inline bool response_continues(const struct response *response)
{
	return response->phase == RESPONSE_FLIGHT && response->wait_ready &&
	       !(response->level && (response->stopping || response->remaining == 0));
}

/* Schedules the next stimulus after the drawn wait. */
static inline void response_schedule(struct response *response)
{
	response->stimulus = response->since + response->wait;
	response->wait_ready = false;
	response->phase = RESPONSE_FLIGHT;
	response->sent++;
	if (response->level == 0)
		response->remaining--;
}

/* Schedules the next stimulus if there is one and its wait is drawn; true if so. */
static inline bool response_next(struct response *response)
{
	if (!response->wait_ready || response_is_done(response))
		return false;
	response_schedule(response);
	return true;
}

/* Handles an edge of the expected direction at tick `when`; true if it is an answer.  An answer after the time-out that
 * response_poll() has not found yet counts as a time-out, without a resynchronisation. */
static inline bool response_edge(struct response *response, uint32_t when, uint32_t *latency)
{
	*latency = when - response->stimulus;
	if (response->phase != RESPONSE_FLIGHT || (int32_t)*latency < 0) {
		response->spurious++;
		return false;
	}
	if (*latency > response->timeout)
		response->timeouts[response->level]++;
	response->level ^= 1;
	response->since = when;
	response->phase = RESPONSE_REST;
	return true;
}

/* The action for the main loop, an enum response_action; called with interrupts off. */
uint8_t response_poll(struct response *response, const struct response_inputs *in);

#endif
