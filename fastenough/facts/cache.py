# SPDX-License-Identifier: GPL-2.0-or-later
"""Cache allocation: whether the processor supports it, and whether it is in use."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_CPUINFO = "/proc/cpuinfo"
_MOUNTS = "/proc/self/mountinfo"
_FILESYSTEMS = "/proc/filesystems"
_TCC = "/sys/firmware/acpi/tables/[RP]TCT"
_FLAGS = {"cat_l2", "cat_l3", "cdp_l2", "cdp_l3", "mba"}


class CacheFact(TypedDict):
    """Allocation of the cache: support and use.

    ``can``: features of resource control of the processor; ``kernel``: whether the kernel supports it; ``mounted``:
    whether resctrl is mounted; ``tcc``: whether the firmware has Intel's tables for time-coordinated computing (RTCT,
    PTCT).
    """

    can: list[str]
    kernel: bool
    mounted: bool
    tcc: bool


def _cache(inputs: Inputs) -> CacheFact:
    line = next((line for line in inputs.text(_CPUINFO).splitlines() if line.startswith("flags")), None)
    if line is None:
        raise Absent("the kernel names no flags of this processor")
    return {
        "can": sorted(_FLAGS.intersection(line.partition(":")[2].split())),
        "kernel": "resctrl" in (inputs.get(_FILESYSTEMS) or ""),
        "mounted": " - resctrl " in (inputs.get(_MOUNTS) or ""),
        "tcc": any(True for _ in inputs.matching(_TCC)),
    }


FACTS = (Fact("cache_allocation", _cache, files=(_CPUINFO, _MOUNTS, _FILESYSTEMS, _TCC)),)
