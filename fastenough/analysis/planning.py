# SPDX-License-Identifier: GPL-2.0-or-later
"""How many activations decide: enough that a verdict follows in most cases, not only if all goes on exactly as it did.

So far y independent events were seen in n activations.  The rate of events then is a gamma distribution with y + 1/2
and n (Jeffreys 1946), and the number of further events until N activations a negative binomial one.  The number of
activations advised is the least N at which a PASS or a FAIL follows with the chance :data:`GOAL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

GOAL = 0.9
"""Chance of a verdict after what is advised."""
_GROWTH = 1.15
_HALVINGS = 24
_MOST_TIMES = 1000
"""More than so many times what was measured is never advised: the rate is too close to the one allowed."""

Decides = Callable[[float, float], bool]
"""Whether so many events in so many activations (n, events) decide."""


@dataclass(frozen=True)
class Observation:
    """``events``: independent ones in ``n`` activations; ``least``: with fewer of them nothing passes."""

    n: int
    events: float
    least: float = 0.0

    def chance_of_more_than(self, events: float, n: float) -> float:
        """Chance of more than so many in all, when ``n`` activations were measured in all."""
        further = math.floor(events - self.events + 1e-9)
        if further < 0:
            return 1.0
        return float(special.betaincc(self.events + 0.5, further + 1.0, self.n / n))


def samples_to_decide(seen: Observation, passes: Decides, fails: Decides) -> int | None:
    """How many activations in all decide in most cases; None where no reasonable number does.

    ``passes`` holds for few events, ``fails`` for many.
    """
    total = float(seen.n)
    while total <= _MOST_TIMES * seen.n:
        total *= _GROWTH
        if _chance_of_verdict(seen, total, passes, fails) >= GOAL:
            return math.ceil(total)
    return None


def _chance_of_verdict(seen: Observation, n: float, passes: Decides, fails: Decides) -> float:
    most = 20.0 + 20.0 * n / seen.n * (1.0 + seen.events)
    passing = _edge(lambda events: passes(n, events), most)
    failing = _edge(lambda events: not fails(n, events), most)
    few = 1.0 - seen.chance_of_more_than(max(seen.least, seen.events) - 1.0, n) if seen.least > seen.events else 0.0
    within = max(0.0, 1.0 - seen.chance_of_more_than(passing, n) - few) if passing >= seen.events else 0.0
    return within + seen.chance_of_more_than(failing, n)


def _edge(holds: Callable[[float], bool], most: float) -> float:
    """The greatest number of events for which it holds; -1: for none."""
    if not holds(0.0):
        return -1.0
    low, high = 0.0, most
    if holds(high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
