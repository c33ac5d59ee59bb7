# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that reject an estimate of extremes: each returns the reason as text, or None.

Tests of the course over time need no model.  The four of the model (fit, threshold stability, isolated maximum,
back-tests) compare the maxima with samples drawn from the tail fitted to them, each fitted anew (parametric bootstrap:
Stute, Gonzalez Manteiga and Presedo Quindimil 1993).  There, tails are fitted by probability-weighted moments
(Hosking, Wallis and Wood 1985; Hosking and Wallis 1987), which are closed formulas: likelihood would take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special, words
from fastenough.analysis.changes import change_points, ranks
from fastenough.analysis.maxima import Maxima

FloatArray = NDArray[np.float64]
Tail = tuple[FloatArray, FloatArray, FloatArray]
"""Location, scale and shape of each row."""

LEAST_DIFFERENT = 20
"""Maxima that take fewer values than these tell of the clock and not of the tail."""
LEVEL_OVER_TIME = 0.01
"""Chance at which what does not change is taken to change."""
LEVEL_OF_MODEL = 0.05
"""Chance at which each test of the model refuses a tail that is one."""
_LAGS = 5
_LEAST_TURNS, _LONGEST_PERIOD = 10, 120
"""Least number of turns of a period that is tested, and longest period in stretches."""
_DRAWS = 299
_SEED = 20260101
_TINY = 1e-12
_COMPLETIONS = 4
"""So many times the greatest value is estimated from the tail with the estimate before it."""


def coarseness(maxima: Maxima) -> str | None:
    """Whether the values are told apart finely enough."""
    different = np.unique(maxima.values_ns).size
    if different >= LEAST_DIFFERENT:
        return None
    return f"the maxima have only {words.counted(different, 'value')}: too coarse for an estimate"


def trend(maxima: Maxima) -> str | None:
    """Rank correlation with time (Spearman)."""
    ranked = ranks(maxima.values_ns)
    time = np.arange(ranked.size, dtype=np.float64)
    correlation = _correlation(ranked, time)
    if 2.0 * special.ndtr(-abs(correlation) * np.sqrt(ranked.size - 1)) > LEVEL_OVER_TIME:
        return None
    way = "rise" if correlation > 0 else "fall"
    return f"the maxima {way} over time: the system changed during the measurement"


def regimes(maxima: Maxima) -> str | None:
    """Change points."""
    changes = change_points(maxima)
    if not changes:
        return None
    first = changes[0]
    return (
        f"the maxima changed {words.duration(first.after_ns)} after the beginning, from a median of "
        f"{words.latency(first.before_ns)} to {words.latency(first.later_ns)}"
    )


def dependence(maxima: Maxima) -> str | None:
    """Autocorrelation of ranks at lags 1 to 5, taken together (Ljung and Box 1978)."""
    ranked = ranks(maxima.values_ns)
    n = ranked.size
    lags = range(1, _LAGS + 1)
    statistic = sum(_correlation(ranked[lag:], ranked[:-lag]) ** 2 * (n + 2) * n / (n - lag) for lag in lags)
    if special.chdtrc(_LAGS, statistic) > LEVEL_OVER_TIME:
        return None
    return "great maxima cluster: the maxima are not independent"


def periodicity(maxima: Maxima) -> str | None:
    """Mean rank of each phase of each period of up to a tenth of the maxima (Bonferroni over all phases).

    A periodic job makes two kinds of stretches.  A fit to both covers less often than stated, although neither the
    fit nor the autocorrelation needs to show it.  The test is for the maxima of single stretches, not of blocks.
    """
    ranked = ranks(maxima.values_ns)
    n = ranked.size
    longest = min(n // _LEAST_TURNS, _LONGEST_PERIOD)
    if longest < 2 or not ranked.std():
        return None
    deviation, period = max((_phase_deviation(ranked, period), period) for period in range(2, longest + 1))
    if special.ndtr(-deviation) >= LEVEL_OVER_TIME / sum(range(2, longest + 1)):
        return None
    every = words.duration(period * maxima.stretch_ns)
    return f"the maxima are periodic: those of one stretch every {every} are greater than the others"


def _phase_deviation(ranked: FloatArray, period: int) -> float:
    """How far the greatest mean rank of a phase is above that of all, in standard errors."""
    n = ranked.size
    phase = np.arange(n) % period
    number = np.bincount(phase, minlength=period)
    means = np.bincount(phase, ranked, period) / number
    error = float(ranked.std()) * np.sqrt((1.0 / number - 1.0 / n) * n / (n - 1))
    return float(np.max((means - ranked.mean()) / error))


def _correlation(first: FloatArray, second: FloatArray) -> float:
    first, second = first - first.mean(), second - second.mean()
    squares = float((first @ first) * (second @ second))
    return float(first @ second) / squares**0.5 if squares > 0 else 0.0


OVER_TIME: tuple[Callable[[Maxima], str | None], ...] = (coarseness, trend, regimes, dependence)


@dataclass(frozen=True)
class Family:
    """A kind of tail: what is fitted to rows of values, and the share of each row's tail that lies above values."""

    fitted: Callable[[FloatArray], Tail]
    above: Callable[[FloatArray, FloatArray], FloatArray]
    reached: Callable[[FloatArray, FloatArray], FloatArray]


def _moments(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The first three probability-weighted moments of each row, unbiased."""
    ordered = np.sort(rows, axis=1)
    n = rows.shape[1]
    place = np.arange(n, dtype=np.float64)
    first = ordered.mean(axis=1, keepdims=True)
    second = (ordered @ (place / (n - 1)) / n)[:, None]
    third = (ordered @ (place * (place - 1) / ((n - 1) * (n - 2))) / n)[:, None]
    return first, second, third


def gev_by_moments(rows: FloatArray) -> Tail:
    """Location, scale and shape of each row."""
    first, second, third = _moments(rows)
    c = (2 * second - first) / np.maximum(3 * third - first, _TINY) - np.log(2) / np.log(3)
    k = np.clip(7.8590 * c + 2.9554 * c * c, -0.99, 5.0)
    k = np.where(abs(k) < 1e-6, 1e-6, k)
    gamma = special.gamma(1 + k)
    scale = np.maximum((2 * second - first) * k / (gamma * (1 - 2.0**-k)), _TINY)
    return first + scale * (gamma - 1) / k, scale, -k


def gpd_by_moments(rows: FloatArray) -> Tail:
    """0, scale and shape of each row of excesses above 0."""
    first, second, _ = _moments(rows)
    least = first - second
    k = np.clip(first / np.maximum(first - 2 * least, _TINY) - 2, -0.99, 5.0)
    k = np.where(abs(k) < 1e-6, 1e-6, k)
    return np.zeros_like(first), np.maximum(first * (1 + k), _TINY), -k


def _pareto_above(z: FloatArray, shape: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.maximum(1 + shape * z, 0.0) ** (-1 / shape))


GEV = Family(
    gev_by_moments,
    lambda z, shape: -np.expm1(-np.minimum(_pareto_above(z, shape), 700.0)),
    lambda share, shape: ((-np.log1p(-share)) ** -shape - 1) / shape,
)
GPD = Family(gpd_by_moments, _pareto_above, lambda share, shape: (share**-shape - 1) / shape)


@dataclass(frozen=True)
class BackTest:
    """The tail of one half of the time against the other half, which was not used to fit it.

    ``expected_ns``: one of the maxima of the other half is expected to exceed it; ``greatest_ns``: the greatest of
    them; ``chance``: that a tail of the family shows one as far above the expected level.
    """

    expected_ns: float
    greatest_ns: float
    chance: float


@dataclass(frozen=True)
class Model:
    """Chances that a tail of the family that was fitted shows values as far from it as these.

    ``isolated``: of the greatest value, under the tail fitted to all others.
    """

    fit: float
    stability: float
    isolated: float
    forward: BackTest
    backward: BackTest

    @property
    def reason(self) -> str | None:
        """Why the tail is rejected; None: no test rejects it."""
        if self.fit < LEVEL_OF_MODEL:
            return f"the distribution does not fit the maxima (p = {self.fit:.3f})"
        if self.stability < LEVEL_OF_MODEL:
            return f"the shape depends on the threshold of the tail (p = {self.stability:.3f})"
        if self.isolated < LEVEL_OF_MODEL:
            return f"the maximum is not of the tail of all other values (p = {self.isolated:.3f}): a rare kind of stall"
        for fitted, tested, back_test in (("first", "second", self.forward), ("second", "first", self.backward)):
            if back_test.chance < LEVEL_OF_MODEL / 2:
                return (
                    f"a fit to the {fitted} half does not predict the maximum of the {tested} half "
                    f"(p = {back_test.chance:.3f})"
                )
        return None


def checked_model(values: FloatArray, step: float, family: Family, origin_ns: float = 0.0) -> Model:
    """``values`` in the order of time, in ns above the origin: of the GPD, which is its threshold."""
    rows = _with_draws(values, family.fitted(values[None, :]), step, family)
    without = _with_draws(values, _without_greatest(values[None, :], family), step, family)
    return Model(
        _chance(_distance(rows, family)),
        _chance(_instability(rows, family)),
        _chance(_isolation(without)),
        _back_test(rows, family, origin_ns),
        _back_test(rows[:, ::-1], family, origin_ns),
    )


def _with_draws(values: FloatArray, tail: Tail, step: float, family: Family) -> FloatArray:
    """The values, and below them samples of as many drawn from a tail and rounded as the clock does."""
    location, scale, shape = tail
    share = np.maximum(np.random.default_rng(_SEED).random((_DRAWS, values.size)), _TINY)
    samples = location + scale * family.reached(share, shape)
    return np.vstack([values[None, :], np.round(samples / step) * step])


def _chance(statistic: FloatArray) -> float:
    """Share of all rows whose statistic is at least that of the first one."""
    return float(np.mean(statistic >= statistic[0]))


def _distance(rows: FloatArray, family: Family) -> FloatArray:
    """Anderson and Darling's distance of each row from the tail fitted to it."""
    location, scale, shape = family.fitted(rows)
    above = np.clip(family.above((np.sort(rows, axis=1) - location) / scale, shape), _TINY, 1 - _TINY)
    n = rows.shape[1]
    weight = 2 * np.arange(1, n + 1) - 1
    return np.asarray(-n - (weight * (np.log1p(-above) + np.log(above[:, ::-1]))).mean(axis=1))


def _instability(rows: FloatArray, family: Family) -> FloatArray:
    """How far the shape of the upper half and of the upper quarter of each row are from that of all."""
    ordered = np.sort(rows, axis=1)
    shape = family.fitted(rows)[2]
    far = np.zeros(rows.shape[0])
    for divisor in (2, 4):
        size = rows.shape[1] // divisor
        excesses = ordered[:, -size:] - ordered[:, -size - 1, None]
        far = np.maximum(far, np.abs(gpd_by_moments(excesses)[2] - shape)[:, 0] * size**0.5)
    return far


def _isolation(rows: FloatArray) -> FloatArray:
    """How far the greatest value of each row is above the next one, beside the width of the upper quarter of the others
    (Dixon 1950)."""
    ordered = np.sort(rows, axis=1)
    second_greatest = ordered[:, -2]
    return np.asarray(
        (ordered[:, -1] - second_greatest) / np.maximum(second_greatest - ordered[:, -2 - rows.shape[1] // 4], _TINY)
    )


def _without_greatest(rows: FloatArray, family: Family) -> Tail:
    """The tail of all values of each row but the greatest, which the median of the tail's own greatest value replaces.

    Without a replacement each tail would end too early.
    """
    completed = np.sort(rows, axis=1)
    completed[:, -1] = completed[:, -2]
    for _ in range(_COMPLETIONS):
        location, scale, shape = family.fitted(completed)
        median = np.array([[-np.expm1(-np.log(2) / rows.shape[1])]])
        completed[:, -1:] = np.maximum(location + scale * family.reached(median, shape), completed[:, -2:-1])
    return family.fitted(completed)


def _back_test(rows: FloatArray, family: Family, origin_ns: float) -> BackTest:
    """Of the second half of each row, under the tail of its first half."""
    first, second = np.split(rows, [rows.shape[1] // 2], axis=1)
    tail = family.fitted(first)
    greatest = second.max(axis=1, keepdims=True)
    location, scale, shape = (parameter[:1] for parameter in tail)
    expected = location + scale * family.reached(np.array([[1 / second.shape[1]]]), shape)
    return BackTest(
        origin_ns + float(expected[0, 0]),
        origin_ns + float(greatest[0, 0]),
        _chance(_surprise(tail, greatest, family)),
    )


def _surprise(tail: Tail, greatest: FloatArray, family: Family) -> FloatArray:
    """How improbable the greatest value of each row is under a tail.

    Of maxima beyond an upper end, which are all impossible, the farther one surprises more.
    """
    location, scale, shape = tail
    z = (greatest - location) / scale
    return np.asarray(-np.log(np.maximum(family.above(z, shape), 1e-300)) + 1e-6 * z)[:, 0]
