# SPDX-License-Identifier: GPL-2.0-or-later
"""What the clock is read from."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written

_FAST = ("tsc", "arch_sys_counter", "riscv_clocksource", "timebase", "MIPS")
_GUEST = ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")
_SLOW = ("hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies")
_PLACE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def _look(facts: Facts) -> Seen:
    source = str(facts.need("clocksource"))
    if source in _FAST:
        return fine(f"{source}, a register of the CPU")
    if source in _GUEST:
        return fine(f"{source}, a counter of the CPU that the hypervisor scales")
    better = [each for each in facts.get("clocksources_available") or () if each in _FAST]
    changes = [written(_PLACE, better[0])] if better else [boot("tsc=reliable")] if facts.x86 else []
    return costs(
        f"{source}" + (f", though {better[0]} is there" if better else ""),
        *changes,
        severity=None if source in _SLOW else Severity.LOW,
    )


CHECK = Check(
    "clock-source",
    "clock source",
    Group.TIMERS,
    Severity.MEDIUM,
    _look,
    why="Each look at the clock goes to a device, often by a system call: 1 µs and more instead of some 30 ns, and "
    "CPUs wait for each other at it.",
    source="kernel: Documentation/timers/timekeeping.rst",
    elsewhere="a TSC that the kernel distrusted may run apart on several CPUs: look in its log why it did",
)
