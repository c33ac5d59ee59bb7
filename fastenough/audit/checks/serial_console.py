# SPDX-License-Identifier: GPL-2.0-or-later
"""A console on a slow line."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, sysctl

_SLOW = ("ttyS", "ttyAMA", "ttymxc", "ttyO", "ttySC", "ttyMSM", "ttyLP", "ttyPS", "ttyUL", "ttyUSB", "hvc", "ttySTM")
_ERRORS = 4
"""Messages of this level and above (of less weight) are no errors."""


def _look(facts: Facts) -> Seen:
    slow = [name for name in facts.need("consoles") if str(name).startswith(_SLOW)]
    if not slow:
        return fine("the kernel prints to none")
    level = int(facts.need("console_level"))
    if level <= _ERRORS:
        return fine(f"{', '.join(slow)}, for errors only (level {level})")
    return costs(
        f"{', '.join(slow)}, for messages up to level {level - 1}",
        sysctl("kernel.printk", _ERRORS, ("console-level", str(_ERRORS))),
        boot("quiet", "loglevel=4"),
        severity=Severity.LOW if facts.real_time_kernel else None,
    )


CHECK = Check(
    "serial-console",
    "printing to a serial line",
    Group.SERVICES,
    Severity.HIGH,
    _look,
    why="A kernel that is not PREEMPT_RT waits for each letter with interrupts off: 87 µs at 115,200 Bd, and a "
    "line of 80 letters is 7 ms.",
    source="kernel: Documentation/core-api/printk-basics.rst",
    elsewhere="messages are in the log, and not on the line, where a crash needs them",
)
