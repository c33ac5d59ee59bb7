# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory: size, nodes, huge pages, swap."""

from __future__ import annotations

import re
from typing import TypedDict

from fastenough.facts.fact import Fact, Inputs

_MEMINFO = "/proc/meminfo"
_HUGE = "/sys/kernel/mm/transparent_hugepage/"
_NODES = "/sys/devices/system/node/node*/cpulist"


class MemoryFact(TypedDict):
    """Sizes and number of huge pages, and the modes of transparent huge pages; None if unknown."""

    total_bytes: int | None
    swap_bytes: int | None
    huge_pages: int | None
    huge_page_bytes: int | None
    transparent_huge_pages: str | None
    transparent_huge_pages_defrag: str | None


def parse_meminfo(text: str) -> dict[str, int]:
    """Sizes in bytes, and counts."""
    values = {}
    for name, number, unit in re.findall(r"^([^:\n]+):\s+(\d+)(?: (kB))?$", text, re.MULTILINE):
        values[name] = int(number) * (1024 if unit else 1)
    return values


def chosen(text: str | None) -> str | None:
    """The selected value, in square or round brackets, in a file that lists possible values."""
    match = re.search(r"\[(\w+)\]|\((\w+)\)", text or "")
    return match[1] or match[2] if match else None


def _memory(inputs: Inputs) -> MemoryFact:
    values = parse_meminfo(inputs.text(_MEMINFO))
    return {
        "total_bytes": values.get("MemTotal"),
        "swap_bytes": values.get("SwapTotal"),
        "huge_pages": values.get("HugePages_Total"),
        "huge_page_bytes": values.get("Hugepagesize"),
        "transparent_huge_pages": chosen(inputs.get(_HUGE + "enabled")),
        "transparent_huge_pages_defrag": chosen(inputs.get(_HUGE + "defrag")),
    }


def _numa(inputs: Inputs) -> dict[str, str]:
    return {node: cpus for (node,), cpus in inputs.matching(_NODES)}


FACTS = (
    Fact("memory", _memory, files=(_MEMINFO, _HUGE + "enabled", _HUGE + "defrag")),
    Fact("numa", _numa, files=(_NODES,)),
)
