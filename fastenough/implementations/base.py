# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of implementations: start a timed act on a board, and report the counts of the board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from fastenough.board.base import Booted
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.task import Task
from fastenough.model import parameter_name
from fastenough.settings import Settings
from fastenough.units import parse_duration_ns

_SILENCE_S = 30.0


@dataclass(frozen=True)
class Act:
    """A timed act, with parameters named as on the command line and in plans.

    ``parameters``: the probe's options without dashes.  ``duration_s``: None if the bench ends it.  ``limit_s``: time
    after which it is ended in any case, 0 for never.  ``judged_ns``: the limit of its values, if one is stated.
    ``thread_name``: name of its threads, empty for the usual one.
    """

    probe: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    duration_s: float | None = None
    limit_s: float = 0.0
    judged_ns: int | None = None
    thread_name: str = ""

    @property
    def silence_s(self) -> float | None:
        """Longest time without output; None, without limit, if ``limit_s`` ends the act."""
        return None if self.limit_s else _SILENCE_S

    def in_ns(self, name: str) -> int | None:
        """A parameter that is a duration, in ns; None without it; raises ValueError for an invalid one."""
        return parse_duration_ns(str(self.parameters[name])) if name in self.parameters else None


@dataclass(frozen=True)
class Tally:
    """Counts of the first series of the board's recording, even a truncated one, and the counters of its end."""

    stored: int = 0
    lost: int = 0
    missed: int = 0
    counters: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """Edges that the board itself counted in a run, seen and answered; None for a count that it does not have."""

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
    """One implementation of the timed acts: in user space or in the kernel, on one kind of Linux.

    ``line_thread``: name of the thread on the board that serves the input line, empty without one.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> TaskKind: ...

    @property
    def line_thread(self) -> str: ...

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        """Raise BadInput, before any boot, for a probe or parameters that it never supports.

        ``known``: the probes of this installation; empty without one.
        """

    def needs(self, booted: Booted) -> None:
        """Raise NotApplicable, with the reason, on a board that does not meet its requirements."""

    def start(self, booted: Booted, act: Act, settings: Settings) -> AbstractContextManager[Task]:
        """Start the act on the board; at the end of the context it has ended, and its files and modules are removed.

        Raises BadInput for a parameter that the board refuses, NotApplicable for a missing requirement.
        """

    def counted(self, booted: Booted, act: Act, tally: Tally) -> Counted | None:
        """The board's counts after the end of the act; None without any."""


def vocabulary(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Parameters by their names in a recording's head; durations are whole nanoseconds."""
    recorded: dict[str, Value] = {}
    for name, value in parameters.items():
        try:
            recorded[parameter_name(name, is_duration=True)] = parse_duration_ns(str(value))
        except ValueError:
            recorded[parameter_name(name, is_duration=False)] = value
    return recorded
