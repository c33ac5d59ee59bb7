# SPDX-License-Identifier: GPL-2.0-or-later
"""The penalty for locks across cache lines."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, sysctl


def _look(facts: Facts) -> Seen:
    if not facts.x86:
        return fine("a matter of x86 only")
    if facts.arguments.get("split_lock_detect") == "off":
        return fine("not looked for (split_lock_detect=off)")
    if int(facts.need("tunables", "split_lock_mitigate")) == 0:
        return fine("told, and not punished")
    return costs(
        "where the processor tells of one, the task that makes it is held for 10 ms or more",
        sysctl("kernel.split_lock_mitigate", 0, ("split-lock-penalty", "0")),
        boot("split_lock_detect=off"),
    )


CHECK = Check(
    "split-locks",
    "penalty for split locks",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="The kernel slows a task down on purpose that locks memory across two cache lines; a real-time task whose "
    "library does so is late by milliseconds.",
    source="kernel: Documentation/arch/x86/buslock.rst; Documentation/admin-guide/sysctl/kernel.rst",
    elsewhere="others can stop the bus of all CPUs by such locks",
)
