# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads: one file each, one line here for each."""

from __future__ import annotations

from collections.abc import Mapping

from fastenough.loads.load import TOOL_PACKAGES, Expectation, Load
from fastenough.loads.running import RunningLoad, StartedLoad
from fastenough.loads.tools import require_tools
from fastenough.model import BadInput
from fastenough.registry import listed

__all__ = ["LOADS", "TOOL_PACKAGES", "Expectation", "Load", "RunningLoad", "StartedLoad", "find_load", "require_tools"]

LOADS: Mapping[str, Load] = {
    load.name: load
    for load in listed(
        __name__,
        "LOAD",
        (
            "none",
            "cpu",
            "io",
            "vm",
            "hdd",
            "full",
            "hackbench",
            "at91",
            "brown_martin",
            "osadl",
            "rtlinux_io",
            "rtlinux_memory",
        ),
    )
}


def find_load(name: str) -> Load:
    """The load of that name; raises BadInput with the existing names."""
    if name not in LOADS:
        raise BadInput(f"unknown load {name!r}; use {', '.join(LOADS)}")
    return LOADS[name]
