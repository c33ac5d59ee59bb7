# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of Linux: the probe, one static program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import Act, Counted, Tally, TaskKind
from fastenough.implementations.catalogue import ProbeEntry, Value, check_parameters
from fastenough.implementations.task import Task
from fastenough.model import BadInput
from fastenough.settings import Settings
from fastenough.settings.place import LINE_THREAD


def probe_arguments(act: Act) -> list[str]:
    """The probe's command line after its own name."""
    return [act.probe, *options(act), *([f"--thread-name={act.thread_name}"] if act.thread_name else [])]


def options(act: Act) -> list[str]:
    """The arguments of a program with one act only, which it records."""
    line = []
    for name, value in act.parameters.items():
        if value is True:
            line.append(f"--{name}")
        elif value is not False:
            line.append(f"--{name}={value}")
    return [*line, *counted_at(act), how_long(act), "--record=-"]


def counted_at(act: Act) -> list[str]:
    """The probe's option for the limit at which it counts exactly; a parameter ``limit`` takes precedence."""
    return [] if act.judged_ns is None or "limit" in act.parameters else [f"--limit={act.judged_ns}ns"]


def how_long(act: Act) -> str:
    """The probe's option for its end."""
    return "--until-interrupt" if act.duration_s is None else f"--duration={max(1, round(act.duration_s * 1000))}ms"


@dataclass(frozen=True)
class LinuxUser:
    name: str = "linux-user"
    kind: TaskKind = TaskKind.LINUX_USER
    line_thread: str = LINE_THREAD

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        if known:
            check_parameters(probe, parameters, known)

    def program_on(self, booted: Booted) -> str:
        """Path of the probe for these acts on the board."""
        return booted.probe

    def needs(self, booted: Booted) -> None:
        if booted.link.which(booted.probe) is None:
            raise BadInput(f"{booted.probe}: no such program on the board; name the probe that was built for it")

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        with Task(booted.link, [booted.probe, *probe_arguments(act)], act.limit_s, silence_s=act.silence_s) as task:
            yield task

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted | None:
        """One of two toggles is a falling edge."""
        if act.probe == "periodic":
            return Counted(None, tally.stored // 2)
        overtaken = tally.lost + tally.missed
        return Counted(tally.stored + overtaken, tally.stored, overtaken)


IMPLEMENTATION = LinuxUser()
