# SPDX-License-Identifier: GPL-2.0-or-later
"""A service that moves interrupts."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine


def _look(facts: Facts) -> Seen:
    if "irqbalance" not in facts.need("services"):
        facts.require_all_tasks()
        return fine("none is seen")
    return costs(
        "irqbalance is running",
        done(
            f"systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST={facts.set_apart} in its configuration"
        ),
    )


CHECK = Check(
    "interrupt-balancer",
    "balancing of interrupts",
    Group.INTERRUPTS,
    Severity.MEDIUM,
    _look,
    why="It moves interrupts to CPUs that have time, which is where a real-time task sleeps, and undoes what was set.",
    source="irqbalance(1); tuned, profile realtime (banned_cpus)",
    elsewhere="throughput of devices, where nobody places their interrupts",
)
