# SPDX-License-Identifier: GPL-2.0-or-later
"""Moving memory to the node that uses it."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, sysctl


def _look(facts: Facts) -> Seen:
    if facts.get("tunables", "numa_balancing") is None and facts.option("NUMA_BALANCING") == "n":
        return fine("not built in")
    if int(facts.need("tunables", "numa_balancing")) == 0:
        return fine("off")
    return costs("on", sysctl("kernel.numa_balancing", 0, ("numa-balancing", "0")), boot("numa_balancing=disable"))


CHECK = Check(
    "numa-balancing",
    "NUMA balancing",
    Group.MEMORY,
    Severity.MEDIUM,
    _look,
    why="The kernel takes pages away to see who touches them: faults of tasks that have their memory locked too, and "
    "interrupts for flushing TLBs.",
    source="kernel: Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
    elsewhere="throughput of programs that nobody has bound to a node",
)
