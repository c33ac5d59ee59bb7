# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of memory, gathered on each CPU."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, sysctl

_ENOUGH_S = 10


def _look(facts: Facts) -> Seen:
    every_s = int(facts.need("tunables", "stat_interval"))
    if every_s >= _ENOUGH_S:
        return fine(f"every {every_s} s")
    return costs(f"every {every_s} s on each CPU", sysctl("vm.stat_interval", 120, ("stat-interval", "120")))


CHECK = Check(
    "statistics",
    "statistics of memory",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="A work item runs on each busy CPU to add up its counters, and takes the CPU from what runs there.",
    source="kernel: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuned, profile network-latency",
    elsewhere="figures of /proc/vmstat are older",
)
