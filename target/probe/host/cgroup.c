/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"

#define LINE_SIZE 4096
#define STAT_SIZE 1024

/* Where the process stands in one hierarchy. */
struct place {
	bool unified;
	char path[LINE_SIZE];
};

static FILE *open_in(const char *folder, const char *name)
{
	char path[CGROUP_PATH];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "re");
}

/* Whether a list separated by commas holds the word "cpu". */
static bool holds_cpu(const char *list)
{
	for (const char *word = list; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!strncmp(word, "cpu", 3) && (word[3] == ',' || word[3] == '\0'))
			return true;
	}
	return false;
}

/* Lines are "hierarchy:controllers:path"; the unified hierarchy (version 2) counts where no other has the CPU. */
static bool find_place(const char *proc, struct place *place)
{
	FILE *file = open_in(proc, "cgroup");
	char line[LINE_SIZE];
	bool found = false;

	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		bool unified = path == controllers + 1;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if ((unified && found) || (!unified && !holds_cpu(controllers + 1)))
			continue;
		place->unified = unified;
		strcpy(place->path, path);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

/* The rest of a path below the folder that is mounted; NULL where it is not below it. */
static const char *below(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") ? strlen(root) : 0;

	return !strncmp(path, root, length) && (path[length] == '/' || path[length] == '\0') ? path + length : NULL;
}

/* "id parent device root mount-point options ... - type source options" (proc(5), mountinfo). */
static bool find_mount(const char *proc, const struct place *place, char folder[CGROUP_PATH], size_t *top)
{
	FILE *file = open_in(proc, "mountinfo");
	char line[LINE_SIZE], root[LINE_SIZE], point[LINE_SIZE], type[32], options[LINE_SIZE];
	bool found = false;

	while (!found && file && fgets(line, sizeof(line), file)) {
		const char *rest = strstr(line, " - ");
		const char *relative;

		if (!rest || sscanf(line, "%*s %*s %*s %s %s", root, point) != 2 ||
		    sscanf(rest, " - %31s %*s %s", type, options) != 2)
			continue;
		if (strcmp(type, place->unified ? "cgroup2" : "cgroup") || (!place->unified && !holds_cpu(options)))
			continue;
		relative = below(place->path, root);
		found = relative && snprintf(folder, CGROUP_PATH, "%s%s", point, relative) < CGROUP_PATH;
		*top = strlen(point);
	}
	if (file)
		fclose(file);
	return found;
}

static bool has(const char *folder, const char *name)
{
	char path[CGROUP_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

/* The root of the hierarchy, which has no quota; in a namespace the top of the mount may be another group.  One file is in
 * the root of version 1 alone, the other in all groups of version 2 but the root. */
static bool is_root(const char *folder)
{
	return has(folder, "cgroup.sane_behavior") || (has(folder, "cgroup.controllers") && !has(folder, "cgroup.type"));
}

static void open_level(struct cgroup *cgroup, const char *folder)
{
	char path[CGROUP_PATH + 32];
	int64_t runtime_us, period_us;

	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	if (!is_root(folder))
		cgroup->stat_fd[cgroup->levels++] = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/cpu.rt_period_us", folder);
	if (!read_number(path, &period_us) || period_us <= 0)
		return;
	snprintf(path, sizeof(path), "%s/cpu.rt_runtime_us", folder);
	if (!read_number(path, &runtime_us) || runtime_us < 0)
		return;
	if (cgroup->rt_period_us == 0 || runtime_us * cgroup->rt_period_us < cgroup->rt_runtime_us * period_us) {
		cgroup->rt_runtime_us = runtime_us;
		cgroup->rt_period_us = period_us;
		snprintf(cgroup->rt_path, sizeof(cgroup->rt_path), "%.*s", CGROUP_PATH - 1, path);
	}
}

/* The folder above, within the mount; false at its top. */
static bool step_up(char *folder, size_t top)
{
	char *slash = strlen(folder) > top ? strrchr(folder, '/') : NULL;

	if (slash)
		*slash = '\0';
	return slash;
}

void cgroup_open(struct cgroup *cgroup, const char *proc)
{
	struct place place;
	char folder[CGROUP_PATH];
	size_t top = 0;

	*cgroup = (struct cgroup){0};
	if (!find_place(proc, &place) || !find_mount(proc, &place, folder, &top))
		return;
	cgroup->known = true;
	if (folder[strlen(folder) - 1] == '/')
		folder[strlen(folder) - 1] = '\0';
	do
		open_level(cgroup, folder);
	while (cgroup->levels < CGROUP_LEVELS && step_up(folder, top));
}

/* -1: it cannot be read.  A group without a quota of its own has no such line. */
static int64_t throttled_at(int fd)
{
	char text[STAT_SIZE];
	ssize_t length = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	const char *line;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	line = strstr(text, "nr_throttled ");
	return line ? strtoll(line + strlen("nr_throttled "), NULL, 10) : 0;
}

bool cgroup_throttled(const struct cgroup *cgroup, int64_t *periods)
{
	*periods = 0;
	for (int i = 0; i < cgroup->levels; i++) {
		int64_t of_group = throttled_at(cgroup->stat_fd[i]);

		if (of_group < 0)
			return false;
		*periods += of_group;
	}
	return cgroup->known;
}
