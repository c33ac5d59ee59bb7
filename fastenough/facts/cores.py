# SPDX-License-Identifier: GPL-2.0-or-later
"""A real-time core beside Linux (Xenomai's Cobalt, EVL), and its libraries."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_COBALT = "/proc/xenomai/version"
_EVL_ABI = "/sys/devices/virtual/*/control/abi"
_XENOMAI_VERSION = "xeno-config --version"
_XENOMAI_CORE = "xeno-config --core"
_EVL_VERSION = "pkg-config --modversion evl"


class RealTimeCoreFact(TypedDict):
    """Name of the core, its version or ABI number, and its library; None if unknown."""

    core: str | None
    version: str | None
    abi: int | None
    library: dict[str, str] | None


def _core(inputs: Inputs) -> tuple[str | None, str | None, int | None]:
    """The core's name, version and ABI number, None if unknown."""
    version = inputs.get(_COBALT)
    if version is not None:
        return "cobalt", version, None
    abi = next((text for _, text in inputs.matching(_EVL_ABI)), None)
    return (None, None, None) if abi is None else ("evl", None, int(abi))


def _library(inputs: Inputs) -> dict[str, str] | None:
    """Versions of the libraries; of Xenomai also the core: mercury is its API on Linux only."""
    xenomai = inputs.optional_output(_XENOMAI_VERSION)
    if xenomai is not None:
        core = inputs.optional_output(_XENOMAI_CORE) or "unknown"
        return {"name": "xenomai", "version": xenomai.strip(), "for": core.strip()}
    evl = inputs.optional_output(_EVL_VERSION)
    return None if evl is None else {"name": "libevl", "version": evl.strip(), "for": "evl"}


def _real_time_core(inputs: Inputs) -> RealTimeCoreFact:
    core, version, abi = _core(inputs)
    library = _library(inputs)
    if core is None and library is None:
        raise Absent(f"this kernel has no real-time core beside Linux (no {_COBALT}, no evl device)")
    return {"core": core, "version": version, "abi": abi, "library": library}


FACTS = (
    Fact(
        "real_time_core",
        _real_time_core,
        files=(_COBALT, _EVL_ABI),
        commands=(_XENOMAI_VERSION, _XENOMAI_CORE, _EVL_VERSION),
    ),
)
