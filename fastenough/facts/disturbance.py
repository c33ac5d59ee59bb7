# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturbances from outside the kernel since boot: steal by the hypervisor, SMIs of the firmware."""

from __future__ import annotations

from fastenough.facts.fact import Absent, Fact, Inputs

_STAT = "/proc/stat"
_MSR = "/sys/class/msr/msr0/dev"
_CPUINFO = "/proc/cpuinfo"
_TICK_NS = 10_000_000


def parse_steal_ns(text: str) -> int:
    """Stolen time of all CPUs since boot from /proc/stat, in units of 10 ms."""
    for line in text.splitlines():
        fields = line.split()
        if fields and fields[0] == "cpu":
            return int(fields[8]) * _TICK_NS if len(fields) > 8 else 0
    raise Absent("/proc/stat has no line for all CPUs")


def _steal(inputs: Inputs) -> int:
    return parse_steal_ns(inputs.text(_STAT))


def _smi(inputs: Inputs) -> dict[str, str]:
    """Whether system management interrupts can be counted: MSR_SMI_COUNT (0x34) of Intel CPUs, read by msr."""
    cpuinfo = inputs.text(_CPUINFO)
    if "GenuineIntel" not in cpuinfo:
        raise Absent("only Intel CPUs count their SMIs")
    if _MSR not in inputs.files:
        raise Absent("the CPU counts its SMIs, but the module msr is not loaded: modprobe msr")
    return {"counter": "MSR_SMI_COUNT"}


def _uptime(inputs: Inputs) -> float:
    return float(inputs.text("/proc/uptime").split()[0])


def _load_average(inputs: Inputs) -> str:
    return inputs.text("/proc/loadavg")


FACTS = (
    Fact("steal_so_far_ns", _steal, files=(_STAT,), volatile=True),
    Fact("smi_counter", _smi, files=(_CPUINFO, _MSR)),
    Fact("uptime_s", _uptime, files=("/proc/uptime",), volatile=True),
    Fact("load_average", _load_average, files=("/proc/loadavg",), volatile=True),
    Fact(
        "boot_id",
        lambda inputs: inputs.text("/proc/sys/kernel/random/boot_id"),
        files=("/proc/sys/kernel/random/boot_id",),
        volatile=True,
    ),
)
