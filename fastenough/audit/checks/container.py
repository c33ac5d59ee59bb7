# SPDX-License-Identifier: GPL-2.0-or-later
"""A container around what measures."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides, unknown


def _look(facts: Facts) -> Seen:
    name = facts.get("container")
    if name is None:
        facts.need("kernel", "release")
        return unknown("none is seen, and none need be") if facts.reason("container") else _bare(facts)
    return hides(
        f"{name}: other tasks, mounts and limits of this machine are not all seen",
        done("look at the machine itself: fastenough audit --board ssh:HOST, or outside of the container"),
    )


def _bare(facts: Facts) -> Seen:
    facts.require_all_tasks()
    return fine("none is seen, and threads of the kernel are")


CHECK = Check(
    "container",
    "container",
    Group.MACHINE,
    Severity.LOW,
    _look,
    why="Tasks and settings of the host that are not seen in a container delay what runs in it all the same.",
    source="docs/containers.md",
    elsewhere="none: it is where to look",
)
