# SPDX-License-Identifier: GPL-2.0-or-later
"""Timers of one CPU that another may hold."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, sysctl


def _look(facts: Facts) -> Seen:
    if len(facts.online) < 2:
        return fine("there is one CPU only")
    if int(facts.need("tunables", "timer_migration")) == 0:
        return fine("off: each CPU holds its own")
    return costs(
        "on: an idle CPU's timers go to a busy one", sysctl("kernel.timer_migration", 0, ("timer-migration", "0"))
    )


CHECK = Check(
    "timer-migration",
    "timer migration",
    Group.TIMERS,
    Severity.LOW,
    _look,
    why="Timers that ordinary tasks set on an idle CPU are moved to a busy one, where they interrupt whoever runs.",
    source="kernel: kernel/time/hrtimer.c, kernel/time/timer_migration.c; tuned, profile network-latency",
    elsewhere="power: idle CPUs are woken for their own timers",
)
