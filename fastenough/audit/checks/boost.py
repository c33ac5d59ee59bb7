# SPDX-License-Identifier: GPL-2.0-or-later
"""Clock frequencies above the one that can be kept."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, unknown, written

_INTEL = "/sys/devices/system/cpu/intel_pstate/no_turbo"
_OTHER = "/sys/devices/system/cpu/cpufreq/boost"


def _look(facts: Facts) -> Seen:
    facts.need("frequency", "cpus")
    boost, no_turbo = facts.get("frequency", "boost"), facts.get("frequency", "no_turbo")
    if boost is None and no_turbo is None:
        return unknown("the kernel has no switch for it here")
    if boost == 0 or no_turbo == 1:
        return fine("off")
    return costs("on", written(_INTEL, 1) if no_turbo is not None else written(_OTHER, 0))


CHECK = Check(
    "boost",
    "boost",
    Group.POWER,
    Severity.LOW,
    _look,
    why="How fast the CPU runs depends on what the other CPUs do and how warm it is, so that the same path takes "
    "different times.",
    source="kernel: Documentation/admin-guide/pm/cpufreq.rst, boost",
    elsewhere="throughput of single threads",
)
