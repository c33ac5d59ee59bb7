# SPDX-License-Identifier: GPL-2.0-or-later
"""Activity of the machine during a measurement (steal, SMIs, throttling, ...), and CPUs that were not measured."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.keys import ProfileFact, UnknownValue
from fastenough.facts.allowance import GROUP_NOT_MOUNTED
from fastenough.facts.cpu import cpu_list
from fastenough.model import IMPORTED, Machines
from fastenough.recording import Recording

COUNTERS = {
    "steal_ns": "time taken by the hypervisor",
    "smi": "system management interrupts",
    "clock_step_ns": "steps of the wall clock",
    "clock_sets": "settings of the wall clock",
    "suspended_ns": "time for which the machine was suspended",
    "throttled": "RT throttling stopped real-time tasks",
    "cgroup_throttled": "periods in which a control group's CPU quota was used up",
    "thermal_throttled": "times heat slowed a CPU down",
    "frequency_limited": "intervals with a lower CPU frequency limit than at the start",
    "major_faults": "major page faults",
    "minor_faults": "minor page faults",
    "migrations": "moves between CPUs",
    "involuntary_switches": "involuntary context switches",
    "voluntary_switches": "voluntary context switches",
    "core_overruns": "missed periods that a real-time core reports (their latency is charged by the clock)",
}
"""Counter name to what it counts; in the order of printing."""


_SIGNED = {"clock_step_ns"}
"""Counters that may be negative; any other one below zero went backwards."""


def counter_total(recording: Recording, name: str) -> int | None:
    """A counter over the whole run: from the end, or from the intervals of a cut-off run; None: it is not known.

    Where the intervals say more than the end, they are believed.  One that went backwards, as older probes recorded it
    when a CPU was unplugged, is not known.
    """
    over_time = recording.aggregate.counters.get(name)
    at_end = recording.end.counters.get(name) if recording.end is not None else None
    if went_backwards(recording, name):
        return None
    summed = 0 if over_time is None else over_time.sum
    if recording.end is not None:
        return (summed or None) if at_end is None else max(at_end, summed, key=abs)
    return summed if over_time is not None and over_time.known == recording.aggregate.intervals else None


def went_backwards(recording: Recording, name: str) -> bool:
    """Whether a counter that only grows is told to have become less."""
    over_time = recording.aggregate.counters.get(name)
    at_end = recording.end.counters.get(name) if recording.end is not None else None
    readings = (None if over_time is None else over_time.least, at_end)
    return name not in _SIGNED and any(value is not None and value < 0 for value in readings)


def events_of(recording: Recording, kind: str) -> int:
    """How many events of one kind were recorded."""
    return recording.aggregate.events.get(kind, 0)


def cpus_of_fact(recording: Recording, name: str) -> set[int]:
    """CPUs that the profile lists as online, offline, isolated or nohz_full; none where it does not say."""
    listed = ((recording.head.profile or {}).get("cpu_isolation") or {}).get(name)
    try:
        return set(cpu_list(str(listed or "")))
    except ValueError:
        return set()


def cpus_in_use(recording: Recording) -> set[int]:
    """The CPUs the machine had when the run began; none where the profile does not say."""
    return cpus_of_fact(recording, "online")


_PINNING_SETTINGS = ("affinity", "cpu")
"""The settings that say on which CPU a thread is to stay: of the probe's threads, and of the kernel module's."""


def pinned(recording: Recording) -> bool:
    """Whether every measuring thread was to stay on a CPU of its own."""
    requested = [setting.requested for setting in recording.head.settings if setting.name in _PINNING_SETTINGS]
    return bool(requested) and all(cpu is not None for cpu in requested)


def is_emulated(recording: Recording) -> bool:
    return "emulated" in recording.head.marks or (recording.head.profile or {}).get("emulated") is True


INSTRUCTIONS = (
    "Deterministic board: latencies count instructions of this kernel's path (1 ns each); no caches, no memory system, "
    "no hardware; for comparing kernels, settings and changes, never a verdict on a machine"
)


def counts_instructions(recording: Recording) -> bool:
    """Whether it ran on a deterministic board, whose values mean what ``INSTRUCTIONS`` says."""
    return (recording.head.profile or {}).get("emulator") is not None


def emulation_cautions(recordings: Sequence[Recording]) -> list[str]:
    """The caveat of a result from these runs if one is of an emulated machine."""
    if any(map(counts_instructions, recordings)):
        return [INSTRUCTIONS]
    return ["emulated: timing is not meaningful"] if any(map(is_emulated, recordings)) else []


def is_virtual(recording: Recording) -> bool:
    """Whether it ran on a hypervisor's guest."""
    return "virtual-machine" in recording.head.marks or bool((recording.head.profile or {}).get("hypervisor"))


def _is_unknown(recording: Recording, fact: str) -> bool:
    """Whether the profile of a board's own recording lacks a fact, or it was not read or not understood.  Another
    reason for its absence is an answer."""
    if IMPORTED in recording.head.marks or recording.head.instrument is not None:
        return False
    return isinstance(ProfileFact(fact)(recording.head, None), UnknownValue)


def may_be_virtual(recording: Recording) -> bool:
    """Whether it ran on a hypervisor's guest, or that is unknown."""
    return is_virtual(recording) or _is_unknown(recording, "hypervisor")


def may_have_quota(recording: Recording) -> bool:
    """Whether a control group had a CPU quota, or that is unknown."""
    not_mounted = ProfileFact("cpu_quota")(recording.head, None) == {"absent": GROUP_NOT_MOUNTED}
    has_quota = bool((recording.head.profile or {}).get("cpu_quota"))
    return has_quota or not_mounted or _is_unknown(recording, "cpu_quota")


VIRTUAL_UNKNOWN = "it is unknown whether it is a virtual machine, and steal time cannot be read"


def steal_text(recordings: Sequence[Recording]) -> str | None:
    """The clause that a hypervisor took CPU time, or may have; None if it took none."""
    steals = [counter_total(recording, "steal_ns") for recording in recordings]
    total_ns = sum(steal for steal in steals if steal is not None)
    if total_ns:
        return f"its hypervisor took {words.duration(total_ns)} of CPU time (steal) during the measurement"
    unread = [recording for recording, steal in zip(recordings, steals, strict=True) if steal is None]
    if unread and any(map(is_virtual, recordings)):
        return "it is a virtual machine whose steal time cannot be read"
    if any(map(may_be_virtual, unread)):
        return VIRTUAL_UNKNOWN
    before_ns = max((_stolen_before(recording) for recording in recordings), default=0)
    if before_ns:
        return (
            f"its hypervisor has taken {words.duration(before_ns)} of CPU time since boot (steal), none of it during "
            "the measurement"
        )
    return None


def _stolen_before(recording: Recording) -> int:
    """Stolen time since boot, in ns: a machine from which time is taken stays one when a short run sees none of it."""
    profile = recording.head.profile or {}
    return int(profile.get("steal_so_far_ns") or 0)


def identity_cautions(recordings: Sequence[Recording]) -> list[str]:
    """Caveats on boards with several machines, and on machines with several names."""
    machines = Machines(recording.head.machine for recording in recordings)
    numbers: dict[str, set[int]] = {}
    for recording in recordings:
        number = machines.number(recording.head.machine)
        if number is not None:
            numbers.setdefault(recording.head.board or "without a name", set()).add(number)
    cautions = [
        f"The runs of board {board} are of {len(numbers_of_board)} machines (machine ID or hardware differ); they are "
        "not merged"
        for board, numbers_of_board in numbers.items()
        if len(numbers_of_board) > 1
    ]
    for number in range(len(machines)):
        names = [board for board, machine_numbers in numbers.items() if number in machine_numbers]
        if len(names) > 1:
            cautions.append(f"Boards {', '.join(names)} are one machine; runs under different names are not merged")
    return cautions
