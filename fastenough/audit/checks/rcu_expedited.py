# SPDX-License-Identifier: GPL-2.0-or-later
"""Expedited grace periods, which interrupt every CPU."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written


def _look(facts: Facts) -> Seen:
    if int(facts.need("tunables", "rcu_normal")):
        return fine("switched off (rcu_normal)")
    if int(facts.need("tunables", "rcu_expedited")):
        return costs(
            "every grace period is an expedited one",
            written("/sys/kernel/rcu_expedited", 0),
            boot("rcupdate.rcu_normal_after_boot=1"),
        )
    return costs(
        "the kernel may ask for one itself",
        boot("rcupdate.rcu_normal_after_boot=1"),
        written("/sys/kernel/rcu_normal", 1),
        severity=Severity.LOW,
    )


CHECK = Check(
    "rcu-expedited",
    "expedited RCU",
    Group.KERNEL,
    Severity.MEDIUM,
    _look,
    why="An expedited grace period interrupts all CPUs at once, those of real-time tasks too.",
    source="kernel: Documentation/RCU/Design/Requirements/Requirements.rst (PREEMPT_RT: rcu_normal_after_boot)",
    elsewhere="what waits for a grace period, as changing firewall rules, takes longer",
)
