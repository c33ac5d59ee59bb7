# SPDX-License-Identifier: GPL-2.0-or-later
"""Trend of a series: Mann-Kendall's test, corrected for dependence, and the line of median slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special
from fastenough.analysis.changes import ranks

FloatArray = NDArray[np.float64]
_SIGNIFICANT = 1.96
"""Autocorrelations of ranks count from so many standard errors on (Hamed and Rao 1998)."""


@dataclass(frozen=True)
class TrendTest:
    """``rises``: the sign of the trend; ``chance``: of one as strong, either way, without a trend."""

    rises: bool
    chance: float


def mann_kendall(values: FloatArray) -> TrendTest:
    """Mann-Kendall's test of values (T,) in order of time, with the variance of Hamed and Rao (1998)."""
    n = values.size
    total = float(np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)].sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if n < 3 or variance <= 0:
        return TrendTest(total > 0, 1.0)
    z = (abs(total) - 1) / np.sqrt(variance * _inflation(values))
    return TrendTest(total > 0, float(min(1.0, 2 * special.ndtr(-z))))


def _inflation(values: FloatArray) -> float:
    """How much greater dependence makes the variance: by the autocorrelation of the ranks around the median slope."""
    n = values.size
    around = ranks(values - median_slope(values) * np.arange(n))
    around -= around.mean()
    lags = np.arange(1, n)
    correlation = np.correlate(around, around, "full")[n:] / max(float(around @ around), 1e-9)
    correlation[np.abs(correlation) < _SIGNIFICANT / np.sqrt(n)] = 0.0
    weights = (n - lags) * (n - lags - 1) * (n - lags - 2)
    return float(max(1.0, 1 + 2 / (n * (n - 1) * (n - 2)) * (weights * correlation).sum()))


def median_slope(values: FloatArray, places: NDArray[np.int64] | None = None) -> float:
    """Median of the slopes of all pairs of values, per place (Theil 1950, Sen 1968); default: one place each."""
    places = np.arange(values.size) if places is None else places
    first, second = np.triu_indices(values.size, 1)
    slopes = (values[second] - values[first]) / (places[second] - places[first])
    return float(np.median(slopes)) if slopes.size else 0.0


def line_through(values: FloatArray) -> tuple[float, float]:
    """Begin and end of the line of median slope through values; a long series is thinned evenly."""
    places = np.unique(np.linspace(0, values.size - 1, 400).astype(np.int64))
    slope = median_slope(values[places], places)
    level = float(np.median(values - slope * np.arange(values.size)))
    return level, level + slope * (values.size - 1)
