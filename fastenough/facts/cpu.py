# SPDX-License-Identifier: GPL-2.0-or-later
"""The processor: model, number, topology, and flags related to timing."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Fact, Inputs
from fastenough.link import Link
from fastenough.model import FastenoughError

_CPUINFO = "/proc/cpuinfo"
_ONLINE = "/sys/devices/system/cpu/online"
_TOPOLOGY = "/sys/devices/system/cpu/cpu*/topology/{}"
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities/*"
_MODEL_KEYS = ("model name", "cpu model", "uarch", "Processor", "cpu", "isa")
_FLAG_KEYS = ("flags", "Features", "features", "ASEs implemented", "isa")
_OF_INTEREST = {
    "aperfmperf",
    "arat",
    "constant_tsc",
    "ht",
    "hypervisor",
    "nonstop_tsc",
    "rdtscp",
    "tsc",
    "tsc_adjust",
    "tsc_deadline_timer",
    "tsc_known_freq",
    "tsc_reliable",
    "evtstrm",
    "lpae",
    "ecv",
    "sstc",
    "nopl",
    "rtm",
    "hle",
}
_ARM_PARTS = {
    0x926: "ARM926",
    0xB76: "ARM1176",
    0xC05: "Cortex-A5",
    0xC07: "Cortex-A7",
    0xC08: "Cortex-A8",
    0xC09: "Cortex-A9",
    0xC0E: "Cortex-A17",
    0xC0F: "Cortex-A15",
    0xD01: "Cortex-A32",
    0xD03: "Cortex-A53",
    0xD04: "Cortex-A35",
    0xD05: "Cortex-A55",
    0xD07: "Cortex-A57",
    0xD08: "Cortex-A72",
    0xD09: "Cortex-A73",
    0xD0A: "Cortex-A75",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse-N1",
    0xD0D: "Cortex-A77",
    0xD40: "Neoverse-V1",
    0xD41: "Cortex-A78",
    0xD42: "Cortex-A78AE",
    0xD49: "Neoverse-N2",
}
"""Main ID register part numbers of Arm Limited (implementer 0x41), from its technical reference manuals."""


MOST_CPUS = 1 << 16
"""Upper bound of the number of CPUs: a damaged list must not fill the memory."""


class CpuFact(TypedDict):
    """The processor; ``topology``: CPUs by ``core`` (SMT siblings) and by ``package``; None if unknown."""

    architecture: str | None
    model: str | None
    models: list[str]
    vendor: str | None
    revision: str | None
    board_name: str | None
    count: int
    smt: bool | None
    microcode: str | None
    flags: list[str]
    topology: dict[str, list[list[int]]]


def cpu_list(text: str) -> list[int]:
    """CPU numbers of a kernel list such as ``0-3,8``; raises ValueError for an invalid one."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if int(last or first) >= MOST_CPUS:
            raise ValueError(f"CPU {int(last or first)}: no machine has so many")
        cpus.extend(range(int(first), int(last or first) + 1))
        if len(cpus) > MOST_CPUS:
            raise ValueError(f"more than {MOST_CPUS} CPUs: no machine has so many")
    return cpus


def cpus_of(link: Link, which: str) -> list[int]:
    """The CPUs of a board that are ``online`` or ``present``; raises OSError, FastenoughError for a bad list."""
    try:
        return cpu_list(link.read(f"/sys/devices/system/cpu/{which}").decode(errors="replace"))
    except ValueError as error:
        raise FastenoughError(f"{link.name}: its kernel does not say which CPUs are {which}: {error}") from error


def list_form(cpus: set[int]) -> str:
    """CPU numbers as the kernel lists them: runs joined by a dash."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def parse_cpuinfo(text: str) -> list[dict[str, str]]:
    """The blocks of /proc/cpuinfo, one per processor; other lines (board names) are a separate block."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return [
        {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
        for block in blocks
    ]


def arm_model(block: dict[str, str]) -> str | None:
    """The core's name from implementer and part, or the numbers if the name is unknown."""
    if "CPU part" not in block:
        return None
    implementer, part = int(block["CPU implementer"], 0), int(block["CPU part"], 0)
    name = _ARM_PARTS.get(part) if implementer == 0x41 else None
    return name or f"implementer {implementer:#04x} part {part:#05x}"


def _model(blocks: list[dict[str, str]]) -> str | None:
    for block in blocks:
        named = arm_model(block) or next((block[key] for key in _MODEL_KEYS if block.get(key)), None)
        if named:
            return named
    return None


def _models(blocks: list[dict[str, str]]) -> list[str]:
    """Every kind of core, for boards that mix them."""
    return sorted({named for block in blocks if "processor" in block and (named := _model([block]))})


def _first(blocks: list[dict[str, str]], *keys: str) -> str | None:
    return next((block[key] for block in blocks for key in keys if block.get(key)), None)


def _topology(inputs: Inputs) -> dict[str, list[list[int]]]:
    """CPUs by what they share: ``core`` (SMT siblings) and ``package``, each a list of groups."""
    groups = {}
    for name, file in (("core", "thread_siblings_list"), ("package", "core_siblings_list")):
        lists = {content for _, content in inputs.matching(_TOPOLOGY.format(file)) if content}
        cpu_list(",".join(lists))  # raises ValueError for groups with more CPUs in all than a machine has
        groups[name] = sorted(cpu_list(content) for content in lists)
    return groups


def _cpu(inputs: Inputs) -> CpuFact:
    blocks = parse_cpuinfo(inputs.text(_CPUINFO))
    flags = set((_first(blocks, *_FLAG_KEYS) or "").split())
    flags |= {extension for flag in flags if flag.startswith("rv") for extension in flag.split("_")}
    online = inputs.get(_ONLINE)
    count = len(cpu_list(online)) if online else sum("processor" in block for block in blocks)
    return {
        "architecture": inputs.get("/proc/sys/kernel/arch"),
        "model": _model(blocks),
        "models": _models(blocks),
        "vendor": _first(blocks, "vendor_id", "vendor", "mvendorid"),
        "revision": _first(blocks, "stepping", "CPU revision", "revision", "mimpid"),
        "board_name": _first(blocks, "Hardware", "machine", "system type", "platform"),
        "count": count,
        "smt": {"1": True, "0": False}.get(inputs.get("/sys/devices/system/cpu/smt/active") or ""),
        "microcode": _first(blocks, "microcode"),
        "flags": sorted(flags & _OF_INTEREST),
        "topology": _topology(inputs),
    }


def _vulnerabilities(inputs: Inputs) -> dict[str, str]:
    return {name: content for (name,), content in inputs.matching(_VULNERABILITIES)}


def _isolation(inputs: Inputs) -> dict[str, str | None]:
    names = ("online", "offline", "isolated", "nohz_full")
    return {name: inputs.get(f"/sys/devices/system/cpu/{name}") for name in names}


FACTS = (
    Fact(
        "cpu",
        _cpu,
        files=(
            _CPUINFO,
            _ONLINE,
            "/proc/sys/kernel/arch",
            "/sys/devices/system/cpu/smt/active",
            _TOPOLOGY.format("thread_siblings_list"),
            _TOPOLOGY.format("core_siblings_list"),
        ),
    ),
    Fact(
        "cpu_isolation",
        _isolation,
        files=tuple(f"/sys/devices/system/cpu/{name}" for name in ("online", "offline", "isolated", "nohz_full")),
    ),
    Fact("vulnerabilities", _vulnerabilities, files=(_VULNERABILITIES,)),
)
