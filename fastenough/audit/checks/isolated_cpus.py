# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs kept free of ordinary tasks."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, unknown


def _look(facts: Facts) -> Seen:
    said = facts.get("cpu_isolation", "isolated")
    partitions = as_cpus(facts.get("isolated_partitions"))
    if isolated := as_cpus(said) | partitions:
        how = " (cpuset partition)" if isolated == partitions else ""
        return fine(f"{words.cpus(sorted(isolated))}{how}: ordinary tasks, and loads, stay off")
    if facts.count < 2:
        return fine("there is one CPU only: nothing can be isolated")
    if said is None:
        return unknown("this kernel does not say which CPUs are isolated", boot(f"isolcpus={facts.set_apart}"))
    return costs("none: a real-time task shares its CPU with everything else", boot(f"isolcpus={facts.set_apart}"))


CHECK = Check(
    "isolated-cpus",
    "isolated CPUs",
    Group.CPUS,
    Severity.MEDIUM,
    _look,
    why="Ordinary tasks on the same CPU bring their system calls, page faults and cache misses, and what they do with "
    "preemption off delays the real-time task.",
    source="kernel: Documentation/admin-guide/kernel-parameters.txt, isolcpus; tuned, profile realtime",
    elsewhere="throughput: everything else has fewer CPUs",
)
