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
from importlib import import_module
from statistics import fmean
from typing import Any, TypeVar

from fastenough.hunt.space import Recipe

Subject = tuple[Recipe, ...] | str
"""The load of one trial: one recipe, several recipes in turns of equal length, or a fixed load by name."""


class Phase(StrEnum):
    """The purpose of a trial."""

    FIXED = "fixed loads"
    GROUPS = "groups"
    HALVING = "halving"
    CONFIRMING = "confirming"
    FEWER = "fewer stressors"
    PLAINER = "plainer parameters"


@dataclass(frozen=True)
class TrialRequest:
    """A requested trial.  ``found_ns``: typical maximum of the latest confirmed recipe; None before the first one."""

    subject: Subject
    phase: Phase
    found_ns: float | None = None


@dataclass(frozen=True)
class TrialResult:
    """``block_maxima_ns``: empty if the trial failed.  ``left``: number of trials that still fit into the budget."""

    block_maxima_ns: Sequence[int]
    left: int


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial.  ``block_maxima_ns``: as in its result; ``run``: its run id."""

    ask: TrialRequest
    block_maxima_ns: Sequence[int]
    run: str


Result = TypeVar("Result")
TrialGenerator = Generator[TrialRequest, TrialResult, Result]


class BudgetSpent(Exception):
    """The budget does not allow another trial."""


@dataclass
class TrialBudget:
    """``left``: trials that remain.  ``found_ns``: see :class:`TrialRequest`.  ``confirmations``: number begun;
    ``decided``: number of these that compared the loads, instead of ending with a failed trial or the budget."""

    left: int
    found_ns: float | None = None
    confirmations: int = 0
    decided: int = 0

    def make(self, subject: Subject, phase: Phase, spare: int = 0) -> TrialGenerator[Sequence[int]]:
        """Request one trial; returns the maxima of its blocks, empty if it failed.

        Raises BudgetSpent if no more than ``spare`` trials are left.
        """
        if self.left <= spare:
            raise BudgetSpent
        answer = yield TrialRequest(subject, phase, self.found_ns)
        self.left = answer.left
        return answer.block_maxima_ns

    def tail(self, subject: Recipe | str, phase: Phase, spare: int = 0) -> TrialGenerator[float | None]:
        """Request one trial of one load; returns its tail, None if it failed."""
        maxima = yield from self.make(subject if isinstance(subject, str) else (subject,), phase, spare)
        return tail_of(maxima) if maxima else None


def mean_tail(tails: Sequence[float]) -> float:
    """Mean of the tails; minus infinity without any, so that loads whose trials failed are no candidates."""
    return fmean(tails) if tails else float("-inf")


LEVEL = 0.05
"""Upper bound on the rate of false results, over all confirmations of a search together."""


def tail_of(block_maxima_ns: Sequence[int]) -> float:
    """Mean of the base-2 logarithms of the block maxima, in octaves of ns."""
    return fmean(math.log2(max(1, value)) for value in block_maxima_ns)


def typical_ns(tail: float) -> float:
    """A tail as a time in ns."""
    return math.exp2(tail)


def level_of(confirmation: int) -> float:
    """Significance level of a confirmation, counted from 1; decreases, since repeated tests find something."""
    return LEVEL * 6 / (math.pi * confirmation) ** 2


def chance(worse: Sequence[float], better: Sequence[float]) -> float:
    """The p-value of ``worse`` being greater than ``better``, if both come from the same distribution.

    The exact one-sided test of Wilcoxon (1945) and of Mann and Whitney (1947).  A trial is one value, so blocks within
    a trial may depend on one another.
    """
    stats: Any = import_module("scipy.stats")  # takes half a second: only where two recipes are compared
    test = stats.mannwhitneyu(worse, better, alternative="greater", method="exact")
    return float(test.pvalue)
