# SPDX-License-Identifier: GPL-2.0-or-later
"""Compaction of memory ahead of need."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, sysctl


def _look(facts: Facts) -> Seen:
    if facts.get("tunables", "compaction_proactiveness") is None and facts.option("COMPACTION") == "n":
        return fine("not built in")
    eager = int(facts.need("tunables", "compaction_proactiveness"))
    if eager == 0:
        return fine("only when it is needed")
    return costs(
        f"ahead of need (proactiveness {eager})", sysctl("vm.compaction_proactiveness", 0, ("compaction", "0"))
    )


CHECK = Check(
    "compaction",
    "compaction of memory",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="Moving pages interrupts the CPUs that use them, and locks the lists of free memory.",
    source="kernel: Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness",
    elsewhere="huge pages are found later",
)
