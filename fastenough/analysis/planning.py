# SPDX-License-Identifier: GPL-2.0-or-later
"""The number of activations that most likely suffices for a verdict.

So far y independent events were seen in n activations.  The rate of events then is a gamma distribution with y + 1/2
and n (Jeffreys 1946), and the number of further events until N activations a negative binomial one.  The number of
activations advised is the least N at which a PASS or a FAIL follows with the chance :data:`GOAL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

GOAL = 0.88
"""Probability of a verdict with the advised number of activations."""
_GROWTH = 1.15
_HALVINGS = 24
_MOST_TIMES = 1000
"""Largest advised multiple of the measured activations; beyond it, the rate is too close to the allowed one."""

Decides = Callable[[float, float], bool]
"""Whether ``(n, events)`` gives a verdict."""


@dataclass(frozen=True)
class EventCount:
    """Independent ``events`` in ``n`` activations; ``least``: least number of events for a PASS."""

    n: int
    events: float
    least: float = 0.0

    def chance_of_more_than(self, events: float, n: float) -> float:
        """Probability of more than ``events`` in total after ``n`` activations in total."""
        further = math.floor(events - self.events + 1e-9)
        if further < 0:
            return 1.0
        return float(special.betaincc(self.events + 0.5, further + 1.0, self.n / n))


def samples_to_decide(count: EventCount, passes: Decides, fails: Decides) -> int | None:
    """Total number of activations that most likely gives a verdict; None if it is unreasonably large.

    ``passes`` holds for few events, ``fails`` for many.
    """
    total = float(count.n)
    while total <= _MOST_TIMES * count.n:
        total *= _GROWTH
        if _chance_of_verdict(count, total, passes, fails) >= GOAL:
            return math.ceil(total)
    return None


def _chance_of_verdict(count: EventCount, n: float, passes: Decides, fails: Decides) -> float:
    most = 20.0 + 20.0 * n / count.n * (1.0 + count.events)
    passing = _edge(lambda events: passes(n, events), most)
    failing = _edge(lambda events: not fails(n, events), most)
    few = (
        1.0 - count.chance_of_more_than(max(count.least, count.events) - 1.0, n) if count.least > count.events else 0.0
    )
    within = max(0.0, 1.0 - count.chance_of_more_than(passing, n) - few) if passing >= count.events else 0.0
    return within + count.chance_of_more_than(failing, n)


def _edge(holds: Callable[[float], bool], most: float) -> float:
    """Greatest number of events for which ``holds`` is true; -1 if none."""
    if not holds(0.0):
        return -1.0
    low, high = 0.0, most
    if holds(high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
