# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of Xenomai 3's Cobalt core."""

from __future__ import annotations

from fastenough.implementations.core_user import CoreUser

METHODS = ("clock_nanosleep-abs", "clock_nanosleep-rel", "timerfd")
VERSION = "/proc/xenomai/version"

IMPLEMENTATION = CoreUser(
    "xenomai-user",
    core=VERSION,
    without=f"the board's kernel has no Cobalt core ({VERSION} is not there); Mercury is "
    "Linux with Xenomai's API: measure it as linux-user",
    platform="xenomai",
    lines="/dev/rtdm",
    module="fastenough_rtdm_gpio",
    choices={"method": METHODS, "way": ("auto", "rtdm"), "policy": ("fifo", "rr", "other")},
)
