# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in the kernel of Linux: the module ``fastenough``, which writes its recording to a device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import Act, Counted, Tally
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.task import Task
from fastenough.model import BadInput, FastenoughError
from fastenough.settings import Settings

MODULE = "fastenough"
DEVICE = "/dev/fastenough"
TASKS = ("response", "periodic", "timer-handler", "timer-thread")
_WORDS = {"chip": "chip", "in": "in_line", "out": "out_line", "affinity": "cpu", "priority": "priority"}
"""Our words, and the module's own for the same."""
_DURATIONS = {"interval": ("period_ns", 1), "report": ("interval_ms", 1_000_000)}
_TIMEOUT_S = 20.0


def words(path: str, act: Act) -> str:
    """What is said to ``insmod``."""
    said = [path, f"task={act.probe}"]
    said += [f"{own}={act.parameters[name]}" for name, own in _WORDS.items() if name in act.parameters]
    for name, (own, divisor) in _DURATIONS.items():
        duration_ns = act.in_ns(name)
        if duration_ns is not None:
            said.append(f"{own}={max(1, duration_ns // divisor)}")
    if act.duration_s is not None:
        said.append(f"duration_ms={max(1, round(act.duration_s * 1000))}")
    return " ".join(said)


@dataclass(frozen=True)
class LinuxKernel:
    name: str = "linux-kernel"
    line_thread: str = ""
    """An interrupt's top half has no thread."""

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        if probe not in TASKS:
            raise BadInput(f"linux-kernel has no probe '{probe}'; use one of {', '.join(TASKS)}, or leave linux-kernel "
                           "out of the implementations")
        names = (*_WORDS, *_DURATIONS)
        unknown = next((name for name in parameters if name not in names), None)
        if unknown is not None:
            raise BadInput(f"linux-kernel has no parameter '{unknown}' for probe {probe}; use {', '.join(names)}")

    def needs(self, booted: Booted) -> None:
        booted.module(MODULE)

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        (entry,) = settings.apply("kernel-module", words(booted.module(MODULE), act))
        if entry.differs:
            raise FastenoughError(f"the module was refused: {entry.reason or 'it does not say why'}")
        with Task(booted.link, ["cat", DEVICE], act.limit_s,
                     lambda: booted.link.raised.write(DEVICE, b"stop\n"), act.silence_s) as task:
            yield task
        removed = booted.link.raised.run(["rmmod", MODULE], timeout_s=_TIMEOUT_S)
        if removed.status:
            said = removed.stderr.decode(errors="replace").strip()
            raise FastenoughError(f"the module could not be taken out: {said}")

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted | None:
        """From what the module said when it was taken out: all since it was inserted, not only what was recorded."""
        kernel_log = booted.link.run(["dmesg"]).text
        last_load = kernel_log[kernel_log.rfind("is running"):]
        said = {name: int(count) for name, count in re.findall(r"fastenough: \w+: (\w+)=(\d+)", last_load)}
        if "toggled" in said:
            return Counted(None, said["toggled"] // 2)
        return Counted(said.get("seen"), said.get("answered"), said.get("unchanged", 0))


IMPLEMENTATION = LinuxKernel()
