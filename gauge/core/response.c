/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "response.h"

static uint8_t go_quiet(struct response *response, uint32_t now)
{
	response->phase = RESPONSE_QUIET;
	response->since = response->quiet = now;
	return RESPONSE_DRIVE_HIGH;
}

static uint8_t go_pulse(struct response *response, uint32_t now)
{
	response->phase = RESPONSE_PULSE;
	response->since = now;
	response->resync_edges++;
	return RESPONSE_DRIVE_LOW;
}

/* The output already has `level`: the stimulus was sent. */
static uint8_t begin_resync(struct response *response, uint32_t now)
{
	response->resyncs++;
	if (response->level == 1)
		return go_pulse(response, now);
	response->resync_edges++;
	return go_quiet(response, now);
}

static uint8_t poll_rest(struct response *response)
{
	if (response_is_done(response)) {
		response->phase = RESPONSE_IDLE;
		return RESPONSE_NOTHING;
	}
	return response_next(response) ? RESPONSE_SEND : RESPONSE_NOTHING;
}

static uint8_t poll_flight(struct response *response, const struct response_inputs *in)
{
	int32_t out = (int32_t)(in->now - response->stimulus);

	if (in->closed && out > 0) {
		response->storms++;
		response->cut[response->level]++;
		return begin_resync(response, in->now);
	}
	if (out <= (int32_t)response->timeout || in->captured)
		return RESPONSE_NOTHING;
	response->timeouts[response->level]++;
	return begin_resync(response, in->now);
}

static uint8_t poll_quiet(struct response *response, const struct response_inputs *in)
{
	if (response->stopping) {
		response->phase = RESPONSE_IDLE;
		return RESPONSE_NOTHING;
	}
	if (in->captured)
		response->spurious++;
	if (in->captured || !in->high)
		response->quiet = in->now;
	if (!in->high && in->now - response->since > response->timeout)
		return go_pulse(response, in->now);
	if (in->now - response->quiet <= response->timeout / 4)
		return RESPONSE_NOTHING;
	response->level = 0;
	response->since = in->now;
	response->phase = RESPONSE_REST;
	return RESPONSE_NOTHING;
}

static uint8_t poll_pulse(struct response *response, const struct response_inputs *in)
{
	if (in->now - response->since <= response->timeout / 4)
		return RESPONSE_NOTHING;
	response->resync_edges++;
	return go_quiet(response, in->now);
}

uint8_t response_poll(struct response *response, const struct response_inputs *in)
{
	switch (response->phase) {
	case RESPONSE_REST:
		return poll_rest(response);
	case RESPONSE_FLIGHT:
		return poll_flight(response, in);
	case RESPONSE_QUIET:
		return poll_quiet(response, in);
	case RESPONSE_PULSE:
		return poll_pulse(response, in);
	default:
		return RESPONSE_NOTHING;
	}
}
