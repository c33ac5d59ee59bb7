# SPDX-License-Identifier: GPL-2.0-or-later
"""From a recipe that was confirmed to the smallest that does the same (delta debugging: Zeller, Hildebrandt 2002).

Single trials are noise.  What is left out stays out only where the rest is seen to do it in two trials of three; what
noise left out wrongly comes back: all steps are kept, and the smallest that fresh trials confirm is the result.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

from fastenough.hunt.asking import Phase, TrialBudget, TrialGenerator
from fastenough.hunt.confirming import LEAST_TRIALS, Confirmed
from fastenough.hunt.space import Part, Recipe

_SHARE = 0.6
"""A smaller recipe must reach so much of the way, in octaves, from what is known to the worst of the recipes so far."""
_OUT_OF = 3
_PIECES = 4


class _Effect:
    """What must be reached; a recipe that is worse than all before it raises that, so that steps do not add up."""

    def __init__(self, confirmed: Confirmed) -> None:
        self._beside, self._worst = confirmed.beside_tail, confirmed.tail

    def kept(self, trials: TrialBudget, recipe: Recipe, phase: Phase) -> TrialGenerator[bool]:
        """Whether two of at most three trials reach it; enough trials for a confirmation are left over."""
        seen: list[float] = []
        bar = self._beside + _SHARE * (self._worst - self._beside)
        for _ in range(_OUT_OF):
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
