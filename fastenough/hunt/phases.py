# SPDX-License-Identifier: GPL-2.0-or-later
"""The phases of a search after the groups: halving, confirmation and minimisation.

Halving is successive halving (Karnin, Koren, Somekh 2013): candidates that were bad by chance drop out, the others are
tried more often.  Confirmation runs a recipe and the worst known load in turns, in fresh trials that did not take part
in its selection.  Minimisation is delta debugging (Zeller, Hildebrandt 2002): it reduces a confirmed recipe to the
smallest one with the same effect.  Single trials are noise.  A part stays removed only if the rest reaches the effect
in two of three trials.  All steps are stored, and the smallest one that fresh trials confirm is the result, so a part
that was removed wrongly returns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from fastenough.hunt.space import Part, Recipe
from fastenough.hunt.trials import Phase, TrialBudget, TrialGenerator, chance, level_of, mean_tail, typical_ns

CONFIRMATION_TURNS = 8
"""Trials of each; the least chance that eight beside eight can show is 1 in 12,870."""
_FIRST_TURN_CHECKED = 4
"""After so many turns what is not ahead is given up: that can only make fewer false finds."""
CHANCE_SHARES = {5: 2 / 3, CONFIRMATION_TURNS: 1 / 3}
"""After how many turns a confirmation may end, and with which share of the chance that is allowed: the shares add up to
all of it, so that looking twice finds nothing more often than stated (Bonferroni)."""
LEAST_TRIALS = 2 * min(CHANCE_SHARES)
"""What a confirmation takes at least: so much is kept back while a recipe is made smaller."""


@dataclass(frozen=True)
class Confirmed:
    """``tail`` and ``beside_tail``: means over the fresh trials; ``chance``: that of so much by chance alone."""

    recipe: Recipe
    beside: Recipe | str
    tail: float
    beside_tail: float
    chance: float

    @property
    def octaves(self) -> float:
        """How much worse it is."""
        return self.tail - self.beside_tail

    @property
    def typical_ns(self) -> float:
        return typical_ns(self.tail)

    @property
    def beside_ns(self) -> float:
        return typical_ns(self.beside_tail)


def confirm(trials: TrialBudget, recipe: Recipe, beside: Recipe | str) -> TrialGenerator[Confirmed | None]:
    """None where the recipe was not shown to be worse than what it was tried beside; a trial that could not be made
    is made once more, and what fails twice is given up."""
    trials.confirmations += 1
    worse: list[float] = []
    better: list[float] = []
    for turn in range(CONFIRMATION_TURNS):
        pair = [(recipe, worse), (beside, better)]
        for subject, tails in pair if turn % 2 else reversed(pair):
            tail = yield from trials.tail(subject, Phase.CONFIRMING)
            if tail is None:
                tail = yield from trials.tail(subject, Phase.CONFIRMING)
            if tail is None:
                return None
            tails.append(tail)
        if turn + 1 == _FIRST_TURN_CHECKED and fmean(worse) <= fmean(better):
            return None
        by_chance = chance(worse, better) if turn + 1 in CHANCE_SHARES else 1.0
        if by_chance <= CHANCE_SHARES.get(turn + 1, 0.0) * level_of(trials.confirmations):
            return Confirmed(recipe, beside, fmean(worse), fmean(better), by_chance)
    return None


_FINALISTS = 3
"""So many candidates stay, for confirmation one after the other."""
_MOST_TRIALS_EACH = 4


def halving_cost(candidates: int) -> int:
    """How many trials it takes to halve so many."""
    total, each = 0, 1
    while candidates > _FINALISTS:
        total += candidates * each
        candidates, each = max(_FINALISTS, candidates // 2), min(_MOST_TRIALS_EACH, 2 * each)
    return total


def affordable(trials: int) -> int:
    """How many candidates so many trials can halve."""
    return max((each for each in range(trials + 1) if halving_cost(each) <= trials), default=0)


def halve(trials: TrialBudget, candidates: Sequence[Recipe]) -> TrialGenerator[list[Recipe]]:
    """The candidates that are left, the worst first, judged by fresh trials alone: what made one a candidate may have
    been chance.  Each round halves them, and what is left is tried twice as often as in the round before."""
    fresh: dict[Recipe, list[float]] = {candidate: [] for candidate in candidates}
    left, each = list(fresh), 1
    while len(left) > _FINALISTS:
        for candidate in left * each:
            tail = yield from trials.tail(candidate, Phase.HALVING)
            fresh[candidate] += [] if tail is None else [tail]
        left.sort(key=lambda candidate: -mean_tail(fresh[candidate]))
        left, each = left[: max(_FINALISTS, len(left) // 2)], min(_MOST_TRIALS_EACH, 2 * each)
    return left


_EFFECT_SHARE = 0.6
"""A smaller recipe must reach so much of the way, in octaves, from what is known to the worst of the recipes so far."""
_MOST_ATTEMPTS = 3
_PIECES = 4


class _Effect:
    """What must be reached; a recipe that is worse than all before it raises that, so that steps do not add up."""

    def __init__(self, confirmed: Confirmed) -> None:
        self._beside, self._worst = confirmed.beside_tail, confirmed.tail

    def kept(self, trials: TrialBudget, recipe: Recipe, phase: Phase) -> TrialGenerator[bool]:
        """Whether two of at most three trials reach it; enough trials for a confirmation are left over."""
        seen: list[float] = []
        bar = self._beside + _EFFECT_SHARE * (self._worst - self._beside)
        for _ in range(_MOST_ATTEMPTS):
            tail = yield from trials.tail(recipe, phase, LEAST_TRIALS)
            seen.append(float("-inf") if tail is None else tail)
            reached = sum(each >= bar for each in seen)
            if reached == 2:
                self._worst = max(self._worst, fmean(each for each in seen if each >= bar))
                return True
            if len(seen) - reached == 2:
                return False
        return False


def _chunks(recipe: Recipe, pieces: int, random_: random.Random) -> Iterator[frozenset[Part]]:
    """The parts in so many pieces of nearly equal size, in any order."""
    shuffled = random_.sample(recipe, len(recipe))
    return (frozenset(shuffled[piece::pieces]) for piece in range(pieces))


def _fewer(trials: TrialBudget, effect: _Effect, steps: list[Recipe], random_: random.Random) -> TrialGenerator[None]:
    """Leave out pieces of the stressors, then smaller pieces, until none can be left out."""
    pieces = min(_PIECES, len(steps[-1]))
    while len(steps[-1]) > 1:
        before = len(steps[-1])
        for chunk in _chunks(steps[-1], pieces, random_):
            rest = tuple(part for part in steps[-1] if part not in chunk)
            if rest and (yield from effect.kept(trials, rest, Phase.FEWER)):
                steps.append(rest)
        if len(steps[-1]) == before and pieces >= before:
            return
        pieces = min(len(steps[-1]), pieces if len(steps[-1]) < before else 2 * pieces)


def _with_level(recipe: Recipe, place: int, parameter: int, level: int) -> Recipe:
    part = recipe[place]
    levels = (*part.levels[:parameter], level, *part.levels[parameter + 1 :])
    return *recipe[:place], replace(part, levels=levels), *recipe[place + 1 :]


def _plainer(trials: TrialBudget, effect: _Effect, steps: list[Recipe]) -> TrialGenerator[None]:
    """Each level back to the plainest, or else half of the way there."""
    for place, part in enumerate(steps[-1]):
        for parameter, level in enumerate(part.levels):
            for lower in dict.fromkeys((0, level // 2) if level else ()):
                plain = _with_level(steps[-1], place, parameter, lower)
                if plain != steps[-1] and (yield from effect.kept(trials, plain, Phase.PLAINER)):
                    steps.append(plain)
                    break


def minimise(
    trials: TrialBudget, confirmed: Confirmed, steps: list[Recipe], random_: random.Random
) -> TrialGenerator[None]:
    """Adds to ``steps``, whose last is the confirmed recipe, what is smaller and seen to do the same, the smallest
    last.  Raises Spent where no more are left than a confirmation takes; the steps so far are there then too."""
    effect = _Effect(confirmed)
    yield from _fewer(trials, effect, steps, random_)
    yield from _plainer(trials, effect, steps)
