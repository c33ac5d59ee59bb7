# SPDX-License-Identifier: GPL-2.0-or-later
"""Successive halving (Karnin, Koren, Somekh 2013): what was bad by chance falls out, the rest is tried more often."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.hunt.asking import Phase, TrialBudget, TrialGenerator, mean_tail
from fastenough.hunt.space import Recipe

_FINALISTS = 3
"""So many candidates stay, for confirmation one after the other."""
_MOST_TRIALS_EACH = 4


def cost(candidates: int) -> int:
    """How many trials it takes to halve so many."""
    total, each = 0, 1
    while candidates > _FINALISTS:
        total += candidates * each
        candidates, each = max(_FINALISTS, candidates // 2), min(_MOST_TRIALS_EACH, 2 * each)
    return total


def affordable(trials: int) -> int:
    """How many candidates so many trials can halve."""
    return max((each for each in range(trials + 1) if cost(each) <= trials), default=0)


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
