# SPDX-License-Identifier: GPL-2.0-or-later
"""How a search asks for trials: it yields what is to be tried, and is sent what was seen.

A search is a function of what it was sent and of its random numbers: sent the same answers again, it asks for the same
trials again.  So it goes on, after whatever cut it short, where it was.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TypeVar

from fastenough.hunt.space import Recipe
from fastenough.hunt.tail import tail_of

Subject = tuple[Recipe, ...] | str
"""What one trial tries: recipes in turns of equal length, a single one as a rule, or a fixed load by its name."""


class Phase(StrEnum):
    """What a trial is for."""

    FIXED = "fixed loads"
    GROUPS = "groups"
    HALVING = "halving"
    CONFIRMING = "confirming"
    FEWER = "fewer stressors"
    PLAINER = "plainer parameters"


@dataclass(frozen=True)
class TrialRequest:
    """``found_ns``: the typical worst of what was confirmed so far, None where nothing was."""

    subject: Subject
    phase: Phase
    found_ns: float | None = None


@dataclass(frozen=True)
class TrialResult:
    """``block_maxima_ns``: empty where the trial could not be made.  ``left``: for how many more there is time."""

    block_maxima_ns: Sequence[int]
    left: int


@dataclass(frozen=True)
class FinishedTrial:
    """A trial that was made.  ``block_maxima_ns``: as in its answer; ``run``: its recording."""

    ask: TrialRequest
    block_maxima_ns: Sequence[int]
    run: str


Result = TypeVar("Result")
TrialGenerator = Generator[TrialRequest, TrialResult, Result]


class BudgetSpent(Exception):
    """There is no time for another trial."""


@dataclass
class TrialBudget:
    """``left``: how many can still be made.  ``found_ns``: see Ask.  ``confirmations``: how many were begun."""

    left: int
    found_ns: float | None = None
    confirmations: int = 0

    def make(self, subject: Subject, phase: Phase, spare: int = 0) -> TrialGenerator[Sequence[int]]:
        """One trial; the blocks' maxima, none where it could not be made.

        Raises Spent where no more than ``spare`` are left.
        """
        if self.left <= spare:
            raise BudgetSpent
        answer = yield TrialRequest(subject, phase, self.found_ns)
        self.left = answer.left
        return answer.block_maxima_ns

    def tail(self, subject: Recipe | str, phase: Phase, spare: int = 0) -> TrialGenerator[float | None]:
        """The tail of one trial of one thing; None where it could not be made."""
        maxima = yield from self.make(subject if isinstance(subject, str) else (subject,), phase, spare)
        return tail_of(maxima) if maxima else None


def mean_tail(tails: Sequence[float]) -> float:
    """Minus infinity where there is none: what could not be tried is no candidate."""
    return fmean(tails) if tails else float("-inf")
