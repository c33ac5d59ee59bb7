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
from fastenough.model import Outcome

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
