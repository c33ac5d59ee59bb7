# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runs side by side: differences with intervals, and in what the runs differ.

Runs may be compared only where they measured the same thing; what else differs is named, so that nobody
takes the sum of two changes for the effect of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastenough.analysis import bounds
from fastenough.analysis.measures import CONFIDENCE, QUANTILES
from fastenough.analysis.merged import (
    FloatArray,
    Merged,
    MixedRuns,
    first_difference,
    merge_samples,
    run_key,
    series_key,
)
from fastenough.model import BadInput, FastenoughError, Series
from fastenough.recording import Recording

_MUST_AGREE = ("probe", "parameters")
_DRAWS = 4000
_SEED = 20260101


@dataclass(frozen=True)
class QuantileDifference:
    """Second minus first, in ns, with the interval; None where a run has too few samples for the quantile."""

    quantile: float
    first_ns: float | None
    second_ns: float | None
    difference_ns: float | None
    lower_ns: float | None
    upper_ns: float | None


@dataclass(frozen=True)
class RateDifference:
    """Rates above a limit and second minus first with its interval."""

    limit_ns: float
    first: tuple[int, int]
    second: tuple[int, int]
    difference: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Comparison:
    """One kind of series of two runs.  The maxima are given without an interval: they have none."""

    first_id: str
    second_id: str
    series: str
    n: tuple[int, int]
    differs: tuple[str, ...]
    quantiles: tuple[QuantileDifference, ...]
    maxima_ns: tuple[float | None, float | None]
    rates: tuple[RateDifference, ...]
    confidence: float


def _refuse(first: Recording, second: Recording, difference: str) -> MixedRuns:
    return MixedRuns(f"runs {first.run_id} and {second.run_id} cannot be compared: {difference}")


def _differences(first: Recording, second: Recording) -> tuple[str, ...]:
    """What differs between two runs; raises MixedRuns where that forbids a comparison."""
    one, other = run_key(first), run_key(second)
    for name in _MUST_AGREE:
        difference = first_difference({name: one[name]}, {name: other[name]})
        if difference is not None:
            raise _refuse(first, second, difference)
    if ("emulated" in one["marks"]) != ("emulated" in other["marks"]):
        raise _refuse(first, second, "marks differ: one of them ran under emulation, where time means nothing")
    return tuple(text for name in one
                 if (text := first_difference({name: one[name]}, {name: other[name]})) is not None)


def _bootstrap_ranks(quantile: float, n: int, random: np.random.Generator) -> FloatArray:
    """Ranks which the sample quantile takes in resamples of n: exactly those of the bootstrap, without resampling."""
    rank = max(1, int(np.ceil(quantile * n - 1e-9)))
    return np.clip(np.ceil(random.beta(rank, n + 1 - rank, _DRAWS) * n), 1, n)


def _at_ranks(values: Merged, ranks: FloatArray, tail: bool) -> tuple[FloatArray, FloatArray]:
    lowest, highest, count = values.magnitudes() if tail else (*values.edges_ns(), values.histogram.count)
    position = np.searchsorted(np.cumsum(count), ranks)
    return lowest[position], highest[position]


def _quantile_difference(first: Merged, second: Merged, quantile: float, confidence: float) -> QuantileDifference:
    needed = round(1 / (1 - quantile))
    if min(first.n, second.n) < needed:
        return QuantileDifference(quantile, None, None, None, None, None)
    tail = quantile > 0.5
    random = np.random.default_rng(_SEED)
    low1, high1 = _at_ranks(first, _bootstrap_ranks(quantile, first.n, random), tail)
    low2, high2 = _at_ranks(second, _bootstrap_ranks(quantile, second.n, random), tail)
    seen = [float(_at_ranks(p, np.array([max(1, np.ceil(quantile * p.n - 1e-9))]), tail)[1][0])
            for p in (first, second)]
    outside = (1 - confidence) / 2
    return QuantileDifference(
        quantile, seen[0], seen[1], seen[1] - seen[0],
        float(np.quantile(low2 - high1, outside)), float(np.quantile(high2 - low1, 1 - outside)),
    )


def _rate_difference(first: Merged, second: Merged, limit_ns: float, confidence: float) -> RateDifference:
    counts = [(p.exceeded(limit_ns)[1], p.judged) for p in (first, second)]
    lower, upper = bounds.rate_difference(counts[0], counts[1], confidence)
    rates = [exceeded / n for exceeded, n in counts]
    return RateDifference(limit_ns, counts[0], counts[1], rates[1] - rates[0], lower, upper)


def _by_kind(recording: Recording) -> dict[str, list[Series]]:
    kinds: dict[str, list[Series]] = {}
    for series in recording.series:
        label = ", ".join(f"{name} {value}" for name, value in sorted(series.labels.items()))
        kinds.setdefault(f"{series.name} ({label})" if label else series.name, []).append(series)
    return kinds


def compare(first: Recording, second: Recording, limits_ns: tuple[float, ...] = (),
            confidence: float = CONFIDENCE) -> list[Comparison]:
    """Compare two runs, series by series, all CPUs together.

    ``limits_ns``: limits at which the rates above are compared.  The same input gives the same output: the
    bootstrap's seed is fixed.  Raises MixedRuns (says which key differed), BadInput (nothing in common), or
    FastenoughError for a run that is not believed.
    """
    for recording in (first, second):
        if recording.damage is not None:
            raise FastenoughError(f"run {recording.run_id} is not believed and cannot be compared: {recording.damage}")
    differs = _differences(first, second)
    mine, theirs = _by_kind(first), _by_kind(second)
    comparisons = []
    for name in (name for name in mine if name in theirs):
        difference = first_difference(series_key(mine[name][0]), series_key(theirs[name][0]))
        if difference is not None:
            raise _refuse(first, second, f"in series {name}, {difference}")
        one = merge_samples([(first, series) for series in mine[name]])
        other = merge_samples([(second, series) for series in theirs[name]])
        if not one.judged or not other.judged:
            continue
        comparisons.append(Comparison(
            first.run_id, second.run_id, name, (one.n, other.n), differs,
            tuple(_quantile_difference(one, other, quantile, confidence) for quantile in QUANTILES),
            (one.maximum_ns, other.maximum_ns),
            tuple(_rate_difference(one, other, limit, confidence) for limit in limits_ns),
            confidence,
        ))
    if not comparisons:
        raise BadInput(f"runs {first.run_id} and {second.run_id} have no series with samples in common; "
                       "compare runs of one probe")
    return comparisons
