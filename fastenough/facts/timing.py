# SPDX-License-Identifier: GPL-2.0-or-later
"""Clocks and timers."""

from __future__ import annotations

from fastenough.facts.fact import Fact, Inputs

_CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/"
_EVENT_DEVICES = "/sys/devices/system/clockevents/clockevent*/current_device"


def _clocksource(inputs: Inputs) -> str:
    return inputs.text(_CLOCKSOURCE + "current_clocksource")


def _available(inputs: Inputs) -> list[str]:
    return inputs.text(_CLOCKSOURCE + "available_clocksource").split()


def _event_devices(inputs: Inputs) -> dict[str, str]:
    return {device: name for (device,), name in inputs.matching(_EVENT_DEVICES)}


FACTS = (
    Fact("clocksource", _clocksource, files=(_CLOCKSOURCE + "current_clocksource",)),
    Fact("clocksources_available", _available, files=(_CLOCKSOURCE + "available_clocksource",)),
    Fact("clock_event_devices", _event_devices, files=(_EVENT_DEVICES,)),
)
