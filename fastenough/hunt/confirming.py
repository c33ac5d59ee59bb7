# SPDX-License-Identifier: GPL-2.0-or-later
"""Confirmation: a recipe and the worst that is known in turns, by trials that nothing was chosen by."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from fastenough.hunt.asking import Phase, TrialBudget, TrialGenerator
from fastenough.hunt.space import Recipe
from fastenough.hunt.tail import chance, level_of, typical_ns

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
