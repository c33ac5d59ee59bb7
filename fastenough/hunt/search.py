# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole search: fixed loads, then rounds of groups, halving, confirmation and minimisation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fastenough.hunt.groups import Groups, GroupTurn, candidates
from fastenough.hunt.phases import LEAST_TRIALS, Confirmed, affordable, confirm, halve, minimise
from fastenough.hunt.space import Recipe, Space
from fastenough.hunt.trials import BudgetSpent, Phase, TrialBudget, TrialGenerator, mean_tail, tail_of

_EACH_FIXED = 2
_GROUPS, _HALVING = 0.35, 0.3
"""Shares of the remaining trials that a round spends on groups and on halving; the rest confirms and minimises."""
_REACHED = 0.8
"""Share of the octaves of the whole recipe, above the common reference, that a smaller one must reach."""
_LEAST = 4
"""Least number of candidates of a round."""


@dataclass
class Search:
    """One search and its result so far; it can be stopped at any time.

    ``fixed``: names of the fixed loads.  ``turns``: recipes per trial of a group.  ``worst_fixed``: the worst fixed
    load, empty until all were tried.  ``found``: the latest confirmed recipe, compared with the worst fixed load or
    with the result of an earlier round; ``whole``: the same before minimisation.  ``confirmations``: number completed;
    without any there is no conclusion.
    """

    space: Space
    fixed: Sequence[str]
    turns: int
    random_: random.Random
    worst_fixed: str = ""
    found: Confirmed | None = None
    whole: Confirmed | None = None
    confirmations: int = 0
    looks: list[GroupTurn] = field(default_factory=list)
    _tried: frozenset[Recipe] = frozenset()

    def __post_init__(self) -> None:
        self._groups = Groups(self.space, self.turns, self.random_)

    def run(self, left: int) -> TrialGenerator[None]:
        """Request trials until ``left`` are spent, or no candidate is worth another."""
        trials = TrialBudget(left)
        with suppress(BudgetSpent):
            yield from self._fixed_loads(trials)
            while affordable(int(_HALVING * trials.left)) >= _LEAST:
                yield from self._round(trials)

    def _fixed_loads(self, trials: TrialBudget) -> TrialGenerator[None]:
        tails: dict[str, list[float]] = {name: [] for name in self.fixed}
        for name in list(self.fixed) * _EACH_FIXED:
            tail = yield from trials.tail(name, Phase.FIXED)
            tails[name] += [] if tail is None else [tail]
        self.worst_fixed = max(self.fixed, key=lambda name: mean_tail(tails[name]))

    def _round(self, trials: TrialBudget) -> TrialGenerator[None]:
        most = affordable(int(_HALVING * trials.left))
        yield from self._try_groups(trials, max(1, int(_GROUPS * trials.left)))
        if len(self.looks) < 2:
            raise BudgetSpent
        chosen = candidates(self.looks, self.turns, most, self._tried)
        self._tried |= set(chosen)
        for candidate in (yield from halve(trials, chosen)):
            confirmed = yield from confirm(trials, candidate, self._reference)
            self.confirmations += 1
            if confirmed is not None:
                self.whole = confirmed
                self._set_result(trials, confirmed)
                yield from self._minimise(trials, confirmed)
                return

    @property
    def _reference(self) -> Recipe | str:
        """The worst known load, which the next result must exceed."""
        return self.found.recipe if self.found else self.worst_fixed

    def _set_result(self, trials: TrialBudget, confirmed: Confirmed) -> None:
        self.found, trials.found_ns = confirmed, confirmed.typical_ns

    def _try_groups(self, trials: TrialBudget, count: int) -> TrialGenerator[None]:
        for _ in range(count):
            turns = self._groups.draw()
            maxima = yield from trials.make(turns, Phase.GROUPS)
            each = len(maxima) // len(turns)
            self.looks += [
                GroupTurn(recipe, tail_of(maxima[turn * each : (turn + 1) * each]))
                for turn, recipe in enumerate(turns)
                if each
            ]

    def _minimise(self, trials: TrialBudget, confirmed: Confirmed) -> TrialGenerator[None]:
        """Find the smallest recipe that is confirmed like the whole one and nearly reaches its effect."""
        steps = [confirmed.recipe]
        with suppress(BudgetSpent):
            yield from minimise(trials, confirmed, steps, self.random_)
        smaller = len(steps) - 1
        while smaller > 0 and trials.left >= LEAST_TRIALS:
            again = yield from confirm(trials, steps[smaller], confirmed.beside)
            if again is not None and again.octaves >= _REACHED * confirmed.octaves:
                self._set_result(trials, again)
                return
            smaller //= 2
