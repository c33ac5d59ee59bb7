# SPDX-License-Identifier: GPL-2.0-or-later
"""Swap."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine, sysctl


def _look(facts: Facts) -> Seen:
    swap_bytes = int(facts.need("memory", "swap_bytes"))
    if swap_bytes == 0:
        return fine("none")
    swappiness = facts.get("tunables", "swappiness")
    changes = [done("swapoff -a, and lock the memory of real-time tasks (mlockall)")]
    if swappiness is not None and int(swappiness) > 1:
        changes.append(sysctl("vm.swappiness", 1, ("swappiness", "1")))
    said = "" if swappiness is None else f", swappiness {swappiness}"
    return costs(f"{swap_bytes / 2**20:,.0f} MiB{said}", *changes)


CHECK = Check(
    "swap",
    "swap",
    Group.MEMORY,
    Severity.HIGH,
    _look,
    why="A page of a task that is not locked in memory is read back from disk when it is touched: milliseconds. Also "
    "where the task itself is locked, the disk's work goes on beside it.",
    source="mlockall(2); kernel: Documentation/admin-guide/sysctl/vm.rst; rtcqs looks at it too",
    elsewhere="memory: what would have been swapped out is killed instead",
)
