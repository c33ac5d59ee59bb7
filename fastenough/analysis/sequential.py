# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence about a rate of independent events that is valid at every look (docs/method.md derives it).

Events are Poisson; ``expected`` of them are allowed in what was measured, and ``events`` were seen.  The evidence is
the likelihood ratio of a mixture of other rates against the allowed one: an e-process, whose expectation never exceeds
1 while the hypothesis is true.  It reaches 1/E at any time, however often and whenever it is looked at, with a chance
of at most E (Ville 1939).  Numbers of events need not be whole.

Sources: Ville 1939; Robbins 1970 (mixtures); Howard, Ramdas, McAuliffe, Sekhon 2021 (Gamma-Poisson mixture).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastenough.analysis import special

_BELOW = (3.0, 5.0)
"""Shape and rate of the gamma distribution of rates below the allowed one, in units of it; cut off at 1."""
_ABOVE = (2.0, 1.0)
"""Shape and rate for the rates above the allowed one."""
_NONE = 1 / 3
"""Weight of a rate of 0 among those below."""
_HALVINGS = 60


def log_evidence_below(events: float, expected: float) -> float:
    """Logarithm of the evidence that the rate is below the allowed one.

    It grows with ``expected`` and falls with ``events``: evidence against a rate is evidence against each greater one.
    """
    shape, rate = _BELOW
    gamma = _log_mixture(events, expected, _BELOW)
    gamma += _log(special.gammainc(shape + events, rate + expected)) - _log(special.gammainc(shape, rate))
    some = math.log1p(-_NONE) + gamma
    if events > 0:
        return some
    none = math.log(_NONE) + expected
    return max(some, none) + math.log1p(math.exp(-abs(some - none)))


def log_evidence_above(events: float, expected: float) -> float:
    """Logarithm of the evidence that the rate is above the allowed one; grows with ``events``."""
    shape, rate = _ABOVE
    gamma = _log_mixture(events, expected, _ABOVE)
    return gamma + _log(special.gammaincc(shape + events, rate + expected)) - _log(special.gammaincc(shape, rate))


def _log_mixture(events: float, expected: float, prior: tuple[float, float]) -> float:
    """Logarithm of the likelihood ratio r^events exp(expected (1 - r)), averaged over an uncut gamma prior of r."""
    shape, rate = prior
    return (
        expected
        + math.lgamma(shape + events)
        - math.lgamma(shape)
        + shape * math.log(rate)
        - (shape + events) * math.log(rate + expected)
    )


def _log(probability: np.floating[Any]) -> float:
    return math.log(probability) if probability > 0 else -math.inf


def log_required(confidence: float) -> float:
    """Logarithm of the evidence that decides: 1 / (1 - confidence)."""
    return -math.log1p(-confidence)


def p_value(log_evidence: float) -> float:
    """The p-value of evidence, 1 over it, which is valid at every look."""
    return math.exp(-max(0.0, log_evidence))


def events_upper(events: float, confidence: float) -> float:
    """Upper bound of the mean number of events, valid at every look: the greatest mean that is not rejected."""
    required = log_required(confidence)
    return _least(events, lambda mean: log_evidence_below(events, mean) >= required)


def unseen_upper(confidence: float) -> float:
    """The same where one event refutes the hypothesis: all weight is on a rate of 0, so that the evidence is exp(mean)
    until an event is seen.  3.0 at 95 %."""
    return log_required(confidence)


def _least(start: float, holds: Callable[[float], bool]) -> float:
    """Least number at which ``holds``, which stays true beyond it; on the safe side."""
    low, high = start, 2.0 * start + 8.0
    while not holds(high):
        low, high = high, 2.0 * high
    return least_between(low, high, holds)


def least_between(low: float, high: float, holds: Callable[[float], bool], halvings: int = _HALVINGS) -> float:
    """Least number between ``low`` and ``high`` at which ``holds``, which stays true above it; on the safe side."""
    for _ in range(halvings):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
