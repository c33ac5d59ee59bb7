/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RESPONSE: after a random wait the output changes (the stimulus), the board must follow, and so
 * on, falling and rising in turn.  No hardware here: the capture interrupt reports edges, the
 * main loop polls, and both execute the actions that result.
 *
 * After a time-out nothing is known about the board, so the two are brought back in step: output
 * high, input high and quiet for a quarter of the time-out.  A board that has missed a rising edge
 * is given a pulse.  The edges spent on that are counted apart (`resync_edges`).
 */
#ifndef GAUGE_RESPONSE_H
#define GAUGE_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "random.h"

enum response_phase {
	RESPONSE_IDLE,
	RESPONSE_REST,   /* answered; the next stimulus is not scheduled yet */
	RESPONSE_FLIGHT, /* a stimulus is scheduled or out, its answer is awaited */
	RESPONSE_QUIET,  /* out of step: output high, waiting for a high and quiet input */
	RESPONSE_PULSE,  /* out of step: output low for a while, to wake a board that is stuck low */
};

enum response_action {
	RESPONSE_NOTHING,
	RESPONSE_SEND,       /* change the output to `level` at tick `stimulus` */
	RESPONSE_DRIVE_LOW,  /* change the output at once, do not listen */
	RESPONSE_DRIVE_HIGH,
};

struct response_inputs {
	uint32_t now;
	bool high;     /* level of the input */
	bool captured; /* a falling edge came since the last poll while out of step; an unread capture otherwise */
	bool shut;     /* the interrupt ran out of grant: edges have gone by unseen */
};

struct response {
	volatile uint8_t phase;
	uint8_t level; /* 0: the stimulus due or in flight falls; 1: it rises */
	volatile bool wait_ready;
	bool stopping;
	uint32_t wait; /* the next random wait, once ready */
	uint32_t stimulus;
	uint32_t since; /* when the last answer came, or the last resync step was taken */
	uint32_t quiet;
	uint32_t min_wait, span, timeout;
	uint32_t remaining; /* cycles still to start */
	uint32_t sent, late, spurious, resyncs, resync_edges, storms;
	uint32_t timeouts[2]; /* by level; the sample is lost */
	uint32_t cut[2];      /* by level; lost in a storm of edges */
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

/* A cycle that has begun is completed, so that a stop leaves the output high and nothing in flight. */
static inline bool response_is_done(const struct response *response)
{
	return response->level == 0 && (response->stopping || response->remaining == 0);
}

/* The answer awaited is not the last, and the wait after it is drawn. */
static inline bool response_goes_on(const struct response *response)
{
	return response->phase == RESPONSE_FLIGHT && response->wait_ready &&
	       !(response->level && (response->stopping || response->remaining == 0));
}

/* Takes the wait that is drawn. */
static inline void response_go(struct response *response)
{
	response->stimulus = response->since + response->wait;
	response->wait_ready = false;
	response->phase = RESPONSE_FLIGHT;
	response->sent++;
	if (response->level == 0)
		response->remaining--;
}

/* Goes on if a wait is drawn and another stimulus is due. */
static inline bool response_next(struct response *response)
{
	if (!response->wait_ready || response_is_done(response))
		return false;
	response_go(response);
	return true;
}

/* An edge of the awaited direction at tick `when`; true if it answers.  The sample is lost, and counted so, where the
 * latency is above the time-out and nobody has noticed yet: board and gauge are in step. */
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

/* What the main loop has to do now; called with interrupts off. */
uint8_t response_poll(struct response *response, const struct response_inputs *in);

#endif
