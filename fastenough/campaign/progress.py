# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress and expected duration of a campaign, and the matrix of its runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from fastenough.board import AS_BOOTED
from fastenough.campaign.expand import RunSpec
from fastenough.model import Outcome, Requirement

_QUIET = "none"
"""The load without a warm-up."""


@dataclass(frozen=True)
class Progress:
    """Progress of a campaign.

    ``run`` counts from 1; ``worst_ns``: maximum so far by series name; ``reasons``: why a run ended as it did.
    ``profile``: profile of the board, once it is known.  ``later_s``: part of ``remaining_s`` after the current boot or
    run.
    """

    campaign: str
    run: int
    runs: int
    spec: RunSpec
    phase: str
    remaining_s: float
    later_s: float
    worst_ns: Mapping[str, int] = field(default_factory=dict)
    run_id: str | None = None
    outcome: Outcome | None = None
    reasons: tuple[str, ...] = ()
    profile: Mapping[str, Any] | None = None


@dataclass
class _Overhead:
    """Time of steps of one kind beyond their known duration; ``guess_s`` is used until one was measured."""

    guess_s: float
    measured_s: list[float] = field(default_factory=list)

    @property
    def mean_s(self) -> float:
        known = self.measured_s or [self.guess_s]
        return sum(known) / len(known)


class Clock:
    """Estimates the remaining time; it learns the duration of a boot and the overhead of a run."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        boot, as_booted, run = _Overhead(20.0), _Overhead(0.0), _Overhead(2.5)
        self._left: list[tuple[_Overhead, float]] = []
        for (_, configuration), runs in groupby(specs, lambda spec: (spec.board, spec.configuration)):
            self._left.append((as_booted if configuration == AS_BOOTED else boot, 0.0))
            self._left += [(run, spec.duration_s + (spec.warm_up_s if spec.load != _QUIET else 0.0)) for spec in runs]
        self._begun_s: float | None = None

    def begin(self) -> None:
        """Start the next boot or run."""
        self._begun_s = time.monotonic()

    def end(self) -> None:
        """End the current boot or run."""
        overhead, known_s = self._left.pop(0)
        overhead.measured_s.append(max(0.0, self._spent_s() - known_s))
        self._begun_s = None

    def skip(self) -> None:
        """Skip the next boot or run."""
        del self._left[0]

    def _spent_s(self) -> float:
        return 0.0 if self._begun_s is None else time.monotonic() - self._begun_s

    def later_s(self) -> float:
        """Return the expected time [s] of what follows the current step."""
        return self._expected_s(self._left if self._begun_s is None else self._left[1:])

    def remaining_s(self) -> float:
        """Return the expected time [s] of all that remains."""
        now = [] if self._begun_s is None else self._left[:1]
        return max(0.0, self._expected_s(now) - self._spent_s()) + self.later_s()

    @staticmethod
    def _expected_s(steps: Sequence[tuple[_Overhead, float]]) -> float:
        return sum(overhead.mean_s + known_s for overhead, known_s in steps)


@dataclass(frozen=True)
class Row:
    """Runs that differ only in board, configuration, load and repetition.

    ``what``: probe, parameters and implementation in words; ``each_s``: measured time of each run.
    """

    what: str
    loads: tuple[str, ...]
    repeat: int
    each_s: float
    requirement: Requirement | None
    runs: int

    @property
    def measured_s(self) -> float:
        return self.runs * self.each_s


@dataclass(frozen=True)
class Matrix:
    """The rows of a plan.

    ``places``: boards with their configurations, in measuring order; ``expected_s``: estimated duration, including
    boots and the overhead of each run.
    """

    places: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    expected_s: float

    @property
    def runs(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def measured_s(self) -> float:
        return sum(row.measured_s for row in self.rows)


def matrix_of(specs: Sequence[RunSpec]) -> Matrix:
    """Return the matrix of the runs of a plan."""
    alike: dict[tuple[str, float, Requirement | None], list[RunSpec]] = {}
    for spec in specs:
        alike.setdefault((spec.what, spec.duration_s, spec.requirement), []).append(spec)
    places = tuple(dict.fromkeys((spec.board, spec.configuration) for spec in specs))
    rows = tuple(
        _row(what, each_s, requirement, runs, len(places)) for (what, each_s, requirement), runs in alike.items()
    )
    return Matrix(places, rows, Clock(specs).remaining_s())


def _row(what: str, each_s: float, requirement: Requirement | None, runs: Sequence[RunSpec], places: int) -> Row:
    loads = tuple(dict.fromkeys(spec.load for spec in runs))
    return Row(what, loads, max(1, len(runs) // (places * len(loads))), each_s, requirement, len(runs))
