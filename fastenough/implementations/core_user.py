# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of a real-time core beside Linux: the probe built for it, with the words of ``linux-user``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from fastenough.board.base import Booted
from fastenough.implementations.base import Act, TaskKind
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.linux_kernel import inserted
from fastenough.implementations.linux_user import LinuxUser, words
from fastenough.implementations.task import Task
from fastenough.model import BadInput, NotApplicable
from fastenough.settings import Settings

PROBES = ("timer", "response", "periodic")


@dataclass(frozen=True)
class CoreUser(LinuxUser):
    """``core``: a file that exists if the kernel has the core; ``without``: the reason if it does not. ``platform``: of
    the probe.  ``lines``: the folder of the chips that the core knows, ``module``: our driver that makes one known to
    it.  ``choices``: what a parameter may be where Linux knows others.  ``line_thread``: the core's own interrupt
    handler wakes the task, so there is no thread.
    """

    name: str = ""
    kind: TaskKind = TaskKind.CORE_USER
    line_thread: str = ""
    core: str = ""
    without: str = ""
    platform: str = ""
    lines: str = ""
    module: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def program(self) -> str:
        return f"fastenough-probe-{self.platform}"

    def program_on(self, booted: Booted) -> str:
        return self.program

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        if probe not in PROBES:
            raise BadInput(
                f"{self.name} has no probe '{probe}'; use one of {', '.join(PROBES)}, or leave {self.name} "
                "out of the implementations"
            )
        for name, choices in self.choices.items():
            unknown = next((value for value in map(str, parameters.get(name, ())) if value not in choices), None)
            if unknown is not None:
                raise BadInput(f"{name}={unknown} is none of {self.name}'s; choose one of {', '.join(choices)}")
        others = {name: values for name, values in parameters.items() if name not in self.choices}
        super().check(probe, others, known)

    def needs(self, booted: Booted) -> None:
        if not booted.link.exists(self.core):
            raise NotApplicable(self.without)
        if booted.link.which(self.program) is None:
            raise NotApplicable(
                f"there is no {self.program} on the board; build it with meson "
                f"-Dprobe_platform={self.platform} and put it into the board's PATH"
            )

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        with (
            self._known(booted, act, settings),
            Task(booted.link, [self.program, *words(act)], act.limit_s, silence_s=act.silence_s) as task,
        ):
            yield task

    def _known(self, booted: Booted, act: Act, settings: Settings) -> AbstractContextManager[None]:
        """Makes the chip's lines known to the core, where no driver of its own has."""
        chip = act.parameters.get("chip")
        if chip is None or booted.link.exists(f"{self.lines}/{chip}"):
            return nullcontext()
        return inserted(booted, settings, self.module, f"{booted.module(self.module)} chip={chip}")
