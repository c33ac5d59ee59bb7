# SPDX-License-Identifier: GPL-2.0-or-later
"""The extent of a hunt: a search time, or a number of trials on a deterministic board, and what follows from it.

A deterministic board repeats each trial exactly.  Search and stressors then draw the same random numbers in each hunt,
and each trial begins at another phase, so that trials of one load differ.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Protocol

from fastenough import words
from fastenough.campaign.expand import PHASES_WITHIN_NS
from fastenough.hunt.stressors import SEEDED
from fastenough.model import BadInput

AFTER_S = 30.0
"""Part of the search time that is reserved for the final run with the monitor."""
_BESIDE_S = 3.5
"""Least overhead of a trial.  Fixed loads, which come first, take less time than groups; an estimate from them would
leave no time for a confirmation."""
_LONG_S, _TURNS, _SHORT_TURNS = 900.0, 8, 4
_LEAST_TRIALS = 40
_LEAST_AFTER_FIXED = 36
"""Least number of trials after those of the fixed loads that confirms a result."""
_SEED = 1


@dataclass(frozen=True)
class HuntProgress:
    """``trials``: number made.  ``spent_s``: time since the hunt began, ``before_s`` of it before the first trial."""

    trials: int
    spent_s: float
    before_s: float

    @property
    def each_s(self) -> float:
        """Mean time of a trial; 0 before the first one."""
        return (self.spent_s - self.before_s) / self.trials if self.trials else 0.0


class HuntExtent(Protocol):
    """How far a hunt searches."""

    @property
    def identity(self) -> tuple[float, ...]:
        """What distinguishes it in the hash of a hunt."""

    @property
    def turns(self) -> int:
        """Number of recipes per trial of a group."""

    @property
    def trial_s(self) -> float:
        """Duration of a trial."""

    @property
    def stressor_options(self) -> tuple[str, ...]:
        """Options that are added to each command of stress-ng."""

    @property
    def boots_once(self) -> bool:
        """Whether one boot of the board for its profile serves all trials."""

    def require_enough(self, fixed: int) -> None:
        """Raise BadInput if it cannot confirm a result; ``fixed``: number of fixed loads."""

    def seed(self, campaign: str) -> str | int:
        """Seed of the random numbers of the search."""

    def phase_ns(self, position: int) -> int | None:
        """Phase of the trial at a position; None on boards whose trials never repeat."""

    def trials_left(self, progress: HuntProgress) -> int:
        """Number of further trials."""

    def remaining_s(self, progress: HuntProgress, left: int) -> float:
        """Estimated time until the end; ``left``: number of further trials."""


@dataclass(frozen=True)
class SearchTime:
    """The extent of a hunt on a board that does not repeat trials.  A short hunt has shorter trials."""

    budget_s: float
    stressor_options: ClassVar[tuple[str, ...]] = ()
    boots_once: ClassVar[bool] = False

    @property
    def identity(self) -> tuple[float, ...]:
        return (self.budget_s,)

    @property
    def turns(self) -> int:
        """Each turn lasts one second."""
        return _TURNS if self.budget_s >= _LONG_S else _SHORT_TURNS

    @property
    def trial_s(self) -> float:
        return float(self.turns)

    def require_enough(self, fixed: int) -> None:
        fewest_s = _LEAST_TRIALS * (_SHORT_TURNS + _BESIDE_S)
        if self.budget_s < fewest_s:
            raise BadInput(
                f"--budget: a hunt requires at least {_LEAST_TRIALS} trials; use {fewest_s / 60:.0f}m or more"
            )

    def seed(self, campaign: str) -> str | int:
        return campaign

    def phase_ns(self, position: int) -> int | None:
        return None

    def trials_left(self, progress: HuntProgress) -> int:
        each_s = max(self.turns + _BESIDE_S, progress.each_s)
        return max(0, int((self.budget_s - AFTER_S - progress.spent_s) / each_s))

    def remaining_s(self, progress: HuntProgress, left: int) -> float:
        return max(0.0, self.budget_s - progress.spent_s)


@dataclass(frozen=True)
class TrialCount:
    """The extent of a hunt on a deterministic board, where a hunt with the same arguments repeats exactly.

    Its trials are short, because its seconds take long under load, and a group has one recipe.
    """

    trials: int
    turns: ClassVar[int] = 1
    trial_s: ClassVar[float] = 0.5
    stressor_options: ClassVar[tuple[str, ...]] = SEEDED
    boots_once: ClassVar[bool] = True

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.0, self.trials)

    def require_enough(self, fixed: int) -> None:
        fewest = 2 * fixed + _LEAST_AFTER_FIXED
        if self.trials < fewest:
            loads = words.counted(fixed, "fixed load")
            raise BadInput(f"--trials {self.trials}: a hunt with {loads} requires at least {fewest} trials")

    def seed(self, campaign: str) -> str | int:
        return _SEED

    def phase_ns(self, position: int) -> int | None:
        """Drawn for each trial, so that trials of one load do not repeat."""
        return random.Random(f"{_SEED} {position}").randrange(PHASES_WITHIN_NS)

    def trials_left(self, progress: HuntProgress) -> int:
        return max(0, self.trials - progress.trials)

    def remaining_s(self, progress: HuntProgress, left: int) -> float:
        return left * progress.each_s
