/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether this kernel has an EVL core that the library can use. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core.h"
#include "thread.h"

static const char *abi_mismatch(void)
{
	static char reason[128] = "its ABI differs from the library's";
	struct evl_core_info info;
	int fd = open(EVL_CONTROL_DEV, O_RDWR | O_CLOEXEC);

	if (ioctl(fd, EVL_CTLIOC_GET_COREINFO, &info) == 0)
		snprintf(reason, sizeof(reason), "the core has ABI %u to %u, the library needs %d: use the matching libevl",
			 info.abi_base, info.abi_current, evl_get_version().abi_level);
	close(fd);
	return reason;
}

static const char *error_reason(int error)
{
	if (error == ENOEXEC)
		return abi_mismatch();
	return error == ENXIO ? "the EVL core of this kernel is stopped" : strerror(error);
}

/* A core without CONFIG_EVL_RUNSTATS reports 0 switches whatever happens. */
static bool core_counts_switches(void)
{
	int64_t before = thread_mode_switches();

	return evl_switch_oob() == 0 && evl_switch_inband() == 0 && thread_mode_switches() > before;
}

const char *platform_unavailable(void)
{
	int error;
	bool counts;

	if (access(EVL_CONTROL_DEV, F_OK))
		return "this kernel has no EVL core (no " EVL_CONTROL_DEV ")";
	error = -evl_init();
	if (error)
		return error_reason(error);
	error = -evl_attach_self("fastenough-%d", (int)thread_id());
	if (error > 0)
		return error_reason(error);
	counts = core_counts_switches();
	evl_detach_self();
	return counts ? NULL : "the EVL core of this kernel counts no in-band switches; build it with CONFIG_EVL_RUNSTATS";
}
