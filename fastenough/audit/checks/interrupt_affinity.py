# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs serve interrupts."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, done, fine


def _look(facts: Facts) -> Seen:
    known = facts.need("interrupts")
    if len(facts.online) < 2:
        return fine("there is one CPU only")
    apart = as_cpus(facts.set_apart)
    reach = {irq: as_cpus(each.get("effective_cpus") or each.get("cpus")) for irq, each in known.items()}
    there = [irq for irq, cpus in reach.items() if cpus & apart]
    if not any(reach.values()):
        return (
            fine("no device's interrupt says where it goes")
            if not known
            else costs(
                "the kernel does not say where they go", boot(f"irqaffinity={facts.others}"), severity=Severity.LOW
            )
        )
    if not there:
        return fine(f"none is served by CPU {facts.set_apart}")
    return costs(
        f"{len(there)} of {words.counted(len(known), 'interrupt')} may be served by CPU {facts.set_apart}",
        done(f"write {facts.others} to /proc/irq/*/smp_affinity_list", ("irq-affinity", facts.others)),
        boot(f"irqaffinity={facts.others}"),
    )


CHECK = Check(
    "interrupt-affinity",
    "where interrupts go",
    Group.INTERRUPTS,
    Severity.MEDIUM,
    _look,
    why="A device's interrupt takes the CPU from the task that runs there, and its soft interrupt may follow.",
    source="kernel: Documentation/core-api/irq/irq-affinity.rst; rt-conf and rtcqs look at it too",
    elsewhere="throughput of devices: fewer CPUs serve them",
)
