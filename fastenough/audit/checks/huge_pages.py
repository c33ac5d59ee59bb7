# SPDX-License-Identifier: GPL-2.0-or-later
"""Transparent huge pages."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written

_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"


def _look(facts: Facts) -> Seen:
    chosen = facts.get("memory", "transparent_huge_pages")
    if chosen is None and facts.option("TRANSPARENT_HUGEPAGE") == "n":
        return fine("not built in")
    chosen = facts.need("memory", "transparent_huge_pages")
    if chosen == "never":
        return fine("never")
    return costs(
        f"{chosen}" + (" (only where a program asks for them)" if chosen == "madvise" else ""),
        written(_FILE, "never", ("transparent-huge-pages", "never")),
        boot("transparent_hugepage=never"),
        severity=Severity.LOW if chosen == "madvise" else None,
    )


CHECK = Check(
    "huge-pages",
    "transparent huge pages",
    Group.MEMORY,
    Severity.MEDIUM,
    _look,
    why="The kernel moves pages together behind a task's back: it locks its memory map, interrupts the other CPUs to "
    "flush their TLBs, and a fault clears 2 MiB at once.",
    source="kernel: Documentation/admin-guide/mm/transhuge.rst; tuned, profile network-latency",
    elsewhere="throughput of programs with much memory",
)
