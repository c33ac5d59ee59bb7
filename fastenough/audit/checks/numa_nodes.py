# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that is near, and memory that is far."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine


def _look(facts: Facts) -> Seen:
    nodes = facts.need("numa")
    if not nodes and facts.option("NUMA") == "n":
        return fine("not built in: all memory is equally near")
    if not nodes:
        facts.need("numa", "node0")
    if len(nodes) == 1:
        return fine("one node: all memory is equally near")
    return costs(f"{len(nodes)} nodes", done("numactl --cpunodebind=N --membind=N for the task and its devices"))


CHECK = Check(
    "numa-nodes",
    "nodes of memory",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="Memory and devices of another node are reached over a link that others use too.",
    source="kernel: Documentation/mm/numa.rst; numa(7)",
    elsewhere="none to speak of",
)
