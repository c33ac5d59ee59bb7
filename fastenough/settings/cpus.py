# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of CPUs: frequency, idle states, and which CPUs serve interrupts and run the bench."""

from __future__ import annotations

import os
from dataclasses import replace

from fastenough.facts.cpu import cpu_list, cpus_of, list_form
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import CpusPlace, FilePlace, start_ticks
from fastenough.settings.setting import Requested, Setting, Step, integer, word_of_each_cpu

_IDLE_STATES = "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/latency"
_AFFINITIES = "/proc/irq/[0-9]*/smp_affinity_list"


def _idle_latency(link: Link, requested: Requested) -> list[Step]:
    longest_us = integer("idle-latency", requested, 0, 10_000_000)
    latencies = link.glob(_IDLE_STATES)
    if not latencies:
        raise NotApplicable("the kernel manages no idle states here (no cpuidle)")
    steps: list[Step] = []
    for path in latencies:
        disable = path.removesuffix("latency") + "disable"
        cpu, state = path.split("/")[5], path.split("/")[7]
        if link.exists(disable) and int(link.read(path)) > longest_us:
            steps.append((FilePlace(disable, cpu=int(cpu[3:]), suffix=f" {state}"), "1"))
    return steps


def _online(link: Link, name: str, requested: Requested) -> set[int]:
    """The CPUs of a list such as ``0,2-3``; raises BadInput unless all of them are online."""
    try:
        cpus = set(cpu_list(str(requested)))
    except ValueError:
        cpus = set()
    if not cpus or cpus - set(cpus_of(link, "online")):
        raise BadInput(f'setting {name} = {requested!r} is not valid; use online CPUs, such as "0" or "0,2-3"')
    return cpus


def _irq_affinity(link: Link, requested: Requested) -> list[Step]:
    cpus = _online(link, "irq-affinity", requested)
    paths = link.glob(_AFFINITIES)
    if not paths:
        raise NotApplicable("the kernel does not support interrupt affinity (no /proc/irq/*/smp_affinity_list)")
    return [(FilePlace(path, suffix=f" {path.split('/')[3]}"), list_form(cpus)) for path in paths]


def _housekeeping(link: Link, requested: Requested) -> list[Step]:
    """Child processes (the probe, its load) keep the CPUs that the bench had before."""
    cpus = _online(link, "housekeeping", requested)
    if link.name != "local":
        raise NotApplicable("the bench does not run on the board")
    if link.which("taskset") is None:
        raise NotApplicable("taskset is not installed: apt-get install util-linux")
    return [(CpusPlace(os.getpid(), start_ticks(link, os.getpid()) or 0), list_form(cpus))]


_GOVERNOR = word_of_each_cpu(
    "governor",
    "frequency governor of every CPU, such as performance",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "scaling_available_governors",
    "the kernel does not control CPU frequencies here (no cpufreq driver)",
)


def _speed_of(path: str) -> str:
    """The file with the speed of the governor ``userspace``, which it keeps until another governor replaces it."""
    return path.replace("scaling_governor", "scaling_setspeed")


def _governor_steps(link: Link, requested: Requested) -> list[Step]:
    return [
        (replace(place, dependent=_speed_of(place.path)) if isinstance(place, FilePlace) else place, governor)
        for place, governor in _GOVERNOR.steps(link, requested)
    ]


SETTINGS = (
    replace(
        _GOVERNOR,
        steps=_governor_steps,
        files=(*_GOVERNOR.files, *map(_speed_of, _GOVERNOR.files)),
    ),
    word_of_each_cpu(
        "energy-preference",
        "energy preference of a CPU that chooses its own frequency, such as performance",
        "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/energy_performance_preference",
        "energy_performance_available_preferences",
        "the CPU does not choose its own frequency here (no energy_performance_preference)",
    ),
    Setting(
        "idle-latency",
        "disable idle states whose exit latency is longer than this many µs",
        _idle_latency,
        files=(_IDLE_STATES.replace("latency", "disable"),),
    ),
    Setting("irq-affinity", "CPUs that serve all movable interrupts", _irq_affinity, files=(_AFFINITIES,)),
    Setting("housekeeping", "CPUs that the bench itself runs on", _housekeeping),
)
