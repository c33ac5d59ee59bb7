# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in the kernel of Linux: the module ``fastenough``, whose banks the probe reads and records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import Act, Counted, Tally, TaskKind
from fastenough.implementations.catalogue import Parameter, ProbeEntry, Value, check_value
from fastenough.implementations.linux_user import how_long
from fastenough.implementations.task import Task
from fastenough.model import BadInput, FastenoughError
from fastenough.settings import Settings

MODULE = "fastenough"
PROBES = ("response", "periodic", "timer", "spin")
TIMER_TASKS = {"timer-handler": "timer-handler", "kernel-thread": "timer-thread"}
"""Methods of the probe ``timer`` (the first is the default), and the task of the module for each."""
_METHOD = "method"
_WORDS = {"chip": "chip", "in": "in_line", "out": "out_line", "affinity": "cpu", "priority": "priority"}
"""Names of parameters, and those of the module for the same."""
_TIMES = {"interval": "period_ns", "width": "width_ns", "window": "window_ns"}
"""Parameters that are durations; the module takes whole nanoseconds."""
_SPIN = ("affinity", "width", "window")
"""Parameters of the probe ``spin``.  It needs no priority: it reads the clock with interrupts off."""
_REPORT = "report"
"""The parameter of the probe that reads the module's banks."""
_OWN = tuple(
    Parameter(name, kind, "", (), low, high)
    for name, kind, low, high in (
        ("affinity", "integer", -1, None),
        ("priority", "integer", 1, 99),
        ("interval", "duration", 20_000, 10**9),
        ("width", "duration", 10**6, 10**8),
        ("window", "duration", 2 * 10**6, 10**9),
    )
)
"""The module's parameters and ranges, as in target/module/main.c and spin.c."""
_TIMEOUT_S = 20.0


def insmod_arguments(path: str, act: Act) -> str:
    """The arguments of ``insmod``."""
    method = str(act.parameters.get(_METHOD, next(iter(TIMER_TASKS))))
    arguments = [path, f"task={TIMER_TASKS[method] if act.probe == 'timer' else act.probe}"]
    arguments += [
        f"{module_name}={act.parameters[name]}" for name, module_name in _WORDS.items() if name in act.parameters
    ]
    arguments += [f"{module_name}={act.in_ns(name)}" for name, module_name in _TIMES.items() if name in act.parameters]
    return " ".join(arguments)


def reading(booted: Booted, act: Act) -> list[str]:
    """The command that records the values of the module's task."""
    report = [f"--{_REPORT}={act.parameters[_REPORT]}"] if _REPORT in act.parameters else []
    return [booted.probe, "kernel", *report, how_long(act), "--record=-"]


@contextmanager
def inserted(booted: Booted, settings: Settings, name: str, arguments: str) -> Iterator[None]:
    """Context in which a module is loaded; ``arguments``: its path and parameters, as for ``insmod``.

    After an error within the context, the module is removed when the settings are restored.
    """
    (entry,) = settings.apply("kernel-module", arguments)
    if entry.differs:
        raise FastenoughError(f"the module was refused: {entry.reason or 'no reason given'}")
    yield
    completed = booted.link.raised.run(["rmmod", name], timeout_s=_TIMEOUT_S)
    if completed.status:
        reason = completed.stderr.decode(errors="replace").strip()
        raise FastenoughError(f"the module cannot be removed: {reason}")


def _check_values(parameters: Mapping[str, Iterable[Value]], reader: ProbeEntry | None) -> None:
    """Raise BadInput for a value that the module refuses, or the probe that reads it (None: unknown)."""
    report = None if reader is None else reader.find(_REPORT)
    for parameter in (*_OWN, *((report,) if report else ())):
        for value in parameters.get(parameter.name, ()):
            if isinstance(value, bool):
                raise BadInput(f"{parameter.name}: a value is missing")
            check_value(parameter, value)


@dataclass(frozen=True)
class LinuxKernel:
    name: str = "linux-kernel"
    kind: TaskKind = TaskKind.LINUX_KERNEL
    line_thread: str = ""
    """An interrupt's top half has no thread."""
    module: str = MODULE
    probes: tuple[str, ...] = PROBES

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        if probe not in self.probes:
            raise BadInput(
                f"{self.name} has no probe '{probe}'; use one of {', '.join(self.probes)}, or leave "
                f"{self.name} out of the implementations"
            )
        module_parameters = _SPIN if probe == "spin" else (*_WORDS, "interval")
        names = (*module_parameters, _REPORT, *([_METHOD] if probe == "timer" else []))
        for method in map(str, parameters.get(_METHOD, ())):
            if method not in TIMER_TASKS:
                raise BadInput(f"{self.name} does not support method={method}; choose one of {', '.join(TIMER_TASKS)}")
        unsupported = next((name for name in parameters if name not in names), None)
        if unsupported is not None:
            raise BadInput(f"{self.name} has no parameter '{unsupported}' for probe {probe}; use {', '.join(names)}")
        _check_values(parameters, known.get(probe))

    def needs(self, booted: Booted) -> None:
        booted.module(self.module)

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        with (
            inserted(booted, settings, self.module, insmod_arguments(booted.module(self.module), act)),
            Task(booted.link, reading(booted, act), act.limit_s, silence_s=act.silence_s) as task,
        ):
            yield task

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted | None:
        """Counts since the module was loaded, not only those of the recording."""
        toggled = tally.counters.get("toggled_since_load")
        if toggled is not None:
            return Counted(None, toggled // 2)
        return Counted(
            tally.counters.get("seen_since_load"),
            tally.counters.get("answered_since_load"),
            tally.counters.get("unchanged_since_load") or 0,
        )


IMPLEMENTATION = LinuxKernel()
