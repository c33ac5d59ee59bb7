# SPDX-License-Identifier: GPL-2.0-or-later
"""High-resolution timers: without them every timer ends at a tick."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, build, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.arguments.get("highres") in ("off", "0", "n"):
        return costs("switched off at boot (highres=off): timers end at a tick", boot("highres=on"))
    if facts.option("HIGH_RES_TIMERS") != "y":
        return costs(
            f"built without: timers end at a tick, {facts.option('HZ')} times a second",
            build("CONFIG_HIGH_RES_TIMERS=y"),
        )
    return fine("built in, and not switched off")


CHECK = Check(
    "high-resolution-timers",
    "high-resolution timers",
    Group.TIMERS,
    Severity.HIGH,
    _look,
    why="Without them a timer ends at the next tick of the kernel, up to 10 ms late.",
    source="kernel: Documentation/timers/highres.rst",
    elsewhere="none to speak of",
)
