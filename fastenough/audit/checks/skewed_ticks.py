# SPDX-License-Identifier: GPL-2.0-or-later
"""Ticks of all CPUs at one instant."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.arguments.get("skew_tick") == "1":
        return fine("spread over the period (skew_tick=1)")
    if len(facts.online) < 4:
        return fine(f"{len(facts.online)} CPUs hardly wait for each other")
    return costs(f"{len(facts.online)} CPUs tick at one instant", boot("skew_tick=1"))


CHECK = Check(
    "skewed-ticks",
    "ticks at one instant",
    Group.TIMERS,
    Severity.LOW,
    _look,
    why="All CPUs take the same locks in their ticks, and wait for each other.",
    source="kernel: Documentation/admin-guide/kernel-parameters.txt, skew_tick",
    elsewhere="power: fewer CPUs sleep at a time",
)
