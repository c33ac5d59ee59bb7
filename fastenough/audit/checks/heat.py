# SPDX-License-Identifier: GPL-2.0-or-later
"""Processors that slow down because they are hot."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, outside, unknown

_NEAR_MILLIDEGREES = 10_000
_COOL = outside("better cooling, or a lower limit of power or frequency that is never reached")


def _look(facts: Facts) -> Seen:
    known = facts.need("thermal")
    near = [
        f"{zone['kind']} {zone['millidegrees'] / 1000:g} of {zone['slowed_from_millidegrees'] / 1000:g} degrees"
        for zone in known["zones"].values()
        if zone["millidegrees"]
        and zone["slowed_from_millidegrees"]
        and zone["slowed_from_millidegrees"] - zone["millidegrees"] < _NEAR_MILLIDEGREES
    ]
    if known["throttled"]:
        return costs(f"slowed down {words.counted(int(known['throttled']), 'time')} since boot", _COOL)
    if near:
        return costs(f"near the temperature at which CPUs are slowed down: {', '.join(near)}", _COOL)
    if known["throttled"] is None:
        return unknown("this processor does not count how often it was slowed down; now it is cool")
    return fine("never slowed down since boot")


CHECK = Check(
    "heat",
    "heat",
    Group.POWER,
    Severity.HIGH,
    _look,
    why="A processor that is too hot halves its clock or stops for a time, after an hour of load and not in a short "
    "measurement.",
    source="kernel: Documentation/driver-api/thermal; Intel SDM volume 3, thermal monitoring",
    elsewhere="none to speak of",
)
