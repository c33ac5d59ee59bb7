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
from scipy.stats import norm, rankdata

from fastenough.hunt.space import Part, Recipe, Space

_RIDGE = 3.0
"""So many groups without any effect each stressor is taken to have been in beside its own.  Groups, not looks: those of
a group share their stressors, so that they are little more than one.  With as many looks instead, the effects of the
stressors explained away what a group had found."""
_PAIRS = 0.15
"""The share of candidates that are pairs out of groups, and not whole groups."""


_DRAWS = 16
"""Of so many groups the best is taken."""


@dataclass(frozen=True)
class GroupTurn:
    """One turn of a group, and the tail of the blocks in it."""

    recipe: Recipe
    tail: float


class Groups:
    """Draws groups so that every two stressors meet about equally often, and every level comes up as often as others.

    ``turns``: how many draws of levels a group goes through.
    """

    def __init__(self, space: Space, turns: int, random_: random.Random) -> None:
        self._space, self._turns, self._random = space, turns, random_
        self._names = sorted(space.stressors)
        self._met = np.zeros((len(self._names), len(self._names)))

    def drawn(self) -> tuple[Recipe, ...]:
        """Of several groups that are drawn evenly, the one whose stressors have met least; the same stressors in each
        turn, where the bounds leave none of them out."""
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
        """For each turn: of each parameter all levels, in any order, before one comes again."""
        columns = [self._evenly(len(parameter.values)) for parameter in self._space.stressors[name].parameters]
        return [tuple(column[turn] for column in columns) for turn in range(self._turns)]

    def _evenly(self, levels: int) -> list[int]:
        rounds = (self._random.sample(range(levels), levels) for _ in range(-(-self._turns // levels)))
        return [level for each in rounds for level in each]


@dataclass(frozen=True)
class TurnResiduals:
    """``over``: of each look, by how much it was worse than its stressors are in other looks; ``present``: which of
    ``names`` were in it."""

    names: Sequence[str]
    present: NDArray[np.float64]
    over: NDArray[np.float64]


def turn_residuals(looks: Sequence[GroupTurn], turns: int) -> TurnResiduals:
    """In normal scores of the ranks: what something else disturbed is one rank, however bad it was.  ``turns``: how
    many looks of each group there are."""
    scores = norm.ppf(rankdata([look.tail for look in looks]) / (len(looks) + 1))
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
    """Two stressors at the levels that they had in one look, the most suspect first.

    A pair counts with what all its looks had over, in standard errors, and with what its worst look had: at the levels
    that they had there, and not at others.
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
    """What is worth another trial: the looks that had most over, and some of the pairs that they point at."""
    seen = turn_residuals(looks, turns)
    pairs = [pair for pair in suspect_pairs(looks, seen, most + len(tried)) if pair not in tried]
    order = np.argsort(-seen.over, kind="stable")
    whole = [looks[place].recipe for place in order if looks[place].recipe not in tried]
    of_pairs = round(most * _PAIRS)
    return list(dict.fromkeys([*whole[: most - of_pairs], *pairs[:of_pairs]]))
