# SPDX-License-Identifier: GPL-2.0-or-later
"""Interval at which the kernel polls the processor for corrected errors."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_FOLDER = "/sys/devices/system/machinecheck/machinecheck0/"
_HEXADECIMAL = 16
"""The interval in seconds (Documentation/arch/x86/x86_64/machinecheck.rst)."""


class MachineCheckFact(TypedDict):
    """Polling interval for corrected errors, and whether they are ignored."""

    every_s: int
    ignored: bool


def _machine_check(inputs: Inputs) -> MachineCheckFact:
    text = inputs.get(_FOLDER + "check_interval")
    if text is None:
        raise Absent("the kernel does not ask this processor for machine checks")
    ignored = inputs.number(_FOLDER + "ignore_ce")
    return {"every_s": int(text, _HEXADECIMAL), "ignored": bool(ignored)}


FACTS = (Fact("machine_check", _machine_check, files=(_FOLDER + "check_interval", _FOLDER + "ignore_ce")),)
