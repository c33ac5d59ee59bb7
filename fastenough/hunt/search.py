# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole search: fixed loads, then rounds of groups, halving, confirmation and minimisation.

A group is a trial of several random recipes of many stressors, each in a turn of its own.  An effect that requires two
stressors at certain levels never shows in a trial of one stressor, and forty stressors have 780 pairs, of which a
recipe of twenty contains 190.  A turn is short and its stressors share the machine, so effects appear weakly.  That is
enough to choose candidates for further trials.  Each turn draws its own stressors: with the same ones in all turns, an
effect at any level was observed several times, and most combinations never.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from fastenough.hunt.phases import LEAST_TRIALS, Confirmed, affordable, confirm, halve, minimise
from fastenough.hunt.space import Recipe, Space
from fastenough.hunt.trials import BudgetSpent, Phase, TrialBudget, TrialGenerator, mean_tail, tail_of

_EACH_FIXED = 2
_GROUPS, _HALVING, _SHORT_HALVING = 0.35, 0.3, 0.2
"""Shares of the remaining trials that a round spends on groups and on halving; the rest confirms and minimises."""
_LONG = 125
"""With fewer trials left, a round halves less: minimising takes as many trials as in a long search."""
_REACHED = 0.8
"""Share of the octaves of the whole recipe, above the common reference, that a smaller one must reach."""


@dataclass(frozen=True)
class GroupTurn:
    """The recipe of one turn of a group, and the tail of its blocks.

    ``excess``: octaves above the median of the trial's turns; a disturbance of the whole trial makes no candidates.
    For a trial with one turn: its tail.
    """

    recipe: Recipe
    tail: float
    excess: float


def _group_turns(turns: Sequence[Recipe], maxima: Sequence[int]) -> list[GroupTurn]:
    """The turns of a trial of equally many block maxima each; empty if it failed."""
    size = len(maxima) // len(turns)
    if not size:
        return []
    tails = [tail_of(maxima[turn * size : (turn + 1) * size]) for turn in range(len(turns))]
    middle = median(tails) if len(tails) > 1 else 0.0
    return [GroupTurn(recipe, tail, tail - middle) for recipe, tail in zip(turns, tails, strict=True)]


@dataclass
class Search:
    """One search and its result so far; it can be stopped at any time.

    ``fixed``: names of the fixed loads.  ``turns``: recipes per trial of a group.  ``worst_fixed``: the worst fixed
    load, empty before their trials are complete and if all of them failed.  ``failed_fixed``: fixed loads whose trials
    all failed.  ``result``: the latest confirmed recipe, compared with the worst fixed load or with the result of an
    earlier round; ``unreduced``: the same before minimisation.  ``confirmations``: number of recipes that were compared
    with the reference; without any there is no conclusion.
    """

    space: Space
    fixed: Sequence[str]
    turns: int
    random_: random.Random
    worst_fixed: str = ""
    failed_fixed: tuple[str, ...] = ()
    result: Confirmed | None = None
    unreduced: Confirmed | None = None
    confirmations: int = 0
    looks: list[GroupTurn] = field(default_factory=list)
    _selected: frozenset[Recipe] = frozenset()

    def run(self, budget: int) -> TrialGenerator[None]:
        """Request trials until ``budget`` are spent, or no candidate is worth another."""
        trials = TrialBudget(budget)
        with suppress(BudgetSpent):
            yield from self._fixed_loads(trials)
            while (1 - _GROUPS) * trials.left >= LEAST_TRIALS:
                yield from self._round(trials)

    def _fixed_loads(self, trials: TrialBudget) -> TrialGenerator[None]:
        tails: dict[str, list[float]] = {name: [] for name in self.fixed}
        for name in list(self.fixed) * _EACH_FIXED:
            tail = yield from trials.tail(name, Phase.FIXED)
            tails[name] += [] if tail is None else [tail]
        self.failed_fixed = tuple(name for name in self.fixed if not tails[name])
        if len(self.failed_fixed) == len(self.fixed):
            raise BudgetSpent
        self.worst_fixed = max(self.fixed, key=lambda name: mean_tail(tails[name]))

    def _round(self, trials: TrialBudget) -> TrialGenerator[None]:
        limit = affordable(int((_HALVING if trials.left >= _LONG else _SHORT_HALVING) * trials.left))
        yield from self._try_groups(trials, max(1, int(_GROUPS * trials.left)))
        if len(self.looks) < 2:
            raise BudgetSpent
        chosen = self._candidates(limit)
        self._selected |= set(chosen)
        for candidate in (yield from halve(trials, chosen)):
            confirmed = yield from confirm(trials, candidate, self._reference)
            self.confirmations = trials.decided
            if confirmed is not None:
                self.unreduced = confirmed
                self._set_result(trials, confirmed)
                yield from self._minimise(trials, confirmed)
                return

    @property
    def _reference(self) -> Recipe | str:
        """The worst known load, which the next result must exceed."""
        return self.result.recipe if self.result else self.worst_fixed

    def _set_result(self, trials: TrialBudget, confirmed: Confirmed) -> None:
        self.result, trials.found_ns = confirmed, confirmed.typical_ns

    def _try_groups(self, trials: TrialBudget, count: int) -> TrialGenerator[None]:
        for _ in range(count):
            turns = tuple(self.space.draw(self.space.group_size, self.random_) for _ in range(self.turns))
            maxima = yield from trials.make(turns, Phase.GROUPS)
            self.looks += _group_turns(turns, maxima)

    def _candidates(self, limit: int) -> list[Recipe]:
        """The worst recipes of groups that were no candidates yet, worst first; none without stressors."""
        ordered = sorted(self.looks, key=lambda look: -look.excess)
        recipes = dict.fromkeys(look.recipe for look in ordered if look.recipe not in self._selected)
        return [recipe for recipe in recipes if recipe][:limit]

    def _minimise(self, trials: TrialBudget, confirmed: Confirmed) -> TrialGenerator[None]:
        """Find the smallest recipe that is confirmed like the whole one and nearly reaches its effect."""
        steps = [confirmed.recipe]
        with suppress(BudgetSpent):
            yield from minimise(trials, confirmed, steps, self.random_)
        smaller = len(steps) - 1
        while smaller > 0 and trials.left >= LEAST_TRIALS:
            again = yield from confirm(trials, steps[smaller], confirmed.reference)
            if again is not None and again.octaves >= _REACHED * confirmed.octaves:
                self._set_result(trials, again)
                return
            smaller //= 2
