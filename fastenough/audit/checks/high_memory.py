# SPDX-License-Identifier: GPL-2.0-or-later
"""High memory of 32-bit kernels."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.option("64BIT") == "y":
        return fine("a 64-bit kernel needs none")
    if facts.option("HIGHMEM") != "y":
        return fine("built without")
    return costs("pages are mapped when they are needed", build("CONFIG_HIGHMEM=n"))


CHECK = Check(
    "high-memory",
    "high memory",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="A page of high memory is mapped before each use and flushed after it.",
    source="Enea, appendix A, step 1 (CONFIG_HIGHMEM)",
    elsewhere="memory beyond some 800 MB cannot be used",
)
