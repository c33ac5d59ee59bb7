# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel: build, preemption model and command line."""

from __future__ import annotations

import hashlib
import re
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_RELEASE = "/proc/sys/kernel/osrelease"
_VERSION = "/proc/sys/kernel/version"
_REALTIME = "/sys/kernel/realtime"
_PREEMPT_DEBUG = "/sys/kernel/debug/sched/preempt"
_CMDLINE = "/proc/cmdline"
_NOTES = "/sys/kernel/notes"
_CONFIGS = ("/proc/config.gz", "/boot/config-*", "/lib/modules/*/config")

_OF_INTEREST = re.compile(
    r"CONFIG_(PREEMPT\w*|HZ(_\w+)?|NO_HZ\w*|HIGH_RES_TIMERS|RCU_\w+|IRQ_FORCED_THREADING|CPU_IDLE|CPU_FREQ|"
    r"CPU_ISOLATION|TRANSPARENT_HUGEPAGE\w*|SCHED_MC|SCHED_SMT|NUMA_BALANCING|SMP|PARAVIRT|HYPERVISOR_GUEST|"
    r"DEBUG_PREEMPT|DEBUG_LOCKDEP|PROVE_LOCKING|LATENCYTOP|KASAN|KCSAN|FUNCTION_TRACER|IRQSOFF_TRACER|"
    r"PREEMPT_TRACER|TIMERLAT_TRACER|OSNOISE_TRACER|HWLAT_TRACER|XENOMAI|EVL|DOVETAIL|IPIPE)$"
)


_BUILD_ID = re.compile(rb"(?:\x04\0{3}(?P<little>.)\0{3}\x03\0{3}|\0{3}\x04\0{3}(?P<big>.)\0{3}\x03)GNU\0", re.DOTALL)
"""Header of the ELF note NT_GNU_BUILD_ID in either byte order: size of the name, size of the ID, type, name."""


class KernelFact(TypedDict):
    """Release, version, preemption model, taint and build ID (in hexadecimal), None if unknown.

    The linker makes the build ID from the content of the kernel: two builds of one release differ in it.
    """

    release: str
    version: str
    preemption: str
    tainted: int | None
    build_id: str | None


class KernelConfigFact(TypedDict):
    """Hash of the configuration, the options that affect latency, and all that are set as name=value."""

    sha256: str
    of_interest: dict[str, str]
    set: list[str]


def parse_preemption(version: str, realtime: str | None, chosen: str, options: dict[str, str]) -> str:
    """The preemption model in effect: preempt-rt, preempt, lazy, voluntary or none; stock if only that is known.

    A dynamic kernel chooses at boot: ``chosen`` holds debugfs' answer in round brackets or the command line; of
    several ``preempt=`` the last counts, and a kernel that is not dynamic ignores them all.
    """
    if realtime == "1" or re.search(r"PREEMPT[ _]RT", version):
        return "preempt-rt"
    named = re.findall(r"\((\w+)\)", chosen)
    dynamic = "PREEMPT_DYNAMIC" in version or options.get("CONFIG_PREEMPT_DYNAMIC") == "y"
    if not named and dynamic:
        named = re.findall(r"(?:^|\s)preempt=(\w+)", chosen)
    if named:
        return "preempt" if named[-1] == "full" else named[-1]
    for option, name in (
        ("PREEMPT", "preempt"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ):
        if options.get(f"CONFIG_{option}") == "y":
            return name
    return "preempt" if "PREEMPT" in version.split() else "stock"


def parse_build_id(notes: bytes) -> str | None:
    """The build ID in the notes of a kernel, None if they have none."""
    header = _BUILD_ID.search(notes)
    if header is None:
        return None
    size = (header["little"] or header["big"])[0]
    build_id = notes[header.end() : header.end() + size]
    return build_id.hex() if len(build_id) == size > 0 else None


def parse_config(text: str) -> dict[str, str]:
    """All options that are set, by name."""
    pairs = (line.partition("=") for line in text.splitlines() if line.startswith("CONFIG_"))
    return {name: value for name, _, value in pairs}


def _config_text(inputs: Inputs) -> str:
    release = inputs.get(_RELEASE) or ""
    for path in ("/proc/config.gz", f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        text = inputs.get(path)
        if text:
            return text
    raise Absent("neither /proc/config.gz nor /boot/config-RELEASE can be read (CONFIG_IKCONFIG_PROC is off)")


def _kernel(inputs: Inputs) -> KernelFact:
    release, version = inputs.text(_RELEASE), inputs.text(_VERSION)
    try:
        options = parse_config(_config_text(inputs))
    except Absent:
        options = {}
    chosen = inputs.get(_PREEMPT_DEBUG) or inputs.get(_CMDLINE) or ""
    preemption = parse_preemption(version, inputs.get(_REALTIME), chosen, options)
    return {
        "release": release,
        "version": version,
        "preemption": preemption,
        "tainted": inputs.number("/proc/sys/kernel/tainted"),
        "build_id": parse_build_id(bytes.fromhex(inputs.get(_NOTES) or "")),
    }


def _config(inputs: Inputs) -> KernelConfigFact:
    text = _config_text(inputs)
    options = parse_config(text)
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "of_interest": {name: value for name, value in options.items() if _OF_INTEREST.match(name)},
        "set": [f"{name}={value}" for name, value in options.items()],
    }


def _cmdline(inputs: Inputs) -> str:
    return inputs.text(_CMDLINE)


def _modules(inputs: Inputs) -> list[str]:
    return sorted(line.split()[0] for line in inputs.text("/proc/modules").splitlines() if line)


FACTS = (
    Fact(
        "kernel",
        _kernel,
        files=(_RELEASE, _VERSION, _REALTIME, _PREEMPT_DEBUG, _CMDLINE, *_CONFIGS, "/proc/sys/kernel/tainted"),
        binary_files=(_NOTES,),
    ),
    Fact("kernel_config", _config, files=(_RELEASE, *_CONFIGS)),
    Fact("cmdline", _cmdline, files=(_CMDLINE,)),
    Fact("modules", _modules, files=("/proc/modules",)),
)
