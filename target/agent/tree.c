/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tree.h"

#define PREFIX "fastenough-"
#define DIGITS 12
#define ABANDONED_S 600
#define OPEN_DIRECTORIES 16

/* Directories */

bool is_scratch(const char *path)
{
	const char *name = strrchr(path, '/');

	return path[0] == '/' && name && strncmp(name + 1, PREFIX, strlen(PREFIX)) == 0 &&
	       strlen(name + 1) == strlen(PREFIX) + DIGITS &&
	       strspn(name + 1 + strlen(PREFIX), "0123456789abcdef") == DIGITS && !strstr(path, "/../");
}

/* Opens and locks a directory, without following links; -1 if it does not exist or is locked by another process. */
static int lock_directory(const char *path)
{
	int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (file >= 0 && flock(file, LOCK_EX | LOCK_NB)) {
		close(file);
		return -1;
	}
	return file;
}

int make_scratch(const char *path)
{
	return mkdir(path, 0700) || lock_directory(path) < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status, (void)kind, (void)place;
	remove(path);
	return 0;
}

void remove_scratch(const char *path)
{
	nftw(path, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void sweep(const char *path)
{
	struct stat status;
	int file = lock_directory(path);

	if (file < 0)
		return;
	if (fstat(file, &status) == 0 && status.st_uid == geteuid() && time(NULL) - status.st_mtime > ABANDONED_S)
		remove_scratch(path);
	close(file);
}

void sweep_scratch(void)
{
	static const char *const parents[] = { "/tmp", "/var/tmp", "/dev/shm", "/run" };

	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		char pattern[64];
		glob_t paths;

		snprintf(pattern, sizeof(pattern), "%s/" PREFIX "*", parents[i]);
		if (glob(pattern, GLOB_NOSORT, NULL, &paths))
			continue;
		for (size_t j = 0; j < paths.gl_pathc; j++)
			if (is_scratch(paths.gl_pathv[j]))
				sweep(paths.gl_pathv[j]);
		globfree(&paths);
	}
}

/* Processes */

struct process {
	pid_t pid, parent;
	bool below, spared;
};

static pid_t parent_of(const char *pid)
{
	char path[32], stat[512];
	const char *end;
	ssize_t got;
	int file;

	snprintf(path, sizeof(path), "/proc/%.10s/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	got = read(file, stat, sizeof(stat) - 1);
	close(file);
	stat[got < 0 ? 0 : got] = '\0';
	end = strrchr(stat, ')');
	return end && strlen(end) > 4 && end[2] != 'Z' ? atoi(end + 4) : 0;
}

/* All live processes, in memory that the caller frees. */
static struct process *processes(size_t *count)
{
	struct process *all = NULL;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	size_t room = 0;

	*count = 0;
	while (proc && (entry = readdir(proc))) {
		pid_t parent = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? parent_of(entry->d_name) : 0;
		struct process *more = all;

		if (*count == room) {
			more = realloc(all, (room + 1024) * sizeof(*all));
			if (!more)
				break;
			all = more;
			room += 1024;
		}
		if (parent > 0)
			all[(*count)++] = (struct process){ atoi(entry->d_name), parent, false, false };
	}
	if (proc)
		closedir(proc);
	return all;
}

static bool is_among(pid_t pid, const pid_t *pids, int count)
{
	for (int i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Marks all descendants of this process, generation by generation. */
static void mark_below(struct process *all, size_t count, const pid_t *spared, int spared_count)
{
	bool grown = true;

	while (grown) {
		grown = false;
		for (size_t i = 0; i < count; i++) {
			bool below = all[i].parent == getpid(), spare = is_among(all[i].pid, spared, spared_count);

			for (size_t j = 0; !below && j < count; j++)
				if (all[j].below && all[j].pid == all[i].parent) {
					below = true;
					spare = all[j].spared;
				}
			grown = grown || (below && !all[i].below);
			all[i].below = below;
			all[i].spared = below && spare;
		}
	}
}

int kill_below(const pid_t *spared, int count)
{
	size_t process_count;
	struct process *all = processes(&process_count);
	int killed = 0;

	mark_below(all, process_count, spared, count);
	for (size_t i = 0; i < process_count; i++)
		if (all[i].below && !all[i].spared && kill(all[i].pid, SIGKILL) == 0)
			killed++;
	free(all);
	return killed;
}
