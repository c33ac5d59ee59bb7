# SPDX-License-Identifier: GPL-2.0-or-later
"""The tick that an idle CPU stops."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.arguments.get("nohz") in ("off", "0", "n"):
        return fine("the tick never stops (nohz=off)")
    if as_cpus(facts.get("cpu_isolation", "nohz_full")):
        return fine("CPUs of nohz_full need the tick to stop")
    if facts.option("HZ_PERIODIC") == "y":
        return fine("the tick never stops (CONFIG_HZ_PERIODIC)")
    if facts.option("NO_HZ_COMMON") != "y":
        return fine("built without tickless idle")
    return costs("an idle CPU stops its tick", boot("nohz=off"))


CHECK = Check(
    "idle-tick",
    "tick of idle CPUs",
    Group.TIMERS,
    Severity.LOW,
    _look,
    why="A CPU that wakes up starts its tick again and catches up with what it missed before the task runs.",
    source='kernel: Documentation/timers/no_hz.rst, "Issues"',
    elsewhere="power: idle CPUs are woken at every tick; no CPU can be without tick (nohz_full) then",
)
