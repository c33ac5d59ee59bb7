# SPDX-License-Identifier: GPL-2.0-or-later
"""Temperatures, trip points of the kernel, and number of throttling events of the processor."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_ZONE = "/sys/class/thermal/thermal_zone*/{}"
_TRIP = "/sys/class/thermal/thermal_zone*/trip_point_*_{}"
_COUNT = "/sys/devices/system/cpu/cpu*/thermal_throttle/{}_throttle_count"
_SLOWING = ("passive", "hot", "critical")


class ThermalZoneFact(TypedDict):
    """Temperature of a zone, and the lowest one at which the kernel slows the processor; None if unknown."""

    kind: str
    millidegrees: int | None
    slowed_from_millidegrees: int | None


class ThermalFact(TypedDict):
    """Zones by name, and throttling events since boot, None if the processor does not count them."""

    zones: dict[str, ThermalZoneFact]
    throttled: int | None


def _zones(inputs: Inputs) -> dict[str, ThermalZoneFact]:
    temperatures = dict(inputs.matching(_ZONE.format("temp")))
    trips = {place: int(text) for place, text in inputs.matching(_TRIP.format("temp"))}
    kinds = {(zone, name.removesuffix("_type")): text for (zone, name), text in inputs.matching(_TRIP.format("type"))}
    zones: dict[str, ThermalZoneFact] = {}
    for (zone,), kind in inputs.matching(_ZONE.format("type")):
        slowing = [
            value
            for (where, name), value in trips.items()
            if where == zone and kinds.get((zone, name.removesuffix("_temp"))) in _SLOWING and value > 0
        ]
        text = temperatures.get((zone,))
        zones[zone] = {
            "kind": kind,
            "millidegrees": None if text is None else int(text),
            "slowed_from_millidegrees": min(slowing, default=None),
        }
    return zones


def _thermal(inputs: Inputs) -> ThermalFact:
    counts = [int(text) for scope in ("core", "package") for _, text in inputs.matching(_COUNT.format(scope))]
    zones = _zones(inputs)
    if not counts and not zones:
        raise Absent("the kernel knows no temperature here")
    return {"zones": zones, "throttled": sum(counts) if counts else None}


FACTS = (
    Fact(
        "thermal",
        _thermal,
        volatile=True,
        files=(
            _ZONE.format("type"),
            _ZONE.format("temp"),
            _TRIP.format("type"),
            _TRIP.format("temp"),
            _COUNT.format("core"),
            _COUNT.format("package"),
        ),
    ),
)
