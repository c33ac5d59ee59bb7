# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of the EVL core (Xenomai 4)."""

from __future__ import annotations

from fastenough.implementations.core_user import CoreUser

METHODS = ("evl_sleep_until", "evl_timer")
DEVICE = "/dev/evl/control"

IMPLEMENTATION = CoreUser(
    "evl-user",
    core=DEVICE,
    without=f"the board's kernel has no EVL core ({DEVICE} is not there)",
    platform="evl",
    lines="/dev/fastenough-oob",
    module="fastenough_oob_gpio",
    choices={"method": METHODS, "way": ("auto", "oob"), "policy": ("fifo", "other")},
)
