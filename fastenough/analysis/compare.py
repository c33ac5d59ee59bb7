# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare runs with a base: differences with intervals, and the keys in which the runs differ.

Runs may be compared only where they measured the same thing; what else differs is named, so that nobody
takes the sum of two changes for the effect of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from fastenough.analysis import bounds
from fastenough.analysis.bootstrap import ResampledQuantiles, difference_of
from fastenough.analysis.clusters import LEAST_DISTURBANCES, holm, inflated, size_at_all_scales
from fastenough.analysis.differences import all_differences, refusal, run_values, series_values
from fastenough.analysis.disturbances import exceedances_over_time
from fastenough.analysis.keys import RUN_KEYS, SERIES_KEYS
from fastenough.analysis.measures import CONFIDENCE, QUANTILES
from fastenough.analysis.merged import Merged, MixedRuns, judged_series, merge_samples
from fastenough.model import BadInput, FastenoughError, Series
from fastenough.recording import Recording
from fastenough.recording.timeline import IntArray


@dataclass(frozen=True)
class QuantileDifference:
    """Second minus first, in ns, with the interval; None where a run has too few samples for the quantile, or blocks of
    time for an interval, or where its source only counted the values there.

    ``chance``: the least error at which the interval excludes zero.  ``shown``: zero is excluded also when all
    differences that are told together are judged together.
    """

    quantile: float
    first_ns: float | None = None
    second_ns: float | None = None
    difference_ns: float | None = None
    lower_ns: float | None = None
    upper_ns: float | None = None
    chance: float | None = None
    shown: bool = False

    @property
    def ends(self) -> tuple[float, float] | None:
        return None if self.lower_ns is None or self.upper_ns is None else (self.lower_ns, self.upper_ns)


@dataclass(frozen=True)
class RateDifference:
    """Rates above a limit and second minus first with its interval; ``chance`` and ``shown`` as of a quantile."""

    limit_ns: float
    first: tuple[int, int]
    second: tuple[int, int]
    difference: float
    lower: float
    upper: float
    chance: float
    shown: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower, self.upper


@dataclass(frozen=True)
class Comparison:
    """One kind of series of two runs.  The maxima are given without an interval: they have none.

    ``together``: so many differences were judged together (Holm 1979).
    """

    first_id: str
    second_id: str
    series: str
    n: tuple[int, int]
    differs: tuple[str, ...]
    quantiles: tuple[QuantileDifference, ...]
    maxima_ns: tuple[float | None, float | None]
    rates: tuple[RateDifference, ...]
    confidence: float
    together: int = 0

    def chances(self) -> list[float]:
        """p-values of the differences that have one, in order."""
        found = [*(each.chance for each in self.quantiles), *(each.chance for each in self.rates)]
        return [chance for chance in found if chance is not None]

    def with_shown(self, shown: Iterator[bool], together: int) -> Comparison:
        """The comparison, with each difference of a p-value marked as significant or not."""
        return replace(
            self,
            together=together,
            quantiles=tuple(_marked(each, shown) for each in self.quantiles),
            rates=tuple(_marked(each, shown) for each in self.rates),
        )


_Tested = TypeVar("_Tested", QuantileDifference, RateDifference)


def _marked(each: _Tested, shown: Iterator[bool]) -> _Tested:
    return each if each.chance is None else replace(each, shown=next(shown))


def _refuse(first: Recording, second: Recording, difference: str) -> MixedRuns:
    return MixedRuns(f"runs {first.run_id} and {second.run_id} cannot be compared: {difference}")


def _differences(first: Recording, second: Recording) -> tuple[str, ...]:
    """Differences between two runs; raises MixedRuns if they forbid a comparison."""
    one, other = run_values(first), run_values(second)
    forbidding = refusal(RUN_KEYS, one, other)
    if forbidding is not None:
        raise _refuse(first, second, forbidding)
    return all_differences(RUN_KEYS, one, other)


def _quantile_difference(
    first: ResampledQuantiles, second: ResampledQuantiles, quantile: float, confidence: float
) -> QuantileDifference:
    one, other = first.value_ns(quantile), second.value_ns(quantile)
    if one is None or other is None:
        return QuantileDifference(quantile)
    seen = QuantileDifference(quantile, one, other, other - one)
    drawn = difference_of(first.edges(quantile), second.edges(quantile))
    if drawn is None:
        return seen
    lower_ns, upper_ns = drawn.interval(confidence)
    return replace(seen, lower_ns=lower_ns, upper_ns=upper_ns, chance=drawn.chance_of_none())


def _rate_difference(first: Merged, second: Merged, limit_ns: float, confidence: float) -> RateDifference:
    counts = [(p.exceeded(limit_ns)[1], p.judged) for p in (first, second)]
    one, other = independent_rates(counts[0], counts[1], *(exceedances_over_time(p, limit_ns) for p in (first, second)))
    lower, upper = bounds.rate_difference(one, other, confidence)
    rates = [exceeded / n for exceeded, n in counts]
    return RateDifference(
        limit_ns, counts[0], counts[1], rates[1] - rates[0], lower, upper, bounds.chance_of_equal_rates(one, other)
    )


def independent_rates(
    first: tuple[int, int], second: tuple[int, int], first_over_time: IntArray, second_over_time: IntArray
) -> tuple[tuple[float, float], tuple[float, float]]:
    """As how many independent (exceedances, activations) those of two samples count, by their exceedances over time.

    The size of clusters is that at the scale of time at which it is greatest.  Of few clusters it is hardly known, and
    of none not at all: where one sample holds fewer than ten, the greater size is that of both.
    """
    sizes = [
        float(inflated(counts.sum(), size_at_all_scales(counts))) for counts in (first_over_time, second_over_time)
    ]
    if min(first[0] / sizes[0], second[0] / sizes[1]) < LEAST_DISTURBANCES:
        sizes = [max(sizes)] * 2
    return (first[0] / sizes[0], first[1] / sizes[0]), (second[0] / sizes[1], second[1] / sizes[1])


def _kind(series: Series) -> str:
    label = ", ".join(f"{name} {value}" for name, value in sorted(series.labels.items()))
    return f"{series.name} ({label})" if label else series.name


def _judged_kinds(run: Recording) -> list[str]:
    return list(dict.fromkeys(map(_kind, judged_series(run))))


def _pairs(first: Recording, second: Recording) -> list[tuple[str, str]]:
    """Kinds of one name, and beside them those a verdict rests on, where none of these has its name in both.

    An instrument and a board that measures itself, user space and kernel call what they measure by other names.
    """
    mine, theirs = (list(dict.fromkeys(map(_kind, run.series))) for run in (first, second))
    pairs = [(name, name) for name in mine if name in theirs]
    judged = [_judged_kinds(run) for run in (first, second)]
    if not any(name in judged[1] for name in judged[0]):
        pairs += list(zip(judged[0], judged[1], strict=False))[:1]
    return pairs


@dataclass(frozen=True)
class Sides:
    """One kind of series of a base and of what is compared with it, each the merged samples of one or more runs;
    ``judged``: a verdict rests on it."""

    name: str
    judged: bool
    differs: tuple[str, ...]
    base: ResampledQuantiles
    other: ResampledQuantiles


def _sides(base: Sequence[Recording], other: Sequence[Recording], pair: tuple[str, str]) -> Sides | None:
    """Merge two groups of runs; None if one has no samples; raises MixedRuns."""
    name = " and ".join(dict.fromkeys(pair))
    parts = [
        [(run, series) for run in runs for series in run.series if _kind(series) == kind]
        for runs, kind in zip((base, other), pair, strict=True)
    ]
    keys = [series_values(*of[0]) for of in parts]
    forbidding = refusal(SERIES_KEYS, *keys)
    if forbidding is not None:
        raise _refuse(base[0], other[0], f"in series {name}, {forbidding}")
    one, two = (merge_samples(of) for of in parts)
    if not one.judged or not two.judged:
        return None
    differs = tuple(f"in series {name}, {text}" for text in all_differences(SERIES_KEYS, *keys))
    return Sides(name, pair[0] in _judged_kinds(base[0]), differs, ResampledQuantiles(one), ResampledQuantiles(two))


def sides_of(base: Sequence[Recording], other: Sequence[Recording]) -> tuple[tuple[str, ...], list[Sides]]:
    """In what two groups of runs differ that may each be merged, and their kinds of series beside each other.

    Raises MixedRuns (says which key differed, and why that matters), BadInput (nothing in common), or FastenoughError
    for a run that is not believed.
    """
    for recording in (*base, *other):
        if recording.damage is not None:
            raise FastenoughError(
                f"run {recording.run_id} cannot be compared (integrity check failed: {recording.damage})"
            )
    differs = _differences(base[0], other[0])
    found = [_sides(base, other, pair) for pair in _pairs(base[0], other[0])]
    sides = [each for each in found if each is not None]
    if not sides:
        raise BadInput(
            f"runs {base[0].run_id} and {other[0].run_id} have no measured series in common; compare runs of one probe"
        )
    return differs, sides


def comparison_of(
    sides: Sides, differs: tuple[str, ...], limits_ns: Sequence[float] = (), confidence: float = CONFIDENCE
) -> Comparison:
    """Compare one kind of series; nothing is marked as significant yet."""
    base, other = sides.base.merged, sides.other.merged
    return Comparison(
        "+".join(base.run_ids),
        "+".join(other.run_ids),
        sides.name,
        (base.n, other.n),
        differs + sides.differs,
        tuple(_quantile_difference(sides.base, sides.other, quantile, confidence) for quantile in QUANTILES),
        (base.maximum_ns, other.maximum_ns),
        tuple(_rate_difference(base, other, limit, confidence) for limit in limits_ns),
        confidence,
    )


def _with_base(base: Recording, other: Recording, limits_ns: Sequence[float], confidence: float) -> list[Comparison]:
    differs, found = sides_of([base], [other])
    return [comparison_of(sides, differs, limits_ns, confidence) for sides in found]


def judged_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons, with the differences marked that are significant together (Holm 1979)."""
    chances = [chance for each in comparisons for chance in each.chances()]
    shown = iter(holm(chances, 1 - comparisons[0].confidence if comparisons else 0.0))
    return [each.with_shown(shown, len(chances)) for each in comparisons]


def compare(
    base: Recording, *others: Recording, limits_ns: Sequence[float] = (), confidence: float = CONFIDENCE
) -> list[Comparison]:
    """Compare runs with a base, one after the other, series by series, all CPUs together.

    ``limits_ns``: limits at which the rates above are compared.  Intervals come from blocks of time (:mod:`drawn`) and
    hold within these runs: two runs do not say how much runs differ.  Each is one by itself; what is marked as shown
    holds for all of them together.  The same input gives the same output: the bootstrap's seed is fixed.  Raises as
    :func:`sides_of` does.
    """
    return judged_together([each for other in others for each in _with_base(base, other, limits_ns, confidence)])
