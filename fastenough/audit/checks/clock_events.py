# SPDX-License-Identifier: GPL-2.0-or-later
"""What wakes a CPU at a given time."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, outside, unknown

_SHARED = ("hpet", "pit", "bc_hrtimer", "rtc")


def _look(facts: Facts) -> Seen:
    devices = facts.need("clock_event_devices")
    if not devices:
        return unknown("the kernel names no device for any CPU")
    shared = sorted({name for name in devices.values() if str(name).startswith(_SHARED)})
    if not shared:
        return fine(", ".join(sorted(set(map(str, devices.values())))) + ", one for each CPU")
    return costs(
        f"{', '.join(shared)}: one device for several CPUs",
        outside("switch the local timer of the CPU on in the firmware"),
    )


CHECK = Check(
    "clock-events",
    "timer devices",
    Group.TIMERS,
    Severity.MEDIUM,
    _look,
    why="A timer outside of the CPU is programmed over a bus, and one CPU passes its interrupt on to the others.",
    source='kernel: Documentation/timers/highres.rst, "clock event devices"',
    elsewhere="none to speak of",
)
