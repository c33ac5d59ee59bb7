# SPDX-License-Identifier: GPL-2.0-or-later
"""The phases of a search after the groups: halving, confirmation and minimisation.

Halving is successive halving (Karnin, Koren, Somekh 2013): candidates that were bad by chance drop out, the others get
more trials.  Confirmation runs a recipe and the worst known load in turns, in fresh trials that did not take part
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
"""Trials of each load; the smallest p-value of eight trials against eight is 1 in 12,870."""
_FIRST_TURN_CHECKED = 4
"""After this many turns a recipe that is not ahead is dropped, which can only reduce false results."""
CHANCE_SHARES = {5: 2 / 3, CONFIRMATION_TURNS: 1 / 3}
"""Turns after which a confirmation may end, with their shares of the significance level.  The shares add up to 1, so
that two looks do not exceed the level (Bonferroni)."""
LEAST_TRIALS = 2 * min(CHANCE_SHARES)
"""Least number of trials of a confirmation; minimisation reserves them."""


@dataclass(frozen=True)
class Confirmed:
    """A recipe confirmed worse than ``reference``.  Tails are means over the fresh trials; ``p_value``: by ranks."""

    recipe: Recipe
    reference: Recipe | str
    tail: float
    reference_tail: float
    p_value: float

    @property
    def octaves(self) -> float:
        """How much worse it is, in octaves."""
        return self.tail - self.reference_tail

    @property
    def typical_ns(self) -> float:
        return typical_ns(self.tail)

    @property
    def reference_ns(self) -> float:
        return typical_ns(self.reference_tail)


def confirm(trials: TrialBudget, recipe: Recipe, reference: Recipe | str) -> TrialGenerator[Confirmed | None]:
    """Compare a recipe with the load ``reference``; None if it is not confirmed to be worse.

    A failed trial is repeated once; after a second failure the recipe is dropped.
    """
    trials.confirmations += 1
    worse: list[float] = []
    better: list[float] = []
    for turn in range(CONFIRMATION_TURNS):
        pair = [(recipe, worse), (reference, better)]
        for subject, tails in pair if turn % 2 else reversed(pair):
            tail = yield from trials.tail(subject, Phase.CONFIRMING)
            if tail is None:
                tail = yield from trials.tail(subject, Phase.CONFIRMING)
            if tail is None:
                return None
            tails.append(tail)
        if turn + 1 == _FIRST_TURN_CHECKED and fmean(worse) <= fmean(better):
            break
        p_value = chance(worse, better) if turn + 1 in CHANCE_SHARES else 1.0
        if p_value <= CHANCE_SHARES.get(turn + 1, 0.0) * level_of(trials.confirmations):
            trials.decided += 1
            return Confirmed(recipe, reference, fmean(worse), fmean(better), p_value)
    trials.decided += 1
    return None


_FINALISTS = 3
"""Candidates that remain for confirmation, one after the other."""
_MOST_TRIALS_EACH = 4


def halving_cost(candidates: int) -> int:
    """Number of trials that halving this many candidates takes."""
    total, repeats = 0, 1
    while candidates > _FINALISTS:
        total += candidates * repeats
        candidates, repeats = max(_FINALISTS, candidates // 2), min(_MOST_TRIALS_EACH, 2 * repeats)
    return total


def affordable(trials: int) -> int:
    """Number of candidates that this many trials can halve; the finalists take none."""
    return max(count for count in range(trials + _FINALISTS + 1) if halving_cost(count) <= trials)


def halve(trials: TrialBudget, candidates: Sequence[Recipe]) -> TrialGenerator[list[Recipe]]:
    """The remaining candidates, worst first, judged by fresh trials only: their selection may have been chance.

    Each round halves them and gives the rest twice as many trials as the round before.
    """
    fresh: dict[Recipe, list[float]] = {candidate: [] for candidate in candidates}
    remaining, repeats = list(fresh), 1
    while len(remaining) > _FINALISTS:
        for candidate in remaining * repeats:
            tail = yield from trials.tail(candidate, Phase.HALVING)
            fresh[candidate] += [] if tail is None else [tail]
        remaining.sort(key=lambda candidate: -mean_tail(fresh[candidate]))
        remaining, repeats = remaining[: max(_FINALISTS, len(remaining) // 2)], min(_MOST_TRIALS_EACH, 2 * repeats)
    return remaining


_EFFECT_SHARE = 0.6
"""Share of the octaves, from the known load to the worst recipe so far, that a smaller recipe must reach."""
_MOST_ATTEMPTS = 3
_PIECES = 4


class _Effect:
    """The effect that a smaller recipe must reach.  A worse recipe raises it, so that small losses do not add up."""

    def __init__(self, confirmed: Confirmed) -> None:
        self._reference, self._worst = confirmed.reference_tail, confirmed.tail

    def is_reached(self, trials: TrialBudget, recipe: Recipe, phase: Phase) -> TrialGenerator[bool]:
        """Whether two of at most three trials reach the effect; reserves the trials of a confirmation."""
        tails: list[float] = []
        bar = self._reference + _EFFECT_SHARE * (self._worst - self._reference)
        for _ in range(_MOST_ATTEMPTS):
            tail = yield from trials.tail(recipe, phase, LEAST_TRIALS)
            tails.append(float("-inf") if tail is None else tail)
            reached = sum(value >= bar for value in tails)
            if reached == 2:
                self._worst = max(self._worst, fmean(value for value in tails if value >= bar))
                return True
            if len(tails) - reached == 2:
                return False
        return False


def _chunks(recipe: Recipe, count: int, random_: random.Random) -> Iterator[frozenset[Part]]:
    """The parts, shuffled, in pieces of nearly equal size."""
    shuffled = random_.sample(recipe, len(recipe))
    return (frozenset(shuffled[number::count]) for number in range(count))


def _fewer(trials: TrialBudget, effect: _Effect, steps: list[Recipe], random_: random.Random) -> TrialGenerator[None]:
    """Remove pieces of the stressors, then smaller pieces, until none can be removed."""
    count = min(_PIECES, len(steps[-1]))
    while len(steps[-1]) > 1:
        before = len(steps[-1])
        for chunk in _chunks(steps[-1], count, random_):
            reduced = tuple(part for part in steps[-1] if part not in chunk)
            if reduced and (yield from effect.is_reached(trials, reduced, Phase.FEWER)):
                steps.append(reduced)
        if len(steps[-1]) == before and count >= before:
            return
        count = min(len(steps[-1]), count if len(steps[-1]) < before else 2 * count)


def _with_level(recipe: Recipe, place: int, parameter: int, level: int) -> Recipe:
    part = recipe[place]
    levels = (*part.levels[:parameter], level, *part.levels[parameter + 1 :])
    return *recipe[:place], replace(part, levels=levels), *recipe[place + 1 :]


def _plainer(trials: TrialBudget, effect: _Effect, steps: list[Recipe]) -> TrialGenerator[None]:
    """Reset each level to the plainest, or else halve it."""
    for place, part in enumerate(steps[-1]):
        for parameter, level in enumerate(part.levels):
            for lower in dict.fromkeys((0, level // 2) if level else ()):
                plain = _with_level(steps[-1], place, parameter, lower)
                if plain != steps[-1] and (yield from effect.is_reached(trials, plain, Phase.PLAINER)):
                    steps.append(plain)
                    break


def minimise(
    trials: TrialBudget, confirmed: Confirmed, steps: list[Recipe], random_: random.Random
) -> TrialGenerator[None]:
    """Append smaller recipes with the same effect to ``steps``, which ends with the confirmed recipe; smallest last.

    Raises BudgetSpent when only the trials of a confirmation are left; ``steps`` has the recipes so far.
    """
    effect = _Effect(confirmed)
    yield from _fewer(trials, effect, steps, random_)
    yield from _plainer(trials, effect, steps)
