# SPDX-License-Identifier: GPL-2.0-or-later
"""Services that wake up by themselves."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine

_GOOD = ("tuned", "rtkit-daemon", "stalld")
"""Made for real time, or harmless to it."""


def _look(facts: Facts) -> Seen:
    found = [str(name) for name in facts.need("services") if name not in (*_GOOD, "irqbalance")]
    if not found:
        facts.require_all_tasks()
        return fine("none of those that wake up by themselves is seen")
    return costs(", ".join(found), done("systemctl stop or mask those that the machine does without"))


CHECK = Check(
    "services",
    "background services",
    Group.SERVICES,
    Severity.LOW,
    _look,
    why="What wakes up by the hour brings disk, memory and system calls that no short measurement has seen.",
    source="rtcqs and realtimeconfigquickscan look at it too",
    elsewhere="what the services are for, such as updates",
)
