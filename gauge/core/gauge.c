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

/* Ends any measurement.  The caller sets the new mode last, when its state is complete. */
static void reset(void)
{
	machine_lock();
	gauge.mode = GAUGE_NONE;
	machine_drive(true);
	queue_clear(&gauge.queue);
	machine_unlock();
	histogram_clear(&gauge.histogram);
	stream_begin(&gauge.stream, gauge.stream.on);
	gauge.not_stored[0] = gauge.not_stored[1] = 0;
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
		machine_stop_capture();
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

static void store_sample(uint8_t series, uint8_t half, uint32_t magnitude, bool negative, uint32_t raw)
{
	if (!histogram_add(&gauge.histogram, series, half, magnitude, negative))
		gauge.not_stored[series]++;
	if (gauge.stream.on)
		stream_add(&gauge.stream, raw);
}

static void store_latency(uint32_t sample)
{
	uint8_t level = (sample & SAMPLE_RISING) != 0;

	store_sample(level, level, sample & ~SAMPLE_RISING, false, sample);
}

static void store_deviation(uint32_t when)
{
	int32_t deviation;

	if (!periodic_edge(&gauge.periodic, when, &deviation))
		return;
	store_sample(0, deviation < 0, deviation < 0 ? 0 - (uint32_t)deviation : (uint32_t)deviation, deviation < 0,
		     (uint32_t)deviation);
}

/* Stores the samples that are queued now; samples that arrive meanwhile wait for the next call.  All calls are inlined: a
 * call per sample would save and restore nearly every register. */
static void __attribute__((flatten)) drain(void)
{
	for (uint8_t waiting = queue_waiting(&gauge.queue); waiting; waiting--) {
		uint32_t sample = queue_pop(&gauge.queue);

		machine_lock();
		queue_return_credit(&gauge.queue);
		machine_unlock();
		if (gauge.mode == GAUGE_RESPONSE)
			store_latency(sample);
		else
			store_deviation(sample);
	}
}

static void perform(uint8_t action)
{
	if (action == RESPONSE_SEND)
		machine_schedule_stimulus();
	else if (action != RESPONSE_NOTHING)
		machine_drive(action == RESPONSE_DRIVE_HIGH);
}

/* Interrupts are off: an edge is queued, or pending in the capture flag, or has not occurred. */
static void poll_response(void)
{
	struct response_inputs in;

	in.captured = machine_capture_pending();
	in.now = machine_now();
	in.high = machine_input();
	in.closed = gauge.queue.closed;
	if (in.captured && gauge.response.phase == RESPONSE_QUIET)
		machine_clear_capture();
	perform(response_poll(&gauge.response, &in));
}

static void poll_periodic(void)
{
	if (gauge.queue.closed)
		periodic_drop(&gauge.periodic);
	else if (!machine_capture_pending())
		periodic_poll(&gauge.periodic, machine_now());
}

/* Renews all credits; the queue is empty. */
static void renew_credit(void)
{
	bool was_closed = gauge.queue.closed;

	if (was_closed && gauge.mode == GAUGE_RESPONSE && gauge.response.phase == RESPONSE_FLIGHT)
		return;
	gauge.queue.credit = QUEUE_CREDIT;
	gauge.queue.closed = false;
	if (was_closed)
		machine_resume_capture();
}

static void poll(void)
{
	machine_lock();
	if (queue_is_empty(&gauge.queue)) {
		if (gauge.mode == GAUGE_RESPONSE)
			poll_response();
		else if (gauge.periodic.running)
			poll_periodic();
		renew_credit();
	}
	machine_unlock();
}

/* Runs before samples are stored: the next answer may arrive before storing has ended. */
static void prepare(void)
{
	if (!gauge.response.wait_ready)
		response_draw_wait(&gauge.response, &gauge.random);
	machine_lock();
	if (response_continues(&gauge.response))
		machine_prepare_stimulus();
	machine_unlock();
}

/* While the machine is prepared for an answer, polling is rare, because it turns interrupts off; a time-out may be found
 * that much later. */
static bool is_time_to_poll(void)
{
	return !machine_is_prepared() || ++gauge.turns == 0;
}

void gauge_serve(void)
{
	if (gauge.mode == GAUGE_RESPONSE && !machine_is_prepared())
		prepare();
	drain();
	if (gauge.mode != GAUGE_NONE && is_time_to_poll())
		poll();
	if (gauge.stream.on && machine_send_done())
		stream_flush(&gauge.stream);
}
