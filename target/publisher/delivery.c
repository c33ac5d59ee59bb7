/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "delivery.h"

#include <stdlib.h>
#include <string.h>

#include "boot_clock.h"
#include "json_scan.h"
#include "say.h"

/* Longer than takers gather chunks by default; doubled each time up to the longest. */
#ifndef PATIENCE_S
#define PATIENCE_S 90
#endif
#define MOST_PATIENCE_S (20 * PATIENCE_S)
#define AGAIN_NS (2 * NS_PER_S)
#define WINDOW (4 << 20) /* bytes of a file that are published ahead of the takers */
#define MOST_MESSAGE 1000

/* Up to a quarter later, so that the boards of a fleet do not all publish at once. */
static int64_t spread(int64_t wait_ns)
{
	return wait_ns + wait_ns / 4 * (random() % 1000) / 1000;
}

static bool stored(const struct recording *recording)
{
	return recording->stored.interval >= recording->counted.interval;
}

static bool is_due(struct recording *recording, int64_t now_ns)
{
	bool waits = recording->sent.interval > recording->stored.interval;

	if (waits && now_ns >= recording->due_ns) {
		say_once(SAY_TAKER, "no taker has answered; publishing again");
		recording->sent = recording->stored;
		recording->answered = waits = false;
		recording->patience_ns *= 2;
	}
	if (recording->sent.interval >= recording->counted.interval)
		return false;
	return !waits || (recording->answered && !recording->gone && recording->sent.offset - recording->stored.offset < WINDOW);
}

/*
 * Oldest first.  Takers know a second board of one machine id by a boot that returns: nothing of a boot is published
 * before all of the earlier ones is stored.
 */
struct recording *delivery_next(struct ring_view *view, int64_t now_ns)
{
	const struct recording *oldest = NULL;

	for (int i = 0; i < view->count; i++) {
		struct recording *recording = view->all[i];

		if (oldest && strcmp(oldest->boot, recording->boot) != 0)
			return NULL;
		if (!recording->gone && !recording->whole && !recording->damaged && stored(recording))
			return NULL;
		if (stored(recording))
			continue;
		oldest = oldest ? oldest : recording;
		if (is_due(recording, now_ns))
			return recording;
	}
	return NULL;
}

void delivery_sent(struct recording *recording, struct place after, int64_t now_ns)
{
	int64_t most_ns = MOST_PATIENCE_S * NS_PER_S;

	if (!recording->patience_ns)
		recording->patience_ns = PATIENCE_S * NS_PER_S;
	recording->patience_ns = recording->patience_ns < most_ns ? recording->patience_ns : most_ns;
	if (recording->sent.interval == recording->stored.interval)
		recording->due_ns = now_ns + spread(recording->patience_ns);
	recording->sent = after;
	if (recording->counted.interval < after.interval)
		recording->counted = after;
}

static struct place place_of(struct recording *recording, int folder, int64_t next)
{
	if (recording->gone)
		return (struct place){next, recording->counted.offset};
	return recording_place(recording, folder, next);
}

/* An answer that says nothing new asks for everything from `next` on; several may follow from one gap. */
static void take_answer(struct recording *recording, int folder, int64_t next, int64_t now_ns)
{
	int64_t before = recording->stored.interval, ahead = recording->sent.interval;

	if (next <= before && (next == ahead || now_ns < recording->again_ns))
		return;
	recording->stored = place_of(recording, folder, next);
	recording->answered = true;
	recording->patience_ns = PATIENCE_S * NS_PER_S;
	recording->due_ns = now_ns + spread(recording->patience_ns);
	if (next <= before) {
		recording->again_ns = now_ns + AGAIN_NS;
		recording->sent = recording->stored;
	}
	if (recording->sent.interval < recording->stored.interval)
		recording->sent = recording->stored;
	if (recording->counted.interval < recording->stored.interval && !recording->gone)
		recording->counted = recording->stored;
}

bool delivery_answer(struct ring_view *view, const char *message, size_t size, int64_t now_ns)
{
	struct json_value run, number;
	struct recording *recording;
	char name[RECORDING_RUN];
	int64_t next;

	if (size > MOST_MESSAGE || !json_member(message, size, "run", &run) || !json_plain(&run, name, sizeof(name)) ||
	    !json_member(message, size, "next", &number) || !json_count(&number, RECORDING_MOST_INTERVALS, &next))
		return false;
	recording = ring_view_find(view, name);
	if (!recording)
		return false;
	take_answer(recording, view->folder, next, now_ns);
	say_once(SAY_TAKER, "takers store this board's intervals");
	return true;
}

void delivery_restart(struct ring_view *view)
{
	for (int i = 0; i < view->count; i++) {
		view->all[i]->sent = view->all[i]->stored;
		view->all[i]->answered = false;
	}
}
