/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring_view.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define ENDING ".jsonl"
#define SERIAL_DIGITS 10
#ifndef MAX_FILES
#define MAX_FILES 2000 /* in the list; others wait until the oldest of these are stored or removed */
#endif
#define MAX_REMOVED 100
#define BUDGET (8 << 20) /* bytes per scan: reading a ring of weeks at once would disturb real-time tasks */

struct names {
	char (*all)[RECORDING_NAME];
	int count;
};

/* SERIAL-RUN.jsonl, as target/probe/frame/ring.c names them. */
static bool is_recording(const char *name)
{
	size_t length = strlen(name), tail = strlen(ENDING);

	if (length >= RECORDING_NAME || length <= SERIAL_DIGITS + 1 + tail || strcmp(name + length - tail, ENDING) != 0 ||
	    name[SERIAL_DIGITS] != '-')
		return false;
	for (size_t i = 0; i < length - tail; i++)
		if (i < SERIAL_DIGITS ? !isdigit((unsigned char)name[i]) : !isalnum((unsigned char)name[i]) && name[i] != '-')
			return false;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_name(struct names *names, const char *name)
{
	if (names->count % 64 == 0) {
		names->all = realloc(names->all, (size_t)(names->count + 64) * sizeof(*names->all));
		if (!names->all)
			abort();
	}
	memcpy(names->all[names->count++], name, strlen(name) + 1);
}

/* False and errno if the folder cannot be read to its end: a name that is not listed would count as removed. */
static bool list_names(int folder, struct names *names)
{
	DIR *listed = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	int error;

	if (!listed)
		return false;
	while (errno = 0, (entry = readdir(listed)))
		if (is_recording(entry->d_name))
			add_name(names, entry->d_name);
	error = errno;
	closedir(listed);
	errno = error;
	if (error)
		return false;
	if (names->count)
		qsort(names->all, (size_t)names->count, sizeof(*names->all), by_name);
	return true;
}

static bool is_listed(const struct names *names, const char *name)
{
	return bsearch(name, names->all, (size_t)names->count, sizeof(*names->all), by_name);
}

static void drop(struct ring_view *view, int index)
{
	recording_free(view->all[index]);
	memmove(view->all + index, view->all + index + 1, (size_t)(--view->count - index) * sizeof(*view->all));
}

static bool stored(const struct recording *recording)
{
	return recording->stored.interval >= recording->counted.interval;
}

/* A ring removes its oldest recording first: without the last one passed, none before it is left, or the ring was recreated
 * and its serials begin with 1 again. */
static void update_passed(struct ring_view *view, const struct names *names)
{
	if (!is_listed(names, view->passed))
		*view->passed = '\0';
}

static void leave_out_passed(const struct ring_view *view, struct names *names)
{
	int passed = 0;

	while (passed < names->count && strcmp(names->all[passed], view->passed) <= 0)
		passed++;
	if (passed)
		memmove(names->all, names->all + passed, (size_t)(names->count -= passed) * sizeof(*names->all));
}

/* Drops the oldest recordings that are stored as far as there are more names than room; the newest may grow. */
static void limit(struct ring_view *view, struct names *names)
{
	int index = 0;

	leave_out_passed(view, names);
	for (int more = names->count - MAX_FILES; more > 0 && index < view->count - 1;) {
		struct recording *recording = view->all[index];

		if (recording->removed) {
			index++;
			continue;
		}
		if (!stored(recording) || !(recording->complete || recording->damaged))
			break;
		memcpy(view->passed, recording->name, sizeof(view->passed));
		drop(view, index);
		more--;
	}
	leave_out_passed(view, names);
	if (names->count > MAX_FILES)
		names->count = MAX_FILES;
}

/* Marks removed recordings, whose loss is reported unless all of them is stored; after a very long absence the oldest are
 * dropped. */
static void update_removed(struct ring_view *view, const struct names *names)
{
	int removed = 0;

	for (int i = view->count - 1; i >= 0; i--) {
		struct recording *recording = view->all[i];

		if (!is_listed(names, recording->name) && !recording->removed) {
			recording->removed = true;
			recording->sent = recording->stored;
		}
		if (!recording->removed)
			continue;
		if (stored(recording))
			drop(view, i);
		else if (++removed > MAX_REMOVED) {
			log_line("the loss of %s is not reported: too many recordings were removed before they were stored", recording->name);
			drop(view, i);
		}
	}
}

static void insert(struct ring_view *view, int index, struct recording *recording)
{
	if (view->count == view->room) {
		view->room = view->room ? 2 * view->room : 64;
		view->all = realloc(view->all, (size_t)view->room * sizeof(struct recording *));
		if (!view->all)
			abort();
	}
	memmove(view->all + index + 1, view->all + index, (size_t)(view->count++ - index) * sizeof(struct recording *));
	view->all[index] = recording;
}

static void add_new(struct ring_view *view, const struct names *names)
{
	bool reported = false;
	int at = 0;

	for (int i = 0; i < names->count; i++) {
		struct recording *recording;

		while (at < view->count && strcmp(view->all[at]->name, names->all[i]) < 0)
			at++;
		if (at < view->count && !strcmp(view->all[at]->name, names->all[i]))
			continue;
		recording = recording_open(view->folder, names->all[i]);
		if (recording)
			insert(view, at, recording);
		else if (errno != ENOENT && !reported) {
			log_once(LOG_RING, "cannot publish %s/%s: %s", view->path, names->all[i],
				 errno == EBADMSG ? "not a recording" : strerror(errno));
			reported = true; /* two would alternate in the journal every second */
		}
	}
}

static void count_all(struct ring_view *view)
{
	int64_t budget = BUDGET;

	for (int i = 0; i < view->count && budget > 0; i++)
		if (!view->all[i]->removed)
			recording_count(view->all[i], view->folder, &budget);
}

void ring_view_scan(struct ring_view *view)
{
	struct names names = {0};

	if (view->folder >= 0)
		close(view->folder);
	view->folder = open(view->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (view->folder < 0 || !list_names(view->folder, &names)) {
		log_once(LOG_RING, "cannot read the ring %s: %s; waiting for it", view->path, strerror(errno));
		free(names.all);
		return;
	}
	if (names.count) { /* an empty folder is a ring not mounted or not begun: nothing is lost */
		update_removed(view, &names);
		update_passed(view, &names);
	}
	limit(view, &names);
	add_new(view, &names);
	count_all(view);
	free(names.all);
}

struct recording *ring_view_find(const struct ring_view *view, const char *run)
{
	for (int i = view->count - 1; i >= 0; i--)
		if (!strcmp(view->all[i]->run, run))
			return view->all[i];
	return NULL;
}

void ring_view_free(struct ring_view *view)
{
	while (view->count)
		drop(view, view->count - 1);
	free(view->all);
	if (view->folder >= 0)
		close(view->folder);
}
