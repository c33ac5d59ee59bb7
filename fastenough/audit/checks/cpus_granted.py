# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that are withheld from what measures."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides
from fastenough.facts.cpu import list_form


def _look(facts: Facts) -> Seen:
    allowed = as_cpus(facts.need("cpus_allowed"))
    withheld = facts.online - allowed - as_cpus(facts.get("cpu_isolation", "isolated"))
    if not withheld:
        return fine("all that are in use")
    return hides(
        f"CPUs {list_form(withheld)} may not be used by what measures",
        done("taskset, cpuset.cpus or --cpuset-cpus of the container"),
    )


CHECK = Check(
    "cpus-granted",
    "CPUs that may be used",
    Group.CPUS,
    Severity.MEDIUM,
    _look,
    why="What is not measured there is not known, and the tasks that run there share caches, memory and locks.",
    source="sched_setaffinity(2), cpuset(7)",
    elsewhere="none to speak of",
)
