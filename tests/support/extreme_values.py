# SPDX-License-Identifier: GPL-2.0-or-later
"""Maxima of seconds whose tail is known, drawn by scipy's distributions; and some that are no such tail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from fastenough.analysis.maxima import Maxima

Values = NDArray[np.float64]
HOUR_NS = 3600e9
LOCATION_NS, SCALE_NS = 50_000.0, 8_000.0
SHAPES = (-0.3, 0.0, 0.2)
_HOLDING = 0.3
"""Share of runs that hold a rare stall."""
_SPREAD = 0.2
"""Standard deviation of the logarithm of the lengths of rare stalls."""


def maxima(values: Values, step_ns: float = 1.0) -> Maxima:
    """Of one second each."""
    begins = np.arange(values.size, dtype=np.int64) * 10**9
    return Maxima(np.round(values / step_ns) * step_ns, begins, step_ns, 1e9)


def gev(shape: float, n: int, seed: int) -> Values:
    """scipy's sign of the shape is the other one."""
    random = np.random.default_rng(seed)
    return np.asarray(stats.genextreme.rvs(-shape, LOCATION_NS, SCALE_NS, n, random_state=random))


def true_level_ns(shape: float, mission_ns: float) -> float:
    """Above it one disturbance in so long: the maximum of a second stays below with chance exp(-1 s / mission)."""
    return float(stats.genextreme.isf(-np.expm1(-1e9 / mission_ns), -shape, LOCATION_NS, SCALE_NS))


def _per_second(shape: float, level_ns: float) -> float:
    """Disturbances of the ordinary kind above a level."""
    return float(-np.log1p(-stats.genextreme.sf(level_ns, -shape, LOCATION_NS, SCALE_NS)))


def _exceeded_once(per_second: Callable[[float], float], mission_ns: float) -> float:
    """The level above which one disturbance comes in so long."""
    highest = LOCATION_NS + SCALE_NS
    while per_second(highest) * mission_ns > 1e9:
        highest *= 2
    return float(optimize.brentq(lambda level: per_second(level) * mission_ns / 1e9 - 1, LOCATION_NS, highest))


@dataclass(frozen=True)
class RareStalls:
    """A rare kind of stall beside ordinary disturbances, in runs so long that 30 % of them hold one.

    ``every_s``: one comes in so long on average; ``times``: its median beside that of the maximum of a run without any.
    """

    shape: float
    every_s: int
    times: float

    @property
    def seconds(self) -> int:
        return round(-math.log1p(-_HOLDING) * self.every_s)

    @property
    def _median_ns(self) -> float:
        return self.times * true_level_ns(self.shape, self.seconds * 1e9 / np.log(2))

    def values(self, seed: int, stalls: int) -> Values:
        """Maxima of the seconds of a run with so many stalls."""
        values = gev(self.shape, self.seconds, seed)
        random = np.random.default_rng([seed, 1])
        at = random.choice(self.seconds, stalls, replace=False)
        values[at] = np.maximum(values[at], random.lognormal(np.log(self._median_ns), _SPREAD, stalls))
        return values

    def level_ns(self, mission_ns: float) -> float:
        """Of both kinds together."""
        stalls = stats.lognorm(_SPREAD, scale=self._median_ns)
        return _exceeded_once(lambda x: _per_second(self.shape, x) + stalls.sf(x) / self.every_s, mission_ns)


def discrete(n: int, seed: int) -> Values:
    """Of a clock whose step is a quarter of the scale."""
    step_ns = SCALE_NS / 4
    return np.round(gev(0.0, n, seed) / step_ns) * step_ns


def periodic(n: int, seed: int, scales: float = 3.0) -> Values:
    """Each tenth second is one of a job, whose disturbances are so many scales greater."""
    return gev(0.0, n, seed) + np.where(np.arange(n) % 10 == 0, scales * SCALE_NS, 0.0)


def true_periodic_level_ns(mission_ns: float, scales: float = 3.0) -> float:
    more_ns = scales * SCALE_NS
    return _exceeded_once(lambda x: 0.9 * _per_second(0.0, x) + 0.1 * _per_second(0.0, x - more_ns), mission_ns)


def autocorrelated(n: int, seed: int, correlation: float) -> Values:
    """Log-normal, of a first-order autoregression."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(n)
    for place in range(1, n):
        values[place] = correlation * values[place - 1] + (1 - correlation**2) ** 0.5 * values[place]
    return np.asarray(LOCATION_NS + 5_000 * np.exp(values))


def drifting(n: int, seed: int) -> Values:
    """The location rises by one and a half scales."""
    return gev(0.0, n, seed) + np.linspace(0.0, 1.5 * SCALE_NS, n)


def two_regimes(n: int, seed: int) -> Values:
    """Another location for a sixth of the time."""
    return gev(0.0, n, seed) + np.where(np.arange(n) * 6 // n == 3, 4 * SCALE_NS, 0.0)


def two_kinds(n: int, seed: int) -> Values:
    """One maximum in seven is of another kind, and much greater."""
    random = np.random.default_rng(seed + 10**6)
    return gev(0.0, n, seed) + np.where(random.random(n) < 1 / 7, 20 * SCALE_NS, 0.0)


REFUSED: dict[str, Callable[[int, int], Values]] = {
    "location rises by 1.5 scales": drifting,
    "other regime for a sixth of the time": two_regimes,
    "autocorrelation 0.8": lambda n, seed: autocorrelated(n, seed, 0.8),
    "two kinds of disturbances": two_kinds,
    "heavy tail, shape 0.9": lambda n, seed: gev(0.9, n, seed),
}
"""What must be refused; of how many maxima, seed."""
