/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listing of the ring that cannot be read to its end removes no recording, a long end damages none, a removed recording
 * holds back no other, and those of a recreated ring are read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "delivery.h"

#define RECORDINGS 4

static const char *const names[RECORDINGS] = {"0000000001-r-1.jsonl", "0000000002-r-2.jsonl", "0000000003-r-3.jsonl",
					      "0000000004-r-4.jsonl"};
static char folder[] = "/tmp/test-ring-XXXXXX";
static int listed, next, failure; /* names before this one are listed; the next one, and the error after them */

struct dirent *readdir(DIR *directory)
{
	static struct dirent entry;

	(void)directory;
	if (next < listed) {
		snprintf(entry.d_name, sizeof(entry.d_name), "%s", names[next++]);
		return &entry;
	}
	if (failure)
		errno = failure;
	return NULL;
}

static void path_of(int number, char path[128])
{
	snprintf(path, 128, "%s/%s", folder, names[number]);
}

/* A recording with one interval, and a last line of this type that is longer by so many blanks. */
static void write_recording(int number, const char *last, int blanks)
{
	char path[128];
	FILE *file;

	path_of(number, path);
	file = fopen(path, "w");
	CHECK(file);
	fprintf(file, "{\"type\":\"head\",\"run_id\":\"r-%d\",\"boot_id\":\"b-%d\"}\n{\"type\":\"interval\",\"seq\":0}\n", number + 1,
		number + 1);
	fprintf(file, "{\"type\":\"%s\",\"seq\":1%*s}\n", last, blanks, "");
	fclose(file);
}

static void scan_from(struct ring_view *view, int first, int count, int error)
{
	listed = first + count;
	next = first;
	failure = error;
	errno = ENOENT; /* of an earlier call */
	ring_view_scan(view);
}

static void scan(struct ring_view *view, int count, int error)
{
	scan_from(view, 0, count, error);
}

static void check_listing(void)
{
	struct ring_view view = {.path = folder, .folder = -1};

	for (int number = 0; number < RECORDINGS; number++)
		write_recording(number, "end", 0);
	scan(&view, 2, 0);
	CHECK(view.count == 2 && !view.all[0]->removed && !view.all[1]->removed);
	scan(&view, 1, EIO);
	CHECK(view.count == 2 && !view.all[0]->removed && !view.all[1]->removed);
	scan(&view, 1, 0);
	CHECK(view.count == 2 && !view.all[0]->removed && view.all[1]->removed);
	ring_view_free(&view);
}

/* Its loss report is not answered; the other recording is of a later boot. */
static void check_removed(void)
{
	struct ring_view view = {.path = folder, .folder = -1};

	for (int number = 0; number < RECORDINGS; number++)
		write_recording(number, "end", 0);
	scan(&view, 2, 0);
	CHECK(delivery_next(&view, 0) == view.all[0]);
	delivery_sent(view.all[0], view.all[0]->counted, 0);
	CHECK(!delivery_next(&view, 1));
	scan_from(&view, 1, 1, 0);
	CHECK(view.count == 2 && view.all[0]->removed);
	CHECK(delivery_next(&view, 2) == view.all[0]);
	delivery_sent(view.all[0], view.all[0]->counted, 2);
	CHECK(delivery_next(&view, 3) == view.all[1]);
	ring_view_free(&view);
}

/* MAX_FILES is 2: the newest are read once the oldest are stored, and the newest one stays. */
static void check_limit(void)
{
	struct ring_view view = {.path = folder, .folder = -1};

	scan(&view, RECORDINGS, 0);
	CHECK(view.count == 2 && !strcmp(view.all[1]->name, names[1]));
	view.all[0]->stored = view.all[0]->counted;
	for (int times = 0; times < 2; times++) {
		scan(&view, RECORDINGS, 0);
		CHECK(view.count == 2 && !strcmp(view.all[0]->name, names[1]) && !strcmp(view.all[1]->name, names[2]));
	}
	for (int times = 0; times < 2; times++) {
		for (int i = 0; i < view.count; i++)
			view.all[i]->stored = view.all[i]->counted;
		scan(&view, RECORDINGS, 0);
		CHECK(view.count == 2 && !strcmp(view.all[0]->name, names[2]) && !strcmp(view.all[1]->name, names[3]));
	}
	ring_view_free(&view);
}

/* A recreated ring begins with serial 1 again; an empty folder is a ring that is not mounted. */
static void check_recreated(void)
{
	struct ring_view view = {.path = folder, .folder = -1};

	scan_from(&view, 1, 3, 0);
	view.all[0]->stored = view.all[0]->counted;
	scan_from(&view, 1, 3, 0);
	CHECK(view.count == 2 && !strcmp(view.all[0]->name, names[2]));
	for (int i = 0; i < view.count; i++)
		view.all[i]->stored = view.all[i]->counted;
	scan(&view, 0, 0);
	scan_from(&view, 1, 3, 0);
	CHECK(view.count == 2 && !strcmp(view.all[0]->name, names[2]));
	scan(&view, 1, 0);
	CHECK(view.count == 1 && !strcmp(view.all[0]->name, names[0]));
	ring_view_free(&view);
}

static void check_last_line(const char *type, int64_t intervals, bool damaged)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY);
	struct recording *recording;
	int64_t budget = INT64_MAX;

	write_recording(0, type, RECORDING_MAX_LINE + (1 << 20));
	recording = recording_open(directory, names[0]);
	CHECK(recording);
	recording_count(recording, directory, &budget);
	CHECK(recording->complete && recording->counted.interval == intervals && recording->damaged == damaged);
	recording_free(recording);
	close(directory);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	check_listing();
	check_removed();
	check_limit();
	check_recreated();
	check_last_line("end", 1, false);
	check_last_line("interval", 1, true);
	for (int number = 0; number < RECORDINGS; number++) {
		char path[128];

		path_of(number, path);
		unlink(path);
	}
	return rmdir(folder);
}
