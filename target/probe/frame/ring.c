/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "ring.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "options.h"

#define ENDING ".jsonl"
#define UNFINISHED ".jsonl.new"
#define SERIAL_DIGITS 10

/*
 * Files of the folder ---------------------------------------------------------------------------------
 */

/* Whether a name is SERIAL-RUN with this ending; other files are left alone. */
static bool is_ours(const char *name, const char *ending, uint64_t *serial)
{
	size_t length = strlen(name), tail = strlen(ending);

	if (length >= RING_NAME || length <= SERIAL_DIGITS + 1 + tail || name[SERIAL_DIGITS] != '-' ||
	    strcmp(name + length - tail, ending) != 0)
		return false;
	for (size_t i = 0; i < length - tail; i++)
		if (i < SERIAL_DIGITS ? !isdigit((unsigned char)name[i]) : !isalnum((unsigned char)name[i]) && name[i] != '-')
			return false;
	*serial = strtoull(name, NULL, 10);
	return true;
}

static void add_finished(struct ring *ring, const char *name, const struct stat *file)
{
	struct ring_file *entry;

	if (ring->count == ring->room) {
		ring->room = ring->room ? 2 * ring->room : 64;
		ring->ended = realloc(ring->ended, (size_t)ring->room * sizeof(*ring->ended));
		if (!ring->ended)
			abort();
	}
	entry = &ring->ended[ring->count++];
	*entry = (struct ring_file){.bytes = (int64_t)file->st_blocks * 512, .since_ns = clock_ns(CLOCK_BOOTTIME)};
	memcpy(entry->name, name, strlen(name));
	ring->finished_bytes += entry->bytes;
}

/* A file without its final name holds at most a part of a head. */
static void find(struct ring *ring, const char *name)
{
	struct stat file;
	uint64_t serial;

	if (fstatat(ring->folder, name, &file, AT_SYMLINK_NOFOLLOW) || !S_ISREG(file.st_mode))
		return;
	if (is_ours(name, UNFINISHED, &serial))
		unlinkat(ring->folder, name, 0);
	if (!is_ours(name, ENDING, &serial))
		return;
	add_finished(ring, name, &file);
	ring->serial = serial > ring->serial ? serial : ring->serial;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ring_file *)a)->name, ((const struct ring_file *)b)->name);
}

static void find_files(struct ring *ring)
{
	DIR *folder = fdopendir(dup(ring->folder));
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		find(ring, entry->d_name);
	if (folder)
		closedir(folder);
	if (ring->count)
		qsort(ring->ended, (size_t)ring->count, sizeof(*ring->ended), by_name);
}

/*
 * The last file of the previous writer ------------------------------------------------------
 */

/* Offset behind the last newline before an offset; 0 if there is none, -1 if the file cannot be read. */
static off_t offset_after_newline(int file, off_t before)
{
	char chunk[4096];

	while (before > 0) {
		size_t size = before < (off_t)sizeof(chunk) ? (size_t)before : sizeof(chunk);
		const char *found;

		if (pread(file, chunk, size, before - (off_t)size) != (ssize_t)size)
			return -1;
		found = memrchr(chunk, '\n', size);
		before -= (off_t)size;
		if (found)
			return before + (found - chunk) + 1;
	}
	return 0;
}

static bool ends_in_order(int file, off_t size)
{
	static const char end[] = "{\"type\":\"end\"";
	char begins[sizeof(end) - 1];
	off_t last = offset_after_newline(file, size - 1);

	return last >= 0 && pread(file, begins, sizeof(begins), last) == sizeof(begins) && !memcmp(begins, end, sizeof(begins));
}

/* A power failure may leave an incomplete last line; readers of a ring must see complete lines only. */
static bool cut_torn_line(int file, off_t size, off_t *whole)
{
	*whole = offset_after_newline(file, size);
	return *whole > 0 && (*whole == size || (ftruncate(file, *whole) == 0 && fsync(file) == 0));
}

static void check_last_file(struct ring *ring)
{
	struct ring_file *last = ring->count ? &ring->ended[ring->count - 1] : NULL;
	int file = last ? openat(ring->folder, last->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	struct stat found;
	off_t whole = -1;

	if (file < 0)
		return;
	if (fstat(file, &found) == 0 && cut_torn_line(file, found.st_size, &whole)) {
		memcpy(ring->before.name, last->name, RING_NAME);
		ring->before.written_ns = (int64_t)found.st_mtim.tv_sec * NS_PER_S + found.st_mtim.tv_nsec;
		ring->before.ended = ends_in_order(file, whole);
	} else if (whole == 0) { /* not one whole line */
		unlinkat(ring->folder, last->name, 0);
		ring->finished_bytes -= last->bytes;
		ring->count--;
	}
	close(file);
}

/*
 * Opening -----------------------------------------------------------------------------------------
 */

static int open_folder(const char *path)
{
	if (mkdir(path, 0750) && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void ring_open(struct ring *ring, const char *path, int64_t retention_ns, int64_t max_bytes)
{
	struct stat folder;

	*ring = (struct ring){.folder = open_folder(path), .retention_ns = retention_ns, .max_bytes = max_bytes};
	if (ring->folder < 0 || fstat(ring->folder, &folder))
		bad_input("cannot use %s for a ring: %s; name a folder of your own", path, strerror(errno));
	if (folder.st_uid != geteuid() || folder.st_mode & (S_IWGRP | S_IWOTH))
		bad_input("other users may write into %s; name a folder that only you can write to (chown, chmod 750)", path);
	if (flock(ring->folder, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		bad_input("another probe writes to %s; stop it, or name another folder", path);
	find_files(ring);
	check_last_file(ring);
}

/*
 * A recording's file ------------------------------------------------------------------------------
 */

/* A serial is used only once a file has its name: readers report a missing serial as a deleted recording. */
int ring_begin(struct ring *ring, const char *run)
{
	char begun[RING_NAME + 8];

	snprintf(ring->name, sizeof(ring->name), "%0*" PRIu64 "-%.60s" ENDING, SERIAL_DIGITS, ring->serial + 1, run);
	snprintf(begun, sizeof(begun), "%s.new", ring->name);
	return openat(ring->folder, begun, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
}

int ring_name(struct ring *ring, int file)
{
	char begun[RING_NAME + 8];

	snprintf(begun, sizeof(begun), "%s.new", ring->name);
	if (fsync(file) || renameat(ring->folder, begun, ring->folder, ring->name))
		return errno;
	ring->serial++;
	return fsync(ring->folder) ? errno : 0;
}

void ring_discard(struct ring *ring, int file)
{
	char begun[RING_NAME + 8];

	snprintf(begun, sizeof(begun), "%s.new", ring->name);
	unlinkat(ring->folder, begun, 0);
	unlinkat(ring->folder, ring->name, 0);
	close(file);
	*ring->name = '\0';
}

void ring_end(struct ring *ring, int file)
{
	struct stat found = {0};

	fsync(file);
	fstat(file, &found);
	close(file);
	add_finished(ring, ring->name, &found);
	*ring->name = '\0';
}

/*
 * Making room -------------------------------------------------------------------------------------
 */

static void drop_oldest(struct ring *ring)
{
	unlinkat(ring->folder, ring->ended[0].name, 0);
	ring->finished_bytes -= ring->ended[0].bytes;
	memmove(ring->ended, ring->ended + 1, (size_t)--ring->count * sizeof(*ring->ended));
}

bool ring_make_room(struct ring *ring, int error)
{
	if (!ring->count || (error != ENOSPC && error != EDQUOT))
		return false;
	drop_oldest(ring);
	ring->dropped++;
	return true;
}

void ring_trim(struct ring *ring, int64_t current_bytes)
{
	int64_t expired_ns = clock_ns(CLOCK_BOOTTIME) - ring->retention_ns;

	while (ring->count && ring->ended[0].since_ns < expired_ns)
		drop_oldest(ring);
	for (; ring->count && ring->finished_bytes + current_bytes > ring->max_bytes; ring->dropped++)
		drop_oldest(ring);
}
