/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "delivery.h"

#include <stdlib.h>
#include <string.h>

#include "boot_clock.h"
#include "json_scan.h"
#include "log.h"

/* Longer than the takers' default batching time; doubled on each retry up to MAX_RETRY_S. */
#ifndef RETRY_S
#define RETRY_S 90
#endif
#define MAX_RETRY_S (20 * RETRY_S)
#define RESEND_NS (2 * NS_PER_S) /* doubled as well */
#define WINDOW (4 << 20) /* bytes of a file that are published ahead of the takers */
#define MAX_MESSAGE 1000

/* Adds up to a quarter, so that the boards of a fleet do not all publish at once. */
static int64_t spread(int64_t wait_ns)
{
	return wait_ns + wait_ns / 4 * (random() % 1000) / 1000;
}

static int64_t at_most(int64_t wait_ns)
{
	return wait_ns < MAX_RETRY_S * NS_PER_S ? wait_ns : MAX_RETRY_S * NS_PER_S;
}

static bool stored(const struct recording *recording)
{
	return recording->stored.interval >= recording->counted.interval;
}

static bool is_due(struct recording *recording, int64_t now_ns)
{
	bool waits = recording->sent.interval > recording->stored.interval;

	if (waits && now_ns >= recording->due_ns) {
		log_once(LOG_TAKER, "no taker has answered; publishing again");
		recording->sent = recording->stored;
		recording->answered = waits = false;
		recording->retry_ns = at_most(2 * recording->retry_ns);
	}
	if (recording->sent.interval >= recording->counted.interval)
		return false;
	return !waits || (recording->answered && !recording->removed && recording->sent.offset - recording->stored.offset < WINDOW);
}

/*
 * Oldest first.  Takers detect two boards with one machine ID by a boot that returns, so nothing of a boot is published
 * before all earlier boots are stored.  A removed recording holds back nothing: its loss report has no intervals, and takers
 * may never accept its head.
 */
struct recording *delivery_next(struct ring_view *view, int64_t now_ns)
{
	const struct recording *oldest = NULL;

	for (int i = 0; i < view->count; i++) {
		struct recording *recording = view->all[i];

		if (oldest && strcmp(oldest->boot, recording->boot) != 0)
			return NULL;
		if (!recording->removed && !recording->complete && !recording->damaged && stored(recording))
			return NULL;
		if (stored(recording))
			continue;
		if (!oldest && !recording->removed)
			oldest = recording;
		if (is_due(recording, now_ns))
			return recording;
	}
	return NULL;
}

void delivery_sent(struct recording *recording, struct position after, int64_t now_ns)
{
	if (!recording->retry_ns) {
		recording->retry_ns = RETRY_S * NS_PER_S;
		recording->resend_ns = RESEND_NS;
	}
	if (recording->sent.interval == recording->stored.interval)
		recording->due_ns = now_ns + spread(recording->retry_ns);
	recording->sent = after;
	if (recording->counted.interval < after.interval)
		recording->counted = after;
}

static struct position position_of(struct recording *recording, int folder, int64_t next)
{
	if (recording->removed)
		return (struct position){next, recording->counted.offset};
	return recording_position(recording, folder, next);
}

/*
 * An answer that repeats `next` requests everything from there on; one gap may cause several such answers.  What is
 * published again is answered as well: without growing pauses, takers that are behind would get ever more of it.
 */
static void handle_answer(struct recording *recording, int folder, int64_t next, int64_t now_ns)
{
	int64_t before = recording->stored.interval, ahead = recording->sent.interval;

	if (next <= before && (next == ahead || now_ns < recording->resend_after_ns))
		return;
	recording->stored = position_of(recording, folder, next);
	recording->answered = true;
	if (next >= ahead) {
		recording->retry_ns = RETRY_S * NS_PER_S;
		recording->resend_ns = RESEND_NS;
	} else if (next <= before) {
		recording->resend_after_ns = now_ns + recording->resend_ns;
		recording->resend_ns = at_most(2 * recording->resend_ns);
		recording->sent = recording->stored;
	}
	recording->due_ns = now_ns + spread(recording->retry_ns);
	if (recording->sent.interval < recording->stored.interval)
		recording->sent = recording->stored;
	if (recording->counted.interval < recording->stored.interval && !recording->removed)
		recording->counted = recording->stored;
}

bool delivery_answer(struct ring_view *view, const char *message, size_t size, int64_t now_ns)
{
	struct json_value run, number;
	struct recording *recording;
	char name[RECORDING_RUN];
	int64_t next;

	if (size > MAX_MESSAGE || !json_member(message, size, "run", &run) || !json_plain(&run, name, sizeof(name)) ||
	    !json_member(message, size, "next", &number) || !json_count(&number, RECORDING_MAX_INTERVALS, &next))
		return false;
	recording = ring_view_find(view, name);
	if (!recording)
		return false;
	handle_answer(recording, view->folder, next, now_ns);
	log_once(LOG_TAKER, "takers store this board's intervals");
	return true;
}

void delivery_restart(struct ring_view *view)
{
	for (int i = 0; i < view->count; i++) {
		view->all[i]->sent = view->all[i]->stored;
		view->all[i]->answered = false;
	}
}
