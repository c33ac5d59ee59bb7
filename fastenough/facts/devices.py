# SPDX-License-Identifier: GPL-2.0-or-later
"""Autonomous activity of devices and drivers: interrupt coalescing, polling for memory errors, link power."""

from __future__ import annotations

import re
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs
from fastenough.facts.memory import chosen

_COALESCING = "ethtool -c *"
_EDAC = "/sys/module/edac_core/parameters/edac_mc_poll_msec"
_CONTROLLERS = "/sys/devices/system/edac/mc/mc*/mc_name"
_ASPM = "/sys/module/pcie_aspm/parameters/policy"


class CoalescingFact(TypedDict):
    """Whether reception is adaptive, and µs and frames by which an interrupt is delayed; None if unknown."""

    adaptive: bool
    rx_us: int | None
    rx_frames: int | None


class MemoryErrorFact(TypedDict):
    """Memory controllers polled for errors by the kernel, and the polling interval; None if unknown."""

    controllers: list[str]
    poll_ms: int | None


def parse_coalescing(text: str) -> dict[str, CoalescingFact]:
    """The interrupt coalescing of each interface in the output of ethtool."""
    interfaces: dict[str, CoalescingFact] = {}
    for block in re.split(r"^Coalesce parameters for ", text, flags=re.MULTILINE)[1:]:
        name = block.partition(":")[0].strip()
        adaptive = re.search(r"^Adaptive RX: (\S+)", block, re.MULTILINE)
        pairs = re.findall(r"^(rx-usecs|rx-frames):\s+(\d+)$", block, re.MULTILINE)
        numbers = {key: int(value) for key, value in pairs}
        interfaces[name] = {
            "adaptive": adaptive is not None and adaptive[1] == "on",
            "rx_us": numbers.get("rx-usecs"),
            "rx_frames": numbers.get("rx-frames"),
        }
    return interfaces


def _coalescing(inputs: Inputs) -> dict[str, CoalescingFact]:
    return parse_coalescing(inputs.output(_COALESCING))


def _memory_errors(inputs: Inputs) -> MemoryErrorFact:
    controllers, poll_ms = sorted(name for _, name in inputs.matching(_CONTROLLERS)), inputs.number(_EDAC)
    if not controllers and poll_ms is None:
        raise Absent("no driver of a memory controller is loaded (EDAC)")
    return {"controllers": controllers, "poll_ms": poll_ms}


def _link_power(inputs: Inputs) -> str | None:
    return chosen(inputs.text(_ASPM))


FACTS = (
    Fact("interrupt_coalescing", _coalescing, commands=(_COALESCING,)),
    Fact("memory_error_polling", _memory_errors, files=(_EDAC, _CONTROLLERS)),
    Fact("pcie_link_power", _link_power, files=(_ASPM,)),
)
