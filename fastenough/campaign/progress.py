# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a campaign stands, and how long it will still take."""

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
"""The load that has nothing to warm up."""


@dataclass(frozen=True)
class Progress:
    """Where a campaign stands.

    ``run`` counts from 1; ``worst_ns`` is the live maximum by series name; ``reasons`` say why a run ended as it did.
    ``profile``: what is known of the board, once that is.  ``later_s``: how much of what remains is not of the boot or
    the run under way.
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
    """What steps of one kind take beyond what is known of each: a guess, until one was seen."""

    guess_s: float
    seen_s: list[float] = field(default_factory=list)

    @property
    def mean_s(self) -> float:
        known = self.seen_s or [self.guess_s]
        return sum(known) / len(known)


class Clock:
    """Says how long the rest will take, learning what a boot takes, and what a run takes beyond its measuring."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        boot, found, run = _Overhead(20.0), _Overhead(0.0), _Overhead(2.5)
        self._left: list[tuple[_Overhead, float]] = []
        for (_, configuration), runs in groupby(specs, lambda spec: (spec.board, spec.configuration)):
            self._left.append((found if configuration == AS_BOOTED else boot, 0.0))
            self._left += [(run, spec.duration_s + (spec.warm_up_s if spec.load != _QUIET else 0.0)) for spec in runs]
        self._begun_s: float | None = None

    def begin(self) -> None:
        """The next boot, or the next run."""
        self._begun_s = time.monotonic()

    def end(self) -> None:
        """It has taken its time."""
        overhead, known_s = self._left.pop(0)
        overhead.seen_s.append(max(0.0, self._spent_s() - known_s))
        self._begun_s = None

    def skip(self) -> None:
        """The next one is not done at all."""
        del self._left[0]

    def _spent_s(self) -> float:
        return 0.0 if self._begun_s is None else time.monotonic() - self._begun_s

    def later_s(self) -> float:
        """How long what follows the step under way will take."""
        return self._expected_s(self._left if self._begun_s is None else self._left[1:])

    def remaining_s(self) -> float:
        """How long all will still take."""
        now = [] if self._begun_s is None else self._left[:1]
        return max(0.0, self._expected_s(now) - self._spent_s()) + self.later_s()

    @staticmethod
    def _expected_s(steps: Sequence[tuple[_Overhead, float]]) -> float:
        return sum(overhead.mean_s + known_s for overhead, known_s in steps)


@dataclass(frozen=True)
class Row:
    """Runs that differ in board, configuration, load and repetition only.

    ``what``: probe, parameters and implementation in words; ``each_s``: how long each is measured.
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
    """``places``: boards with their configurations, in the order they are measured in; ``expected_s``: with boots, and
    what is around each run, as far as that can be guessed."""

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
    """Of all runs that a plan expands into."""
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
