/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples on their way from the capture interrupt to the main loop.
 *
 * The interrupt may take only as many edges as the main loop has granted (`grant`), whether it
 * queues them or not.  So the queue cannot overflow, and no rate of edges keeps the main loop
 * from running: with the grant used up, the interrupt turns itself off (`shut`).
 */
#ifndef GAUGE_QUEUE_H
#define GAUGE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware.h"

#define QUEUE_SIZE MACHINE_QUEUE /* a power of two */
#define QUEUE_GRANT (QUEUE_SIZE - 1)

struct queue {
	volatile uint8_t head, tail;
	volatile uint8_t grant;
	volatile bool shut;
	uint32_t sample[QUEUE_SIZE];
};

static inline void queue_clear(struct queue *queue)
{
	queue->head = queue->tail = 0;
	queue->grant = QUEUE_GRANT;
	queue->shut = false;
}

static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->head == queue->tail;
}

static inline uint8_t queue_waiting(const struct queue *queue)
{
	return (queue->head - queue->tail) & (QUEUE_SIZE - 1);
}

/* Interrupt side: account for one edge; false when it was the last one granted. */
static inline bool queue_spend(struct queue *queue)
{
	uint8_t grant = queue->grant - 1;

	queue->grant = grant;
	queue->shut = grant == 0;
	return grant != 0;
}

/* Interrupt side: room is certain, because every edge is spent first. */
static inline void queue_push(struct queue *queue, uint32_t sample)
{
	uint8_t head = queue->head;

	queue->sample[head] = sample;
	queue->head = (head + 1) & (QUEUE_SIZE - 1);
}

/* Main side; of one that is not empty. */
static inline uint32_t queue_pop(struct queue *queue)
{
	uint8_t tail = queue->tail;
	uint32_t sample = queue->sample[tail];

	queue->tail = (tail + 1) & (QUEUE_SIZE - 1);
	return sample;
}

/* Main side, with interrupts off: the place of a sample that was taken out is granted once more. */
static inline void queue_grant_place(struct queue *queue)
{
	if (!queue->shut)
		queue->grant++;
}

#endif
