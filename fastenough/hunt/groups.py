# SPDX-License-Identifier: GPL-2.0-or-later
"""Group testing: many stressors at once, each at several levels, and the candidates that these trials suggest.

An effect that requires two stressors at certain levels never shows in a trial of one stressor, and forty stressors have
780 pairs.  One group of twenty contains 190 of them.  During a trial, each stressor of the group runs at several draws
of its levels, so one trial covers several recipes.  Each turn is short, and each stressor of a group gets a smaller
share of the machine, so effects appear weakly.  That is enough to choose candidates for further trials.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fastenough.hunt.space import Part, Recipe, Space

_RIDGE = 3.0
"""Ridge: each stressor is assumed to have been in this many additional groups without any effect.  Groups, not turns:
the turns of a group share their stressors and are little more than one observation.  With as many turns instead, the
effects of the stressors explained away the effect of a group."""
_PAIRS = 0.15
"""Share of candidates that are pairs from groups instead of whole groups."""


_DRAWS = 16
"""Groups drawn, of which the most even one is used."""


@dataclass(frozen=True)
class GroupTurn:
    """The recipe of one turn of a group, and the tail of its blocks."""

    recipe: Recipe
    tail: float


class Groups:
    """Draws groups in which every two stressors meet about equally often and all levels occur equally often.

    ``turns``: number of draws of levels per group.
    """

    def __init__(self, space: Space, turns: int, random_: random.Random) -> None:
        self._space, self._turns, self._random = space, turns, random_
        self._names = sorted(space.stressors)
        self._met = np.zeros((len(self._names), len(self._names)))

    def draw(self) -> tuple[Recipe, ...]:
        """Of several random groups, the one whose stressors have met least.

        Each turn has the same stressors, except those that exceed the bounds.
        """
        draws = [self._random.sample(range(len(self._names)), self._space.group_size) for _ in range(_DRAWS)]
        group = sorted(min(draws, key=self._met_before))
        for first, second in itertools.permutations(group, 2):
            self._met[first, second] += 1
        levels = {self._names[place]: self._levels(self._names[place]) for place in group}
        return tuple(
            self._space.fitting([Part(name, levels[name][turn]) for name in self._shuffled(list(levels))])
            for turn in range(self._turns)
        )

    def _met_before(self, places: Iterable[int]) -> float:
        among = np.fromiter(places, int)
        return float((self._met[among][:, among] ** 2).sum())

    def _shuffled(self, names: Sequence[str]) -> list[str]:
        return self._random.sample(names, len(names))

    def _levels(self, name: str) -> list[tuple[int, ...]]:
        """Levels of each turn: all levels of a parameter occur, in random order, before one repeats."""
        columns = [self._evenly(len(parameter.values)) for parameter in self._space.stressors[name].parameters]
        return [tuple(column[turn] for column in columns) for turn in range(self._turns)]

    def _evenly(self, levels: int) -> list[int]:
        rounds = (self._random.sample(range(levels), levels) for _ in range(-(-self._turns // levels)))
        return [level for each in rounds for level in each]


@dataclass(frozen=True)
class TurnResiduals:
    """``over``: how much worse each turn was than its stressors are in other turns; ``present``: the stressors of
    ``names`` in each turn (turns × names)."""

    names: Sequence[str]
    present: NDArray[np.float64]
    over: NDArray[np.float64]


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Rank of each value, from 1; equal values share their mean rank.

    As scipy.stats.rankdata, which takes half a second to load: every command that names a hunt would wait for it.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def turn_residuals(looks: Sequence[GroupTurn], turns: int) -> TurnResiduals:
    """Residuals in normal scores of the ranks, so that a disturbed turn is one rank, however bad.

    ``turns``: number of turns of each group.
    """
    scores = special.ndtri(_ranks([look.tail for look in looks]) / (len(looks) + 1))
    names = sorted({part.stressor for look in looks for part in look.recipe})
    column = {name: place for place, name in enumerate(names)}
    present = np.zeros((len(looks), len(names)))
    for row, look in enumerate(looks):
        present[row, [column[part.stressor] for part in look.recipe]] = 1.0
    known = np.column_stack([np.ones(len(looks)), present])
    weights = np.diag([0.0, *([_RIDGE * turns] * len(names))])
    effects = np.linalg.lstsq(known.T @ known + weights, known.T @ scores, rcond=None)[0]
    return TurnResiduals(names, present, np.asarray(scores - known @ effects))


def suspect_pairs(looks: Sequence[GroupTurn], seen: TurnResiduals, most: int) -> list[Recipe]:
    """Pairs of stressors, at the levels of one turn, the most suspect first.

    The score of a pair is the residual of all its turns, in standard errors, plus that of its worst turn, whose levels
    it has.
    """
    met = seen.present.T @ seen.present
    together = (seen.present * seen.over[:, np.newaxis]).T @ seen.present / np.sqrt(np.maximum(met, 1.0))
    ranked: list[tuple[float, Recipe]] = []
    for first, second in itertools.combinations(range(len(seen.names)), 2):
        if met[first, second]:
            worst = int(np.argmax(np.where(seen.present[:, first] * seen.present[:, second] > 0, seen.over, -np.inf)))
            pair = tuple(
                part for part in looks[worst].recipe if part.stressor in (seen.names[first], seen.names[second])
            )
            ranked.append((float(together[first, second] + seen.over[worst]), pair))
    return [pair for _, pair in sorted(ranked, reverse=True)[:most]]


def candidates(looks: Sequence[GroupTurn], turns: int, most: int, tried: frozenset[Recipe]) -> list[Recipe]:
    """Recipes worth another trial: the turns with the largest residuals, and some of the pairs they suggest."""
    seen = turn_residuals(looks, turns)
    pairs = [pair for pair in suspect_pairs(looks, seen, most + len(tried)) if pair not in tried]
    order = np.argsort(-seen.over, kind="stable")
    whole = [looks[place].recipe for place in order if looks[place].recipe not in tried]
    of_pairs = round(most * _PAIRS)
    return list(dict.fromkeys([*whole[: most - of_pairs], *pairs[:of_pairs]]))
