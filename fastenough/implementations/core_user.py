# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of a real-time core beside Linux: its probe, with the parameters of ``linux-user``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from fastenough.board.base import Booted
from fastenough.implementations.base import Act, TaskKind
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.linux_kernel import inserted
from fastenough.implementations.linux_user import LinuxUser, probe_arguments
from fastenough.implementations.task import Task
from fastenough.model import BadInput, NotApplicable
from fastenough.settings import Settings

PROBES = ("timer", "response", "periodic")


@dataclass(frozen=True)
class CoreUser(LinuxUser):
    """``core``: a file that exists if the kernel has the core; ``without``: the reason if it does not.  ``platform``:
    that of the probe.  ``lines``: the folder of the chips that the core supports, ``module``: our driver, which adds a
    chip to them.  ``choices``: the values of parameters that differ from those on Linux.  ``line_thread``: empty,
    because the core's interrupt handler wakes the task.
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
                raise BadInput(f"{self.name} does not support {name}={unknown}; choose one of {', '.join(choices)}")
        linux_parameters = {name: values for name, values in parameters.items() if name not in self.choices}
        super().check(probe, linux_parameters, known)

    def needs(self, booted: Booted) -> None:
        if not booted.link.exists(self.core):
            raise NotApplicable(self.without)
        if booted.link.which(self.program) is None:
            raise NotApplicable(
                f"the board has no {self.program}; build it with meson "
                f"-Dprobe_platform={self.platform} and put it into the board's PATH"
            )

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        with (
            self._with_lines(booted, act, settings),
            Task(booted.link, [self.program, *probe_arguments(act)], act.limit_s, silence_s=act.silence_s) as task,
        ):
            yield task

    def _with_lines(self, booted: Booted, act: Act, settings: Settings) -> AbstractContextManager[None]:
        """Context in which the core has the lines of the chip, by our driver if no other one provides them."""
        chip = act.parameters.get("chip")
        if chip is None or booted.link.exists(f"{self.lines}/{chip}"):
            return nullcontext()
        return inserted(booted, settings, self.module, f"{booted.module(self.module)} chip={chip}")
