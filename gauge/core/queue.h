/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue of samples from the capture interrupt to the main loop.
 *
 * Each edge costs the interrupt one credit, whether it queues a sample or not, and only the main loop renews credits.  So
 * the queue cannot overflow, and no rate of edges starves the main loop: without credit the interrupt disables itself
 * (`closed`).
 */
#ifndef GAUGE_QUEUE_H
#define GAUGE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware.h"

#define QUEUE_SIZE MACHINE_QUEUE /* a power of two */
#define QUEUE_CREDIT (QUEUE_SIZE - 1)

struct queue {
	volatile uint8_t head, tail;
	volatile uint8_t credit;
	volatile bool closed;
	uint32_t sample[QUEUE_SIZE];
};

static inline void queue_clear(struct queue *queue)
{
	queue->head = queue->tail = 0;
	queue->credit = QUEUE_CREDIT;
	queue->closed = false;
}

static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->head == queue->tail;
}

static inline uint8_t queue_waiting(const struct queue *queue)
{
	return (queue->head - queue->tail) & (QUEUE_SIZE - 1);
}

/* Interrupt side: pays for one edge; false if that was the last credit. */
static inline bool queue_use_credit(struct queue *queue)
{
	uint8_t credit = queue->credit - 1;

	queue->credit = credit;
	queue->closed = credit == 0;
	return credit != 0;
}

/* Interrupt side, after queue_use_credit(): the queue has room. */
static inline void queue_push(struct queue *queue, uint32_t sample)
{
	uint8_t head = queue->head;

	queue->sample[head] = sample;
	queue->head = (head + 1) & (QUEUE_SIZE - 1);
}

/* Main side: removes a sample from a queue that is not empty. */
static inline uint32_t queue_pop(struct queue *queue)
{
	uint8_t tail = queue->tail;
	uint32_t sample = queue->sample[tail];

	queue->tail = (tail + 1) & (QUEUE_SIZE - 1);
	return sample;
}

/* Main side, interrupts off: returns the credit of a sample that was removed. */
static inline void queue_return_credit(struct queue *queue)
{
	if (!queue->closed)
		queue->credit++;
}

#endif
