# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence of an effect from pairs of runs in random order, valid after every pair (docs/compare.md).

A fair coin decides which run of a pair has the change.  Without an effect, nothing measured predicts the coin, whatever
drifts, recurs or depends on what.  Each pair is a bet on its coin, made from its two values and the earlier pairs, that
pays at most double; the product of the payoffs is an e-process: its expectation never exceeds 1, and it ever reaches
1/E with a chance of at most E.  The bets are those that win if there is an effect, with several strengths.

Sources: Fisher 1935 (randomisation); Ville 1939; Waudby-Smith and Ramdas 2024 (betting, intervals by inversion); Vovk
and Wang 2021 (several e-values together).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_STRENGTHS = np.array([1.0, 2.0, 4.0, 1e9])
"""Log-odds of a bet for a difference of one standard deviation of the earlier pairs; the last bets on the sign."""
_STAKES = np.array([0.97, 0.97, 0.97, 1.0])
"""Shares of the capital at stake, so that only the last one can lose everything."""
_WEIGHTS = np.array([0.2, 0.2, 0.2, 0.4])
_UNSCALED = 3
"""First pairs, before the spread is known: their bets are as for a difference of one standard deviation."""
_NO_SPREAD = 1e-150
_MOST_LOG = 600.0
_WIDENINGS = 60
_HALVINGS = 40


@dataclass(frozen=True)
class SequentialEstimate:
    """Effect of a change with its interval, and the evidence that there is one, valid after every pair.

    ``effect``: the value with the least evidence against it.
    """

    effect: float
    lower: float
    upper: float
    evidence: float


@dataclass(frozen=True, eq=False)
class _Bets:
    """The bets of two bettors on each pair.  ``removed`` (2 x pairs): the second bettor subtracts the excess of the
    first run of a pair over the second, as estimated from the earlier pairs.  ``spread`` (2 x pairs): standard
    deviation of the earlier differences."""

    removed: FloatArray
    spread: FloatArray

    @classmethod
    def on(cls, differences: FloatArray, change_first: BoolArray) -> _Bets:
        """Bets on the difference of each pair, with the change minus without, in order."""
        sign = np.where(change_first, 1.0, -1.0)
        removed = np.zeros((2, differences.size))
        spread = np.ones_like(removed)
        for place in range(1, differences.size):
            before, order = differences[:place], sign[:place]
            excess = _excess_of_first(before, change_first[:place])
            removed[1, place] = sign[place] * excess
            if place >= _UNSCALED:
                deviations = np.stack([before, before - order * excess])
                spread[:, place] = np.maximum(deviations.std(axis=1, ddof=1), _NO_SPREAD)
        return cls(removed, spread)

    @property
    def mirrored(self) -> _Bets:
        """The bets on the negated differences."""
        return _Bets(-self.removed, self.spread)

    def log_payoff(self, differences: FloatArray) -> float:
        """Logarithm of the product of payoffs of the bets that each difference is above zero; grows with each."""
        scaled = (differences - self.removed) / self.spread
        scaled[:, :_UNSCALED] = np.sign(scaled[:, :_UNSCALED])
        with np.errstate(divide="ignore", over="ignore"):
            bets = np.tanh(_STRENGTHS[:, None, None] * scaled / 2)
            logs = np.log1p(_STAKES[:, None, None] * bets).sum(axis=2)
        greatest = float(logs.max())
        return greatest + math.log(float((_WEIGHTS @ np.exp(logs - greatest)).mean()))


def _excess_of_first(differences: FloatArray, change_first: BoolArray) -> float:
    """Excess of the first run of a pair over the second, whatever the effect; 0 while either order is missing."""
    if change_first.all() or not change_first.any():
        return 0.0
    return float(differences[change_first].mean() - differences[~change_first].mean()) / 2


def _bets_on_either(at_least: FloatArray, at_most: FloatArray, change_first: BoolArray) -> tuple[_Bets, _Bets]:
    """Bets that the change makes values greater, and bets that it makes them smaller."""
    bets = _Bets.on((at_least + at_most) / 2, change_first)
    return bets, bets.mirrored


def sequential_evidence(at_least: FloatArray, at_most: FloatArray, change_first: BoolArray) -> float:
    """Evidence of an effect in either direction; arguments as of :func:`sequential`."""
    more, less = _bets_on_either(at_least, at_most, change_first)
    logs = more.log_payoff(at_least), less.log_payoff(-at_most)
    return sum(math.exp(min(log, _MOST_LOG)) for log in logs) / 2


def sequential(
    at_least: FloatArray, at_most: FloatArray, change_first: BoolArray, confidence: float
) -> SequentialEstimate:
    """Estimate the effect from the difference of each pair, with the change minus without, in the order of the pairs;
    each difference lies between ``at_least`` and ``at_most``, since values are known by their buckets.

    An end of the interval is infinite if the pairs are too few for it.
    """
    more, less = _bets_on_either(at_least, at_most, change_first)
    middle = (at_least + at_most) / 2
    step = float(at_most.max() - at_least.min()) or abs(float(middle.max())) or 1.0
    required = math.log(2 / (1 - confidence))
    effect = _turning_point(
        lambda effect: more.log_payoff(middle - effect) > less.log_payoff(effect - middle),
        float(np.median(middle)),
        step,
    )
    lower = _turning_point(lambda effect: more.log_payoff(at_least - effect) >= required, effect, step)
    upper = _turning_point(lambda effect: less.log_payoff(effect - at_most) < required, effect, step)
    return SequentialEstimate(effect, lower, upper, sequential_evidence(at_least, at_most, change_first))


def _turning_point(holds: Callable[[float], bool], start: float, step: float) -> float:
    """The effect up to which ``holds`` is true; it is false for every greater effect.  Infinite if there is none."""
    low, high = start - step, start + step
    for _ in range(_WIDENINGS):
        if holds(low):
            break
        low -= high - low
    else:
        return -math.inf
    for _ in range(_WIDENINGS):
        if not holds(high):
            break
        high += high - low
    else:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2


def evidence_together(evidence: Sequence[float]) -> list[float]:
    """The evidence of each finding when all are judged together: its least mean with any of the others.

    Means of e-values are e-values; by closed testing, the chance of any false finding that reaches 1/E is at most E.
    """
    joint = []
    for place, own in enumerate(evidence):
        others = sorted([*evidence[:place], *evidence[place + 1 :]])
        sums = own + np.concatenate([[0.0], np.cumsum(others)])
        joint.append(float((sums / np.arange(1, sums.size + 1)).min()))
    return joint
