# SPDX-License-Identifier: GPL-2.0-or-later
"""Extreme-value distributions, fitted to maxima by the likelihood of the intervals that contain them.

Block maxima follow the generalized extreme-value distribution (GEV), and what exceeds a high threshold the generalized
Pareto distribution (GPD); both are one model of the tail, exceedances as a Poisson process (Coles 2001, chapter 7).  So
one likelihood serves for both: for the GPD, a maximum below the threshold says that it lies there and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.maxima import Maxima

FloatArray = NDArray[np.float64]

_HALF_CHI2 = 1.920729
"""Half the 95 % quantile of chi-square with one degree of freedom: how far a profile may fall."""
_FINE = {"xatol": 1e-4, "fatol": 1e-6}
_COARSE = {"xatol": 1.0, "fatol": 2e-3}
_FIRST_SHAPES = (0.0, 0.15, -0.2)
_LARGEST = 700.0
"""The exponential of more overflows."""
_SURELY_OUTSIDE = 50.0
"""Profile of a level so low that the maxima are impossible with any tail."""
_FARTHEST = 1000.0
"""Search range for an end of an interval, in standard deviations of the maxima."""


class NoFit(Exception):
    """The likelihood has no maximum, or no end of an interval, that could be found."""


@dataclass(frozen=True)
class TailModel:
    """Distribution of the maximum of a stretch: location and scale in ns, shape (above 0: heavy; below 0: it has an
    upper end)."""

    location_ns: float
    scale_ns: float
    shape: float
    stretch_ns: float

    def every_stretches(self, level_ns: float) -> float:
        """Disturbances above a level per stretch of time."""
        return float(_excesses(np.array([(level_ns - self.location_ns) / self.scale_ns]), self.shape)[0])

    def per_hour(self, level_ns: float) -> float:
        """Disturbances above a level in an hour."""
        return self.every_stretches(level_ns) * 3600e9 / self.stretch_ns

    def level_ns(self, mission_ns: float) -> float:
        """The level above which one disturbance comes in so long, on average."""
        return self.location_ns + self.scale_ns * _level_above(self.stretch_ns / mission_ns, self.shape)


@dataclass(frozen=True)
class ReturnLevel:
    """``mission_ns`` of time see one disturbance above ``level_ns`` on average; 95 % interval by profile likelihood."""

    mission_ns: float
    level_ns: float
    low_ns: float
    high_ns: float


def _excesses(z: FloatArray, shape: float) -> FloatArray:
    """(1 + shape z)^(-1/shape): how many disturbances of a stretch are expected above z; 0 beyond an upper end."""
    if abs(shape) < 1e-7:
        return np.asarray(np.exp(np.minimum(-z, _LARGEST)))
    w = 1.0 + shape * z
    inside = np.exp(np.minimum(-np.log(np.maximum(w, 1e-300)) / shape, _LARGEST))
    return np.where(w > 0, inside, 0.0 if shape < 0 else np.inf)


def _level_above(expected: float, shape: float) -> float:
    """z above which ``expected`` disturbances of a stretch come: the inverse of :func:`_excesses`."""
    return -math.log(expected) if abs(shape) < 1e-7 else math.expm1(-shape * math.log(expected)) / shape


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Likelihood of maxima; of those below ``threshold_ns``, if any, only the number counts."""

    maxima: Maxima
    threshold_ns: float | None = None

    @cached_property
    def _unit(self) -> tuple[float, float]:
        """Mean and width of the values: the search uses numbers near 1."""
        values = (
            self.maxima.values_ns
            if self.threshold_ns is None
            else (self.maxima.values_ns[self.maxima.values_ns > self.threshold_ns])
        )
        return float(values.mean()), float(values.std()) or 1.0

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray, int]:
        """Ends of the cells that hold maxima (2 x cells), how many each holds, and how many lie below all of them."""
        centre, width = self._unit
        values, count = np.unique(self.maxima.values_ns, return_counts=True)
        above = values > (-math.inf if self.threshold_ns is None else self.threshold_ns)
        half = self.maxima.step_ns / 2
        ends = (np.array([values[above] - half, values[above] + half]) - centre) / width
        return ends, count[above].astype(np.float64), int(count[~above].sum())

    def _negative(self, location: float, log_scale: float, shape: float) -> float:
        """Negative logarithm of the likelihood of parameters in the unit of the search."""
        ends, count, below = self._cells
        first, last = _excesses((ends - location) * math.exp(-log_scale), shape)
        if not math.isfinite(first[0]) or not first[-1] > last[-1]:
            return math.inf
        total = float(count @ (last - np.log(-np.expm1(last - first))))
        return total + below * float(first[0])

    @cached_property
    def _best(self) -> tuple[FloatArray, float]:
        """Parameters, and the negative logarithm of the likelihood there."""
        _, count, below = self._cells
        location = -0.45 if not below else -1.0 - math.log1p(below / float(count.sum()))
        start = min((np.array([location, -0.25, shape]) for shape in _FIRST_SHAPES), key=lambda at: self._negative(*at))
        return _minimum(lambda at: self._negative(*at), start, _FINE)

    def fitted(self) -> TailModel:
        """The most likely tail; raises NoFit."""
        (location, log_scale, shape), _ = self._best
        centre, width = self._unit
        return TailModel(centre + location * width, math.exp(log_scale) * width, shape, self.maxima.stretch_ns)

    def return_level(self, mission_ns: float) -> ReturnLevel:
        """The level of a mission with its interval; raises NoFit."""
        expected = self.maxima.stretch_ns / mission_ns
        centre, width = self._unit
        best = (self.fitted().level_ns(mission_ns) - centre) / width
        ends = [_crossing(_Profile(self, expected, way < 0).excess, best, way) for way in (-1.0, 1.0)]
        return ReturnLevel(mission_ns, *(float(centre + at * width) for at in (best, *ends)))


@dataclass
class _Profile:
    """Profile likelihood of return levels, less the allowed fall; the search at a level starts at the result of the
    last one."""

    likelihood: Likelihood
    expected: float
    downwards: bool
    known: dict[float, float] = field(default_factory=dict)
    at: FloatArray | None = None

    def excess(self, level: float) -> float:
        """Below 0 within the interval."""
        if level not in self.known:
            best, least = self.likelihood._best
            start = self._start(level, best if self.at is None else self.at)
            if self.downwards and not math.isfinite(self._negative(level, start)):
                return _SURELY_OUTSIDE
            self.at, value = _minimum(lambda at: self._negative(level, at), start, _COARSE)
            self.known[level] = value - least - _HALF_CHI2
        return self.known[level]

    def _negative(self, level: float, at: FloatArray) -> float:
        """Negative logarithm of the likelihood of location and shape, with the scale that gives the level."""
        location, shape = at[0], at[-1]
        scale = (level - location) / _level_above(self.expected, shape)
        return self.likelihood._negative(location, math.log(scale), shape) if scale > 0 else math.inf

    def _start(self, level: float, at: FloatArray) -> FloatArray:
        """As before, or without an end of the tail where the data are impossible with it."""
        start = np.array([at[0], at[-1]])
        if math.isfinite(self._negative(level, start)):
            return start
        return np.array([self.likelihood._best[0][0], 0.0])


def _minimum(
    function: Callable[[FloatArray], float],
    start: FloatArray,
    tolerance: Mapping[str, float],
) -> tuple[FloatArray, float]:
    """Where a function is least; raises NoFit."""
    optimize: Any = import_module("scipy.optimize")  # takes 0.2 s: only where there is something to estimate
    simplex = np.vstack([start, start + 0.15 * np.eye(start.size)])
    if not math.isfinite(function(start)):
        raise NoFit("the fit started at parameters under which the data are impossible")
    result = optimize.minimize(
        function, start, method="Nelder-Mead", options={"initial_simplex": simplex, "maxfev": 800, **tolerance}
    )
    if not result.success or not math.isfinite(result.fun):
        raise NoFit("no maximum of the likelihood was found")
    return result.x, float(result.fun)


def _crossing(beyond: Callable[[float], float], best: float, way: float) -> float:
    """The end of an interval in one direction from ``best``: where ``beyond`` becomes positive; raises NoFit."""
    optimize: Any = import_module("scipy.optimize")
    inside, step = best, 0.25
    while beyond(outside := best + way * step) < 0:
        inside, step = outside, step * 2
        if step > _FARTHEST:
            raise NoFit("the data do not bound the estimate")
    return float(optimize.brentq(beyond, *sorted((inside, outside)), xtol=0.01 * step)) if beyond(inside) < 0 else best
