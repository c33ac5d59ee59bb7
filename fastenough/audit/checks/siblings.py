# SPDX-License-Identifier: GPL-2.0-or-later
"""Two threads on one core."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written


def _look(facts: Facts) -> Seen:
    shared = [group for group in facts.get("cpu", "topology", "core") or () if len(group) > 1]
    if not shared:
        smt = facts.get("cpu", "smt")
        if smt is None and not facts.get("cpu", "topology", "core"):
            facts.need("cpu", "smt")
        return fine("each CPU is a core of its own" + (", as far as a guest can see" if facts.hypervisor else ""))
    return costs(
        f"{len(shared)} cores run two or more CPUs each",
        written("/sys/devices/system/cpu/smt/control", "off"),
        boot("nosmt"),
    )


CHECK = Check(
    "siblings",
    "threads of one core (SMT)",
    Group.CPUS,
    Severity.MEDIUM,
    _look,
    why="What runs on the sibling takes execution units and cache from the task at every instruction, and no scheduler "
    "sees it.",
    source="kernel: Documentation/admin-guide/kernel-parameters.txt, nosmt; rtcqs looks at it too",
    elsewhere="throughput: up to a third less with all CPUs busy",
)
