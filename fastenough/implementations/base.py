# SPDX-License-Identifier: GPL-2.0-or-later
"""What every implementation can do: start a timed act on a board, and say what the board counted of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from fastenough.board.base import Booted
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.task import Task
from fastenough.model.parameters import parameter_name
from fastenough.settings import Settings
from fastenough.units import parse_duration_ns

_SILENCE_S = 30.0


@dataclass(frozen=True)
class Act:
    """A timed act, in the words that command line and plans use too.

    ``parameters``: the probe's options without dashes.  ``duration_s``: None where the bench ends it.  ``limit_s``:
    when it is ended whatever happens, 0 for never.  ``judged_ns``: the limit its values are judged by, where they are.
    ``thread_name``: how its threads are called, empty for their usual name.
    """

    probe: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    duration_s: float | None = None
    limit_s: float = 0.0
    judged_ns: int | None = None
    thread_name: str = ""

    @property
    def silence_s(self) -> float | None:
        """How long the board may say nothing: where it is ended anyway, for ever."""
        return None if self.limit_s else _SILENCE_S

    def in_ns(self, name: str) -> int | None:
        """A duration among the parameters; raises ValueError for what is none."""
        return parse_duration_ns(str(self.parameters[name])) if name in self.parameters else None


@dataclass(frozen=True)
class Tally:
    """What the first series of the board's recording holds, cut off or not, and the counters in its end."""

    stored: int = 0
    lost: int = 0
    missed: int = 0
    counters: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """What the board counted itself of a run: edges seen and answered; None where it has no such count."""

    seen: int | None
    answered: int | None
    overtaken: int = 0


class TaskKind(StrEnum):
    """Where a measured task runs, as far as the flowchart of ``advise`` distinguishes it."""

    LINUX_USER = "in user space of Linux"
    LINUX_KERNEL = "in the Linux kernel"
    CORE_USER = "in user space of a real-time core beside Linux"
    CORE_KERNEL = "in the kernel, on a real-time core beside Linux"


class Implementation(Protocol):
    """One way of doing the timed acts: in user space or in the kernel, of one kind of Linux.

    ``line_thread``: how the thread that serves its input line is called on the board, empty where there is none.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> TaskKind: ...

    @property
    def line_thread(self) -> str: ...

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        """Raises BadInput for what it never can do, before anything is booted.

        ``known``: what the probe of this installation can do; empty where there is none.
        """

    def needs(self, booted: Booted) -> None:
        """Raises NotApplicable, with the reason, on a board that lacks what it needs."""

    def start(self, booted: Booted, act: Act, settings: Settings) -> AbstractContextManager[Task]:
        """The act on the board, recording; ended, with all that was put there for it, when the context is left.

        Raises BadInput for what the board refuses, NotApplicable for what it does not have.
        """

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted | None:
        """The board's counts once the act has ended; None if it has none."""


def vocabulary(parameters: Mapping[str, Value]) -> dict[str, Any]:
    """Parameters as a recording's head has them: durations as whole nanoseconds."""
    told: dict[str, Any] = {}
    for name, value in parameters.items():
        try:
            told[parameter_name(name, is_duration=True)] = parse_duration_ns(str(value))
        except ValueError:
            told[parameter_name(name, is_duration=False)] = value
    return told
