/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups of both versions, as files in a folder of the test's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "check.h"

static char folder[] = "/tmp/test-cgroup-XXXXXX";

static void put(const char *name, const char *content)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	file = fopen(path, "w");
	check(file && fputs(content, file) >= 0);
	if (file)
		fclose(file);
}

static void take_away(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	check(!unlink(path));
}

static void put_mount(const char *root, const char *type, const char *options)
{
	char line[512];

	snprintf(line, sizeof(line), "22 1 8:1 / / rw - ext4 /dev/sda rw\n31 22 0:28 %s %s/fs rw,relatime shared:9 - %s none rw,%s\n",
		 root, folder, type, options);
	put("mountinfo", line);
}

static int64_t throttled(const struct cgroup *cgroup)
{
	int64_t periods = -1;

	check(cgroup_throttled(cgroup, &periods));
	return periods;
}

static void version_1(void)
{
	struct cgroup cgroup;

	put("cgroup", "3:cpuset:/elsewhere\n2:cpuacct:/\n1:cpu:/outer/inner\n0::/unified\n");
	put_mount("/", "cgroup", "cpu");
	put("fs/cgroup.sane_behavior", "0\n"); /* as in the root alone, which is not read */
	put("fs/cpu.stat", "nr_periods 99\nnr_throttled 99\nthrottled_time 0\n");
	put("fs/outer/cpu.stat", "nr_periods 9\nnr_throttled 5\nthrottled_time 10\n");
	put("fs/outer/inner/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 10\n");
	put("fs/cpu.rt_runtime_us", "950000\n");
	put("fs/cpu.rt_period_us", "1000000\n");
	put("fs/outer/cpu.rt_runtime_us", "5000\n");
	put("fs/outer/cpu.rt_period_us", "100000\n");
	put("fs/outer/inner/cpu.rt_runtime_us", "100000\n");
	put("fs/outer/inner/cpu.rt_period_us", "1000000\n");
	cgroup_open(&cgroup, folder);
	check(cgroup.levels == 2);
	check(throttled(&cgroup) == 7);
	check(cgroup.rt_runtime_us == 5000 && cgroup.rt_period_us == 100000);
	check(strstr(cgroup.rt_path, "/outer/cpu.rt_runtime_us"));
	put("fs/outer/inner/cpu.stat", "nr_periods 19\nnr_throttled 12\nthrottled_time 10\n");
	check(throttled(&cgroup) == 17);
	put("fs/outer/inner/cpu.rt_runtime_us", "0\n");
	cgroup_open(&cgroup, folder);
	check(cgroup.rt_runtime_us == 0 && cgroup.rt_period_us == 1000000);
	take_away("fs/cgroup.sane_behavior");
}

/* A container without a namespace of groups: its own group is what is mounted. */
static void only_the_own_group_is_mounted(void)
{
	struct cgroup cgroup;

	put("cgroup", "4:cpu,cpuacct:/docker/0123\n0::/\n");
	put_mount("/docker/0123", "cgroup", "cpu,cpuacct");
	put("fs/cpu.stat", "nr_periods 9\nnr_throttled 4\n");
	cgroup_open(&cgroup, folder);
	check(cgroup.levels == 1);
	check(throttled(&cgroup) == 4);
}

static void version_2(void)
{
	struct cgroup cgroup;

	put("cgroup", "0::/slice/scope\n");
	put_mount("/", "cgroup2", "nsdelegate");
	put("fs/cgroup.controllers", "cpu\n");
	put("fs/slice/cgroup.controllers", "cpu\n");
	put("fs/slice/cgroup.type", "domain\n"); /* which the root has not */
	put("fs/cpu.stat", "usage_usec 1\nnr_throttled 99\n");
	put("fs/slice/cpu.stat", "usage_usec 1\nnr_periods 7\nnr_throttled 3\nthrottled_usec 8\n");
	put("fs/slice/scope/cpu.stat", "usage_usec 1\nnr_periods 7\nnr_throttled 1\nthrottled_usec 8\n");
	cgroup_open(&cgroup, folder);
	check(cgroup.levels == 2 && cgroup.known);
	check(throttled(&cgroup) == 4);
}

/* A counter that cannot be read is unknown, of whichever group. */
static void unreadable(void)
{
	struct cgroup cgroup;
	int64_t periods;

	put("fs/slice/scope/cpu.stat", "usage_usec 1\n"); /* no quota of its own */
	cgroup_open(&cgroup, folder);
	check(throttled(&cgroup) == 3);
	take_away("fs/slice/cpu.stat");
	check(throttled(&cgroup) == 3);
	cgroup_open(&cgroup, folder);
	check(!cgroup_throttled(&cgroup, &periods));
	put("fs/slice/cpu.stat/file", ""); /* which can be opened, but not read */
	cgroup_open(&cgroup, folder);
	check(!cgroup_throttled(&cgroup, &periods));
}

static void nothing_to_see(void)
{
	struct cgroup cgroup;
	int64_t periods;

	put("cgroup", "0::/slice\n");
	put("mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n");
	cgroup_open(&cgroup, folder);
	check(!cgroup_throttled(&cgroup, &periods));
	put("cgroup", "garbage\n::\n0:\n");
	cgroup_open(&cgroup, folder);
	check(!cgroup.known);
	cgroup_open(&cgroup, "/no/such/folder");
	check(!cgroup.known);
}

int main(void)
{
	char remove[64];

	if (!mkdtemp(folder))
		return 1;
	version_1();
	only_the_own_group_is_mounted();
	version_2();
	unreadable();
	nothing_to_see();
	snprintf(remove, sizeof(remove), "rm -r %s", folder);
	return system(remove) != 0 || failures != 0;
}
