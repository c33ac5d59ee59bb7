# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracing and accounting in the kernel: trace events, kprobes, BPF programs, pressure statistics."""

from __future__ import annotations

import json
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_EVENTS = "/sys/kernel/tracing/set_event"
_INSTANCES = "/sys/kernel/tracing/instances/*/set_event"
_KPROBES = "/sys/kernel/tracing/kprobe_events"
_BPF = "bpftool -j prog show"
_PRESSURE = "/proc/pressure/cpu"
_ENABLED_CGROUP_KINDS = (
    "cgroup_skb",
    "cgroup_device",
    "cgroup_sock",
    "cgroup_sock_addr",
    "cgroup_sysctl",
    "sk_filter",
    "socket_filter",
)
"""Kinds of BPF programs that systemd and container managers load for control groups; they run per packet or call."""


class TracingFact(TypedDict):
    """Enabled events, including those of instances, kprobes by name, BPF programs by kind; None if unknown."""

    events: list[str] | None
    kprobes: list[str] | None
    bpf_programs: dict[str, int] | None


def _lines(text: str | None) -> list[str] | None:
    return None if text is None else [line.strip() for line in text.splitlines() if line.strip()]


def bpf_programs(text: str) -> dict[str, int]:
    """Number of loaded programs by kind, without those of control groups; raises ValueError for malformed output."""
    counts: dict[str, int] = {}
    for program in json.loads(text):
        kind = str(program["type"])
        if kind not in _ENABLED_CGROUP_KINDS:
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _tracing(inputs: Inputs) -> TracingFact:
    events, kprobes, programs = inputs.get(_EVENTS), inputs.get(_KPROBES), inputs.optional_output(_BPF)
    if events is None and kprobes is None and programs is None:
        raise Absent("neither tracefs nor bpftool can be used here")
    events = None if events is None else "\n".join([events, *(text for _, text in inputs.matching(_INSTANCES))])
    return {
        "events": _lines(events),
        "kprobes": _lines(kprobes),
        "bpf_programs": None if programs is None else bpf_programs(programs),
    }


def _pressure(inputs: Inputs) -> bool:
    """Whether pressure stall information is collected."""
    if inputs.get("/proc/version") is None:
        raise Absent("/proc cannot be read here")
    return inputs.get(_PRESSURE) is not None


FACTS = (
    Fact("tracing", _tracing, files=(_EVENTS, _INSTANCES, _KPROBES), commands=(_BPF,), volatile=True),
    Fact("pressure_statistics", _pressure, files=(_PRESSURE, "/proc/version")),
)
