# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of the cache that a real-time task could have for itself."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, booted, build, costs, done, fine


def _look(facts: Facts) -> Seen:
    known = facts.need("cache_allocation")
    if not known["can"]:
        return fine("this processor cannot give out shares")
    if known["mounted"]:
        return fine(f"resctrl is mounted ({', '.join(known['can'])})")
    if not known["kernel"]:
        return costs(
            f"the processor can ({', '.join(known['can'])}), this kernel cannot", build("CONFIG_X86_CPU_RESCTRL=y")
        )
    return costs(
        f"possible ({', '.join(known['can'])}) and not in use",
        done("mount -t resctrl resctrl /sys/fs/resctrl, and a group with cache of its own for the task's CPU"),
        booted("intel-cmt-cat (pqos) keeps it over boots"),
    )


CHECK = Check(
    "cache-allocation",
    "cache allocation",
    Group.MEMORY,
    Severity.LOW,
    _look,
    why="A load on other CPUs throws the task's data out of the cache that they share; each miss costs some 100 ns.",
    source="kernel: Documentation/filesystems/resctrl.rst",
    elsewhere="throughput: the others have less cache",
)
