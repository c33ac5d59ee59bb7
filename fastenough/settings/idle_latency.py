# SPDX-License-Identifier: GPL-2.0-or-later
"""How deeply a CPU may sleep."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step, integer

_STATES = "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/latency"


def _steps(link: Link, requested: Requested) -> list[Step]:
    longest_us = integer("idle-latency", requested, 0, 10_000_000)
    latencies = link.glob(_STATES)
    if not latencies:
        raise NotApplicable("the kernel manages no idle states here (no cpuidle)")
    steps: list[Step] = []
    for path in latencies:
        disable = path.removesuffix("latency") + "disable"
        cpu, state = path.split("/")[5], path.split("/")[7]
        if link.exists(disable) and int(link.read(path)) > longest_us:
            steps.append((FilePlace(disable, cpu=int(cpu[3:]), suffix=f" {state}"), "1"))
    return steps


SETTING = Setting(
    "idle-latency",
    "disables every idle state that takes longer to leave than so many µs",
    _steps,
    files=(_STATES.replace("latency", "disable"),),
)
