# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials of a hunt: the requests of a search, their results, and the tail of one trial as one number.

A search is a generator: it yields trial requests and is sent their results.  It depends only on these results and on
its random numbers.  After an interruption, the same results bring it back to the same state.

The tail of a trial is the mean of the logarithms of the maxima of short blocks of time: the typical maximum of a block.
A trial has too few values for a high quantile: the 99.9 % quantile of 3,000 values is the fourth greatest value, and
four values may come from one stall.  The maxima of twelve blocks are twelve values, and a stall counts once.  A single
outlier contributes a twelfth of its octaves and does not decide; a latency that recurs does.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TypeVar

from scipy.stats import mannwhitneyu

from fastenough.hunt.space import Recipe

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


LEVEL = 0.05
"""At most so often anything is found that is no worse, in all confirmations of a search together."""


def tail_of(block_maxima_ns: Sequence[int]) -> float:
    """In octaves of ns: the mean of the logarithms, to the base of 2, of what was worst in each block."""
    return fmean(math.log2(max(1, value)) for value in block_maxima_ns)


def typical_ns(tail: float) -> float:
    """A tail as a time."""
    return math.exp2(tail)


def level_of(confirmation: int) -> float:
    """Which chance is small enough in one, counted from 1: fewer each time, since looking often finds something."""
    return LEVEL * 6 / (math.pi * confirmation) ** 2


def chance(worse: Sequence[float], better: Sequence[float]) -> float:
    """How likely tails are to lie so far above the others by chance, if both come from one distribution.

    The exact one-sided test of Wilcoxon (1945) and of Mann and Whitney (1947).  A trial is one value of it: blocks
    within a trial may depend on one another as they like.
    """
    found = mannwhitneyu(worse, better, alternative="greater", method="exact")
    return float(found.pvalue)
