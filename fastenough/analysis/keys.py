# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys that must agree before samples of several runs are merged, or two runs compared, each with its reason.

One registry, which merging, comparing and the titles of reports go by; another key is one line in it.  What no key
names does not matter; of what one might expect to matter, :data:`DOES_NOT_MATTER` says why it does not.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from fastenough.analysis.costs import COST_MODEL, cost_model_of
from fastenough.facts.cpu import list_form
from fastenough.model import RUN_LENGTH, Series, is_same_machine
from fastenough.recording import Head
from fastenough.recording.head import RecordedSetting


class Forbids(StrEnum):
    """What a difference forbids; a permitted comparison lists every difference."""

    BOTH = "merging and comparing"
    MERGING = "merging"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Key:
    """``of`` takes the value from a run's head and one of its series; for a key of the run the series is None.

    Values are what JSON can hold, or :class:`UnknownValue`.  ``titled``: groups of a report are named by it where they
    differ in it.
    """

    name: str
    forbids: Forbids
    of: Callable[[Head, Series | None], Any]
    why: str
    titled: bool = False
    agree: Callable[[Any, Any], bool] = operator.eq


@dataclass(frozen=True)
class UnknownValue:
    """A value that a recording does not contain; it equals no other value, known or unknown."""

    run_id: str
    why: str

    def __str__(self) -> str:
        return f"unknown for run {self.run_id} ({self.why})"


FOR_MERGING = (Forbids.BOTH, Forbids.MERGING)
FOR_COMPARING = (Forbids.BOTH,)


# --- how keys are taken

_NO_PROFILE = "it holds no profile"
_UNKNOWN = ("not understood", "not read")
"""How the reason of a fact begins that the board may have."""
_PATH = re.compile(r"/\S+")
_TASK_NUMBER = re.compile(r" \(\d+\)\Z")
_SCRATCH = re.compile(r"fastenough-[0-9a-f]+")
_UNRELATED_TO_ACT = RUN_LENGTH | {"duration_s", "duration", "break_after_ns", "seed", "floor_ns", "limit_ns"}
_METHOD_PARAMETERS = frozenset(
    {
        "method",
        "clock",
        "dither_ns",
        "policy",
        "priority",
        "affinity",
        "cpu",
        "task",
        "chip",
        "in",
        "out",
        "way",
        "first_cpu",
        "second_cpu",
    }
)


def _head(name: str) -> Callable[[Head, Series | None], Any]:
    return lambda head, _: getattr(head, name)


def _of_series(name: str) -> Callable[[Head, Series | None], Any]:
    return lambda _, series: getattr(series, name)


@dataclass(frozen=True)
class ProfileFact:
    """A fact of the profile, or parts of one; if unavailable, the reason takes its place."""

    name: str
    parts: tuple[str, ...] = ()

    def __call__(self, head: Head, _: Series | None) -> Any:
        profile, name = head.profile, self.name
        if not profile:
            return UnknownValue(head.run_id, _NO_PROFILE)
        if name not in profile:
            return UnknownValue(head.run_id, f"its profile does not have {name}")
        reasons = profile.get("absent")
        reason = reasons.get(name) if isinstance(reasons, dict) else None
        if reason is not None:
            reason = str(reason)
            return (
                UnknownValue(head.run_id, reason) if reason.startswith(_UNKNOWN) else {"absent": _PATH.sub("", reason)}
            )
        fact = profile[name]
        return fact if not self.parts or not isinstance(fact, dict) else {part: fact.get(part) for part in self.parts}


def _fact(name: str, *parts: str) -> ProfileFact:
    return ProfileFact(name, parts)


@dataclass(frozen=True)
class _Machine(ProfileFact):
    """Identifiers of the machine; None if they are unknown, as in recordings of older versions."""

    def __call__(self, head: Head, _: Series | None) -> list[str] | None:
        return sorted(head.machine) or None


def _may_be_one_machine(first: list[str] | None, second: list[str] | None) -> bool:
    return is_same_machine(frozenset(first or ()), frozenset(second or ())) is not False


_BUILD_ID = "build_id"


def build_id_of(head: Head) -> str | None:
    """The build ID of the kernel; None if it is unknown, as in recordings of older versions."""
    kernel = (head.profile or {}).get("kernel")
    build_id = kernel.get(_BUILD_ID) if isinstance(kernel, Mapping) else None
    return build_id if isinstance(build_id, str) else None


def without_build_id(kernel: Any) -> Any:
    """A kernel by what each recording has of it."""
    return {name: part for name, part in kernel.items() if name != _BUILD_ID} if isinstance(kernel, dict) else kernel


def _may_be_one_kernel(first: Any, second: Any) -> bool:
    """Whether all parts agree; an unknown build ID agrees with every other one."""
    build_ids = [kernel.get(_BUILD_ID) if isinstance(kernel, dict) else None for kernel in (first, second)]
    return first == second or (None in build_ids and without_build_id(first) == without_build_id(second))


def _processor(head: Head, series: Series | None) -> Any:
    cpu = _fact("cpu")(head, series)
    return {name: value for name, value in cpu.items() if name != "microcode"} if isinstance(cpu, dict) else cpu


def _tunables(head: Head, series: Series | None) -> Any:
    values = _fact("tunables")(head, series)
    return (
        {name: value for name, value in values.items() if name not in _THROTTLING}
        if isinstance(values, dict)
        else values
    )


_THROTTLING = ("sched_rt_runtime_us", "sched_rt_period_us")


def parameters_of(head: Head, _: Series | None = None) -> dict[str, Any]:
    """Parameters that shape an act; its duration does not."""
    return {name: value for name, value in head.parameters.items() if name not in _UNRELATED_TO_ACT}


def _act(head: Head, _: Series | None) -> dict[str, Any]:
    return {name: value for name, value in parameters_of(head).items() if name not in _METHOD_PARAMETERS}


def agree_where_stated(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two runs agree in all parts of a value that both state."""
    return all(first[name] == second[name] for name in first.keys() & second.keys())


_CPU_SETTINGS = ("affinity", "housekeeping")
_EACH_CPU = re.compile(r"\d{1,5}(,\d{1,5})+")


def _in_effect(setting: RecordedSetting) -> str:
    """The value as compared: older probes listed each CPU, where ranges stand now."""
    value = str(setting.in_effect)
    if setting.name in _CPU_SETTINGS and _EACH_CPU.fullmatch(value):
        return list_form({int(cpu) for cpu in value.split(",")})
    return value


def _settings(head: Head, _: Series | None) -> dict[str, str]:
    """Settings in effect, by name and, for a setting of one thread or CPU, its thread or CPU.

    A thread is identified by its name, because its number changes with each boot and each start of the bench.
    """
    in_effect: dict[str, list[str]] = {}
    for setting in head.settings:
        thread = None if setting.thread is None else _TASK_NUMBER.sub("", setting.thread)
        owner = "".join(
            f" of {scope} {identity}"
            for scope, identity in (("thread", thread), ("CPU", setting.cpu))
            if identity is not None
        )
        in_effect.setdefault(f"{setting.name}{owner}", []).append(_in_effect(setting))
    return {name: " and ".join(sorted(values)) for name, values in in_effect.items()}


def _load(head: Head, _: Series | None) -> str | None:
    return None if head.load is None else head.load.name


def _load_commands(head: Head, _: Series | None) -> list[list[str]]:
    """The parameters without those of a single run: duration and temporary directory."""
    commands = () if head.load is None else head.load.commands
    return [
        [
            _SCRATCH.sub("", argument)
            for before, argument in zip(["", *command], command, strict=False)
            if before != "--timeout"
        ]
        for command in commands
    ]


_SESSION_VALUES = ("port", "calibration", "self_test")


def _instrument(head: Head, _: Series | None) -> dict[str, Any] | None:
    instrument = head.instrument
    return (
        None
        if instrument is None
        else {name: value for name, value in instrument.items() if name not in _SESSION_VALUES}
    )


def _marks(head: Head, _: Series | None) -> list[str]:
    return sorted(head.marks - {"emulated"})


def _emulated(head: Head, _: Series | None) -> bool:
    return "emulated" in head.marks


def _emulator(head: Head, _: Series | None) -> dict[str, Any] | None:
    """The emulator that counts the board's instructions; None for all other boards."""
    emulator = (head.profile or {}).get("emulator")
    if not isinstance(emulator, Mapping):
        return emulator
    return {name: value for name, value in emulator.items() if name != COST_MODEL} or None


def _cost_model(head: Head, _: Series | None) -> str | None:
    return cost_model_of(head)


def _configuration(head: Head, _: Series | None) -> str | None:
    return None if head.configuration is None else head.configuration.name


def _tick(head: Head, series: Series | None) -> int | None:
    """Nominal tick of the instrument, since the measured one changes with each calibration."""
    assert series is not None
    nominal = (head.instrument or {}).get("tick_ps")
    return series.tick_ps if series.tick_ps is None or nominal is None else nominal


def _tool(head: Head, _: Series | None) -> dict[str, Any]:
    return asdict(head.tool)


# --- the registry

MACHINE = "machine"
"""Name of the key and of the fact."""
KERNEL = "kernel"
"""Name of the key and of the fact."""

RUN_KEYS: tuple[Key, ...] = (
    Key("probe", Forbids.BOTH, _head("probe"), "another probe measures another activation", titled=True),
    Key("emulation", Forbids.BOTH, _emulated, "under emulation timing is not meaningful"),
    Key("emulator", Forbids.BOTH, _emulator, "another emulator counts other instructions for the same path"),
    Key("cost model", Forbids.BOTH, _cost_model, "another model counts other costs for the same path"),
    Key(
        "act",
        Forbids.BOTH,
        _act,
        "interval, sizes and the like define an act; only values that both runs state are compared",
        agree=agree_where_stated,
    ),
    Key("board", Forbids.MERGING, _head("board"), "two boards of one type are two machines", titled=True),
    Key(
        MACHINE,
        Forbids.MERGING,
        _Machine(MACHINE, ()),
        "one name can stand for two machines; where both runs identify theirs, one must show all hardware of the other",
        agree=_may_be_one_machine,
    ),
    Key("configuration", Forbids.MERGING, _configuration, "a verdict applies to what was booted", titled=True),
    Key(
        KERNEL,
        Forbids.MERGING,
        _fact(KERNEL, "release", "version", "preemption", _BUILD_ID),
        "the kernel decides when a task runs; where both runs have its build ID, it must agree: a release can be "
        "built several times",
        titled=True,
        agree=_may_be_one_kernel,
    ),
    Key(
        "kernel configuration",
        Forbids.MERGING,
        _fact("kernel_config", "of_interest", "sha256"),
        "one release can be built with or without options that cost latency",
    ),
    Key("command line", Forbids.MERGING, _fact("cmdline"), "isolation, idle states and mitigations are chosen there"),
    Key(
        "implementation",
        Forbids.MERGING,
        _head("implementation"),
        "user space and kernel are compared, never mixed",
        titled=True,
    ),
    Key(
        "parameters",
        Forbids.MERGING,
        parameters_of,
        "method, priority and pins affect latency; the duration does not",
        titled=True,
    ),
    Key(
        "settings",
        Forbids.MERGING,
        _settings,
        "policy, priority, affinity and the bench's settings, as in effect",
        titled=True,
    ),
    Key("load", Forbids.MERGING, _load, "each load is judged separately"),
    Key(
        "load's commands", Forbids.MERGING, _load_commands, "one name can stand for two loads, in two versions or plans"
    ),
    Key(
        "instrument",
        Forbids.MERGING,
        _instrument,
        "type, firmware and serial number: another instrument has another offset",
    ),
    Key(
        "marks",
        Forbids.MERGING,
        _marks,
        "self-measured, on a virtual machine, without real-time scheduling: each limits the trust in a number",
        titled=True,
    ),
    Key("firmware", Forbids.MERGING, _fact("firmware"), "firmware of another version has other SMIs"),
    Key("device tree", Forbids.MERGING, _fact("device_tree"), "it identifies the board"),
    Key("processor", Forbids.MERGING, _processor, "model, number of CPUs and SMT"),
    Key("microcode", Forbids.MERGING, _fact("cpu", "microcode"), "an update can change timing and mitigations"),
    Key(
        "CPUs in use",
        Forbids.MERGING,
        _fact("cpu_isolation"),
        "CPUs that are off or isolated leave their work to the others",
    ),
    Key("clock source", Forbids.MERGING, _fact("clocksource"), "reading a slow clock is part of each latency"),
    Key("clock event devices", Forbids.MERGING, _fact("clock_event_devices"), "they fire the timers"),
    Key(
        "frequency policy",
        Forbids.MERGING,
        _fact("frequency"),
        "governor and limits decide how fast a CPU is when a task wakes",
    ),
    Key("idle policy", Forbids.MERGING, _fact("idle"), "leaving a deep idle state takes up to milliseconds"),
    Key(
        "RT throttling",
        Forbids.MERGING,
        _fact("tunables", *_THROTTLING),
        "it stops real-time tasks that use up their share",
    ),
    Key("tunables", Forbids.MERGING, _tunables, "watchdogs, timer migration, tracers and the like affect latency"),
    Key(
        "huge pages and swap",
        Forbids.MERGING,
        _fact("memory", "transparent_huge_pages", "transparent_huge_pages_defrag", "huge_pages", "swap_bytes"),
        "compaction and page faults stop tasks",
    ),
    Key("hypervisor", Forbids.MERGING, _fact("hypervisor"), "a hypervisor takes time unseen"),
    Key("CPU quota", Forbids.MERGING, _fact("cpu_quota"), "a container's quota stops its tasks"),
    Key(
        "real-time budget",
        Forbids.MERGING,
        _fact("real_time_budget"),
        "a control group's budget stops its real-time tasks",
    ),
    Key("CPUs allowed", Forbids.MERGING, _fact("cpus_allowed"), "probe and load share the remaining CPUs"),
    Key("tool", Forbids.NOTHING, _tool, "another version may time the same act in another way"),
    Key(
        "packages",
        Forbids.NOTHING,
        _fact("packages", "of_interest"),
        "versions of libraries and of the programs that loads run",
    ),
    Key("modules", Forbids.NOTHING, _fact("modules"), "drivers that were loaded"),
)

SERIES_KEYS: tuple[Key, ...] = (
    Key("bytes", Forbids.BOTH, _of_series("bytes"), "transfers of different size do not compare"),
    Key("two-sided", Forbids.BOTH, _of_series("two_sided"), "a deviation in either direction is no delay"),
    Key("role", Forbids.MERGING, _of_series("role"), "judged and explaining series are never merged"),
    Key("corrected", Forbids.MERGING, _of_series("corrected"), "one counts each period due, the other each act"),
    Key("relative", Forbids.MERGING, _of_series("relative"), "due times that count from the last act drift with it"),
    Key("series", Forbids.MERGING, _of_series("name"), "another series has other events"),
    Key("unit", Forbids.MERGING, _of_series("unit"), "numbers of different units do not add"),
    Key("tick", Forbids.MERGING, _tick, "nominal length of one count of the instrument"),
    Key("resolution k", Forbids.MERGING, _of_series("k"), "buckets of different width do not add"),
    Key("clock", Forbids.MERGING, _of_series("clock"), "clocks differ in resolution and in how they are set"),
    Key("from", Forbids.MERGING, _of_series("from_event"), "the event at which a value begins"),
    Key("to", Forbids.MERGING, _of_series("to_event"), "the event at which a value ends"),
    Key("period", Forbids.MERGING, _of_series("period_ns"), "the period decides what is warm in caches"),
    Key("labels", Forbids.MERGING, _of_series("labels"), "they distinguish variants of one series"),
)
"""Keys of a series that must agree; the CPU may differ."""

_OF_SYSTEM = ("board", MACHINE, "configuration", KERNEL, "kernel configuration", "command line")
SYSTEM_KEYS = tuple(key for key in RUN_KEYS if key.name in _OF_SYSTEM)
"""Keys of what was booted, and where."""

SUBJECT_KEYS = tuple(key for key in RUN_KEYS if key.name in ("probe", *_OF_SYSTEM, "implementation"))
"""Keys of what a verdict is on, under all its loads."""

SETUP_KEYS = tuple(
    key for key in RUN_KEYS if key.forbids in FOR_MERGING and key.name not in ("load", "load's commands")
)
"""Keys that agree for runs that could be merged if they had the same load."""

KEYED_FACTS = frozenset({key.of.name for key in RUN_KEYS if isinstance(key.of, ProfileFact)})
"""Facts of a profile that the keys use, at least in part."""

DOES_NOT_MATTER: Mapping[str, str] = {
    "duration, loops": "longer runs hold more of the same",
    "limit": "counting at a limit changes no value",
    "seed": "waits, and due times with dither, are drawn from the same range with any seed",
    "phase_ns": "runs in several phases repeat one measurement, each with another coincidence of events",
    "floor_ns": "a reading of each run, in ns, subtracted already",
    "the instrument's port, calibration, self-test": "they change with each plugging in; the calibration is in the "
    "length of a tick",
    "hostname, boot_id, uptime_s, load_average, steal_so_far_ns, control_group": "they change from run to run; "
    "stolen time is counted",
    "free memory": "it changes all the time; a locked task does not wait for it",
    "process and thread numbers": "they change with each boot and each start of the bench; "
    "settings use the thread's name",
    "real_time_tasks, interrupt_threads": "numbers of processes change with each boot",
    "interrupts": "irqbalance moves them all the time; a requested affinity is among the settings",
    "kernel taint": "loading a module for one run sets it for all later runs",
    "vulnerabilities": "they follow from processor, microcode, kernel and command line",
    "os_release, container": "their effect on latency is in kernel, packages and quotas",
    "cost": "measured anew each time; it is printed beside the results",
}
