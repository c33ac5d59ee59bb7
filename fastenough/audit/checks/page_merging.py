# SPDX-License-Identifier: GPL-2.0-or-later
"""Merging of equal pages."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, written


def _look(facts: Facts) -> Seen:
    running = facts.get("tunables", "ksm_run")
    if running is None and facts.option("KSM") == "n":
        return fine("not built in")
    if int(facts.need("tunables", "ksm_run")) != 1:
        return fine("off")
    return costs("on", written("/sys/kernel/mm/ksm/run", 0, ("page-merging", "0")))


CHECK = Check(
    "page-merging",
    "merging of equal pages",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="A thread of the kernel compares memory all the time, and writing to a merged page costs a fault and a copy.",
    source="kernel: Documentation/admin-guide/mm/ksm.rst",
    elsewhere="memory, where many guests are alike",
)
