/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gauge.h"

#include <string.h>

#include "machine.h"

struct gauge gauge;

void gauge_begin(void)
{
	memset(&gauge, 0, sizeof(gauge));
	gauge.random = 1;
	queue_clear(&gauge.queue);
}

/* Whatever went on ends here; the mode to come is set last, when its state is whole. */
static void reset(void)
{
	machine_lock();
	gauge.mode = GAUGE_NONE;
	machine_drive(true);
	queue_clear(&gauge.queue);
	machine_unlock();
	histogram_clear(&gauge.histogram);
	stream_begin(&gauge.stream, gauge.stream.on);
	gauge.unkept[0] = gauge.unkept[1] = 0;
}

void gauge_start_response(uint32_t min_wait, uint32_t span, uint32_t timeout, uint32_t count)
{
	reset();
	gauge.response.min_wait = min_wait;
	gauge.response.span = span;
	gauge.response.timeout = timeout;
	gauge.response.remaining = count;
	machine_lock();
	response_begin(&gauge.response, machine_now());
	gauge.mode = GAUGE_RESPONSE;
	machine_unlock();
}

void gauge_start_periodic(uint32_t period, uint32_t timeout)
{
	reset();
	gauge.periodic.period = period;
	gauge.periodic.timeout = timeout;
	periodic_begin(&gauge.periodic);
	machine_lock();
	gauge.mode = GAUGE_PERIODIC;
	machine_listen_periodic();
	machine_unlock();
}

void gauge_stop(void)
{
	machine_lock();
	if (gauge.mode == GAUGE_RESPONSE) {
		gauge.response.stopping = true;
	} else if (gauge.mode == GAUGE_PERIODIC) {
		machine_deaf();
		gauge.periodic.running = false;
	}
	machine_unlock();
}

bool gauge_is_idle(void)
{
	if (gauge.mode == GAUGE_RESPONSE)
		return gauge.response.phase == RESPONSE_IDLE && queue_is_empty(&gauge.queue);
	return gauge.mode == GAUGE_NONE || (!gauge.periodic.running && queue_is_empty(&gauge.queue));
}

static void keep(uint8_t series, uint8_t half, uint32_t magnitude, bool negative, uint32_t raw)
{
	if (!histogram_add(&gauge.histogram, series, half, magnitude, negative))
		gauge.unkept[series]++;
	if (gauge.stream.on)
		stream_add(&gauge.stream, raw);
}

static void keep_latency(uint32_t sample)
{
	uint8_t level = (sample & SAMPLE_RISING) != 0;

	keep(level, level, sample & ~SAMPLE_RISING, false, sample);
}

static void keep_edge(uint32_t when)
{
	int32_t deviation;

	if (!periodic_edge(&gauge.periodic, when, &deviation))
		return;
	keep(0, deviation < 0, deviation < 0 ? 0 - (uint32_t)deviation : (uint32_t)deviation, deviation < 0,
	     (uint32_t)deviation);
}

/* What waits now, and no more: others have their turn before what comes meanwhile.  With all that it calls inlined, for a
 * call for each sample would save and restore nearly every register. */
static void __attribute__((flatten)) drain(void)
{
	for (uint8_t waiting = queue_waiting(&gauge.queue); waiting; waiting--) {
		uint32_t sample = queue_pop(&gauge.queue);

		machine_lock();
		queue_grant_place(&gauge.queue);
		machine_unlock();
		if (gauge.mode == GAUGE_RESPONSE)
			keep_latency(sample);
		else
			keep_edge(sample);
	}
}

static void act(uint8_t action)
{
	if (action == RESPONSE_SEND)
		machine_send();
	else if (action != RESPONSE_NOTHING)
		machine_drive(action == RESPONSE_DRIVE_HIGH);
}

/* With interrupts off: an edge is either queued, or noted in the capture flag, or has not come yet. */
static void poll_response(void)
{
	struct response_inputs in;

	in.captured = machine_captured();
	in.now = machine_now();
	in.high = machine_input();
	in.shut = gauge.queue.shut;
	if (in.captured && gauge.response.phase == RESPONSE_QUIET)
		machine_forget_capture();
	act(response_poll(&gauge.response, &in));
}

static void poll_periodic(void)
{
	if (gauge.queue.shut)
		periodic_drop(&gauge.periodic);
	else if (!machine_captured())
		periodic_poll(&gauge.periodic, machine_now());
}

/* The queue is empty: grant the interrupt as many edges again. */
static void grant(void)
{
	bool was_shut = gauge.queue.shut;

	if (was_shut && gauge.mode == GAUGE_RESPONSE && gauge.response.phase == RESPONSE_FLIGHT)
		return;
	gauge.queue.grant = QUEUE_GRANT;
	gauge.queue.shut = false;
	if (was_shut)
		machine_reopen();
}

static void poll(void)
{
	machine_lock();
	if (queue_is_empty(&gauge.queue)) {
		if (gauge.mode == GAUGE_RESPONSE)
			poll_response();
		else if (gauge.periodic.running)
			poll_periodic();
		grant();
	}
	machine_unlock();
}

/* Before samples are counted: the next answer may come sooner than that is done. */
static void prepare(void)
{
	if (!gauge.response.wait_ready)
		response_draw_wait(&gauge.response, &gauge.random);
	machine_lock();
	if (response_goes_on(&gauge.response))
		machine_prepare();
	machine_unlock();
}

/* While the machine is prepared for an answer, interrupts should be off seldom; a time-out can wait that long. */
static bool is_time_to_poll(void)
{
	return !machine_prepared() || ++gauge.turns == 0;
}

void gauge_serve(void)
{
	if (gauge.mode == GAUGE_RESPONSE && !machine_prepared())
		prepare();
	drain();
	if (gauge.mode != GAUGE_NONE && is_time_to_poll())
		poll();
	if (gauge.stream.on && machine_sent_all())
		stream_flush(&gauge.stream);
}
