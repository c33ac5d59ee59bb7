# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runs side by side: differences with intervals, and in what the runs differ.

Runs may be compared only where they measured the same thing; what else differs is named, so that nobody
takes the sum of two changes for the effect of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fastenough.analysis import bounds
from fastenough.analysis.differences import all_differences, difference, run_values, series_values
from fastenough.analysis.disturbances import size_of_clusters
from fastenough.analysis.keys import FOR_COMPARING, RUN_KEYS, SERIES_KEYS
from fastenough.analysis.measures import CONFIDENCE, QUANTILES, drawn_ranks
from fastenough.analysis.merged import FloatArray, Merged, MixedRuns, judged_series, merge_samples
from fastenough.model import BadInput, FastenoughError, Series
from fastenough.recording import Recording

_SEED = 20260101


@dataclass(frozen=True)
class QuantileDifference:
    """Second minus first, in ns, with the interval; None where a run has too few samples for the quantile, or blocks of
    time for an interval, or where its source only counted the values there."""

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
    one, other = run_values(first), run_values(second)
    forbidding = difference(RUN_KEYS, one, other, FOR_COMPARING)
    if forbidding is not None:
        raise _refuse(first, second, forbidding)
    return all_differences(RUN_KEYS, one, other)


def _at_ranks(values: Merged, ranks: FloatArray, tail: bool) -> tuple[FloatArray, FloatArray]:
    lowest, highest, count = values.magnitudes() if tail else (*values.edges_ns(), values.histogram.count)
    position = np.searchsorted(np.cumsum(count), ranks)
    return lowest[position], highest[position]


def _quantile_difference(first: Merged, second: Merged, quantile: float, confidence: float) -> QuantileDifference:
    needed = round(1 / (1 - quantile))
    if min(first.n, second.n) < needed:
        return QuantileDifference(quantile, None, None, None, None, None)
    tail = quantile > 0.5
    seen = [float(_at_ranks(p, np.array([max(1, np.ceil(quantile * p.n - 1e-9))]), tail)[1][0])
            for p in (first, second)]
    for place, p in enumerate((first, second)):
        if p.overflow_from_ns is not None and seen[place] >= p.overflow_from_ns:
            return QuantileDifference(quantile, None, None, None, None, None)
    drawn = drawn_ranks(first, quantile), drawn_ranks(second, quantile)
    if drawn[0] is None or drawn[1] is None:
        return QuantileDifference(quantile, seen[0], seen[1], seen[1] - seen[0], None, None)
    low1, high1 = _at_ranks(first, drawn[0], tail)
    low2, high2 = _at_ranks(second, np.random.default_rng(_SEED).permutation(drawn[1]), tail)
    outside = (1 - confidence) / 2
    return QuantileDifference(
        quantile, seen[0], seen[1], seen[1] - seen[0],
        float(np.quantile(low2 - high1, outside)), float(np.quantile(high2 - low1, 1 - outside)),
    )


def _rate_difference(first: Merged, second: Merged, limit_ns: float, confidence: float) -> RateDifference:
    counts = [(p.exceeded(limit_ns)[1], p.judged) for p in (first, second)]
    sizes = [size_of_clusters(p, limit_ns) for p in (first, second)]
    one, other = ((exceeded / size, n / size) for (exceeded, n), size in zip(counts, sizes, strict=True))
    lower, upper = bounds.rate_difference(one, other, confidence)
    rates = [exceeded / n for exceeded, n in counts]
    return RateDifference(limit_ns, counts[0], counts[1], rates[1] - rates[0], lower, upper)


def _by_kind(recording: Recording) -> dict[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for series in recording.series:
        label = ", ".join(f"{name} {value}" for name, value in sorted(series.labels.items()))
        found.setdefault(f"{series.name} ({label})" if label else series.name, []).append(series)
    return found


def _pairs(first: Recording, second: Recording) -> list[tuple[str, list[Series], list[Series]]]:
    """Series of one name, and beside them the series a verdict rests on, where none of these has its name in both.

    An instrument and a board that measures itself, user space and kernel call what they measure by other names.
    """
    mine, theirs = _by_kind(first), _by_kind(second)
    pairs = [(name, mine[name], theirs[name]) for name in mine if name in theirs]
    judged = [{name: series for name, series in kinds.items() if any(each in judged_series(run) for each in series)}
              for run, kinds in ((first, mine), (second, theirs))]
    if not any(name in judged[1] for name in judged[0]):
        pairs += [(f"{one} and {other}", judged[0][one], judged[1][other])
                  for one, other in zip(judged[0], judged[1], strict=False)][:1]
    return pairs


def _compared(first: Recording, second: Recording, pair: tuple[str, list[Series], list[Series]],
              limits_ns: tuple[float, ...], confidence: float) -> Comparison | None:
    """None where one of them holds no sample; raises MixedRuns."""
    name, mine, theirs = pair
    one_key, other_key = series_values(first, mine[0]), series_values(second, theirs[0])
    forbidding = difference(SERIES_KEYS, one_key, other_key, FOR_COMPARING)
    if forbidding is not None:
        raise _refuse(first, second, f"in series {name}, {forbidding}")
    one = merge_samples([(first, series) for series in mine])
    other = merge_samples([(second, series) for series in theirs])
    if not one.judged or not other.judged:
        return None
    return Comparison(
        first.run_id, second.run_id, name, (one.n, other.n),
        tuple(f"in series {name}, {text}" for text in all_differences(SERIES_KEYS, one_key, other_key)),
        tuple(_quantile_difference(one, other, quantile, confidence) for quantile in QUANTILES),
        (one.maximum_ns, other.maximum_ns),
        tuple(_rate_difference(one, other, limit, confidence) for limit in limits_ns),
        confidence,
    )


def compare(first: Recording, second: Recording, limits_ns: tuple[float, ...] = (),
            confidence: float = CONFIDENCE) -> list[Comparison]:
    """Compare two runs, series by series, all CPUs together.

    ``limits_ns``: limits at which the rates above are compared.  Intervals come from blocks of time (:mod:`resampling`)
    and hold within these runs: two runs do not say how much runs differ.  The same input gives the same output: the
    bootstrap's seed is fixed.  Raises MixedRuns (says which key differed), BadInput (nothing in common), or
    FastenoughError for a run that is not believed.
    """
    for recording in (first, second):
        if recording.damage is not None:
            raise FastenoughError(f"run {recording.run_id} is not believed and cannot be compared: {recording.damage}")
    differs = _differences(first, second)
    compared = [_compared(first, second, pair, limits_ns, confidence) for pair in _pairs(first, second)]
    comparisons = [replace(each, differs=differs + each.differs) for each in compared if each is not None]
    if not comparisons:
        raise BadInput(f"runs {first.run_id} and {second.run_id} have no series with samples in common; "
                       "compare runs of one probe")
    return comparisons
