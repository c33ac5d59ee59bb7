# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that run without tick while one task has them."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, build, costs, fine


def _look(facts: Facts) -> Seen:
    if len(facts.online) < 2:
        return fine("there is one CPU only, which keeps the time")
    without = as_cpus(facts.get("cpu_isolation", "nohz_full"))
    if without:
        return fine(f"CPUs {facts.get('cpu_isolation', 'nohz_full')} (nohz_full)")
    if facts.option("NO_HZ_FULL") != "y":
        return costs("none, and this kernel can have none", build("CONFIG_NO_HZ_FULL=y"))
    return costs("none: the tick interrupts each busy CPU", boot(f"nohz_full={facts.set_apart}"))


CHECK = Check(
    "tickless-cpus",
    "CPUs without tick",
    Group.CPUS,
    Severity.LOW,
    _look,
    why="The tick takes some µs of each ms from a task that computes. A task that mostly sleeps gains nothing, and "
    "pays more for each system call.",
    source="kernel: Documentation/timers/no_hz.rst",
    elsewhere="system calls and interrupts of those CPUs cost more",
)
