# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare runs with a base: differences with intervals, the keys in which the runs differ, and the sentences on both.

Runs may be compared only if they measured the same act.  All other differences are listed, so that the sum of two
changes is not taken for the effect of one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from fastenough import words
from fastenough.analysis import bounds
from fastenough.analysis.bootstrap import (
    BootstrapDifference,
    ResampledQuantiles,
    difference_of,
    no_interval_of_difference,
)
from fastenough.analysis.checks import findings_of
from fastenough.analysis.clusters import LEAST_DISTURBANCES, holm, inflated, size_at_all_scales
from fastenough.analysis.differences import all_differences, refusal, run_values, series_values
from fastenough.analysis.disturbances import exceedances_over_time
from fastenough.analysis.keys import RUN_KEYS, SERIES_KEYS
from fastenough.analysis.machine import counts_instructions, emulation_cautions
from fastenough.analysis.measures import CONFIDENCE, QUANTILES, least_maximum_ns
from fastenough.analysis.merged import Merged, MixedRuns, judged_series, merge_samples, require_one_interval
from fastenough.analysis.paired import Effect
from fastenough.analysis.resampling import NoInterval
from fastenough.model import BadInput, FastenoughError, Role, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.timeline import IntArray

GREATER, SMALLER, OPEN, NONE = "greater", "smaller", "may be equal", "no interval"
BY_ITSELF = " by itself"
ORDINALS = ("second", "third", "fourth")
"""Names of the runs compared with the base, in order."""


class NoCommonSeries(BadInput):
    """Two runs have no series in common that has values in both."""


@dataclass(frozen=True)
class QuantileDifference:
    """Second minus first, in ns, with its interval; quantiles are those of all activations.  None if a run has too few
    samples for the quantile, if its source only counted the values there, or if it lies among missed periods without a
    value.

    ``lower_ns`` and ``upper_ns``: ends of the interval; one of them is None where the quantile of a run may lie among
    missed periods.  ``p_value``: the least error at which the interval excludes zero; None without an interval.
    ``significant``: zero is also excluded when all reported differences are judged together.  ``no_interval``: why a
    difference has no interval.
    """

    quantile: float
    first_ns: float | None = None
    second_ns: float | None = None
    difference_ns: float | None = None
    lower_ns: float | None = None
    upper_ns: float | None = None
    p_value: float | None = None
    significant: bool = False
    no_interval: NoInterval | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        if self.p_value is None:
            return None
        lower_ns = -math.inf if self.lower_ns is None else self.lower_ns
        return lower_ns, math.inf if self.upper_ns is None else self.upper_ns


@dataclass(frozen=True)
class RateDifference:
    """Rates above a limit and second minus first with its interval; ``p_value`` and ``significant`` as of a
    quantile."""

    limit_ns: float
    first: tuple[int, int]
    second: tuple[int, int]
    difference: float
    lower: float
    upper: float
    p_value: float
    significant: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower, self.upper

    @property
    def shares(self) -> tuple[float, float]:
        """Rates of both runs."""
        return self.first[0] / self.first[1], self.second[0] / self.second[1]


@dataclass(frozen=True)
class Comparison:
    """One kind of series of two runs.  The maxima are given without an interval: they have none.  A maximum is None if
    an imported source left out values that may exceed it; ``maxima_at_least_ns`` has its lower bound, if one is known.

    ``tested_differences``: number of differences that were judged together (Holm 1979).  ``missed``: number of missed
    periods without a value of both runs.
    """

    first_id: str
    second_id: str
    series: str
    n: tuple[int, int]
    differences: tuple[str, ...]
    quantiles: tuple[QuantileDifference, ...]
    maxima_ns: tuple[float | None, float | None]
    rates: tuple[RateDifference, ...]
    confidence: float
    tested_differences: int = 0
    maxima_at_least_ns: tuple[float | None, float | None] = (None, None)
    missed: tuple[int, int] = (0, 0)

    @property
    def maxima(self) -> tuple[tuple[float | None, float | None], ...]:
        """Of both runs: the maximum, and the lower bound of one that is unknown."""
        return tuple(zip(self.maxima_ns, self.maxima_at_least_ns, strict=True))

    def p_values(self) -> list[float]:
        """p-values of the differences that have one, in order."""
        p_values = [
            *(difference.p_value for difference in self.quantiles),
            *(difference.p_value for difference in self.rates),
        ]
        return [p_value for p_value in p_values if p_value is not None]

    def no_interval(self) -> NoInterval:
        """Why no difference has an interval, if none has: the reason at any quantile, dependence first."""
        reasons = {difference.no_interval for difference in self.quantiles}
        order = (NoInterval.DEPENDENT, NoInterval.FEW_SAMPLES, NoInterval.MISSED)
        return next((reason for reason in order if reason in reasons), NoInterval.FEW_SAMPLES)

    def with_significance(self, significant: Iterator[bool], tested_differences: int) -> Comparison:
        """The comparison, with each difference of a p-value marked as significant or not."""
        return replace(
            self,
            tested_differences=tested_differences,
            quantiles=tuple(_marked(difference, significant) for difference in self.quantiles),
            rates=tuple(_marked(difference, significant) for difference in self.rates),
        )


_Tested = TypeVar("_Tested", QuantileDifference, RateDifference)


def _marked(difference: _Tested, significant: Iterator[bool]) -> _Tested:
    return difference if difference.p_value is None else replace(difference, significant=next(significant))


def _refuse(first: Recording, second: Recording, difference: str) -> MixedRuns:
    return MixedRuns(f"runs {first.run_id} and {second.run_id} cannot be compared: {difference}")


def _differences(first: Recording, second: Recording) -> tuple[str, ...]:
    """Differences between two runs; raises MixedRuns if they forbid a comparison."""
    first_values, second_values = run_values(first), run_values(second)
    forbidding = refusal(RUN_KEYS, first_values, second_values)
    if forbidding is not None:
        raise _refuse(first, second, forbidding)
    return all_differences(RUN_KEYS, first_values, second_values)


def _quantile_difference(
    first: ResampledQuantiles, second: ResampledQuantiles, quantile: float, confidence: float
) -> QuantileDifference:
    """The difference at a quantile.  Where that of one run may lie among missed periods, its interval has one end."""
    first_ns, second_ns = first.value_ns(quantile), second.value_ns(quantile)
    difference_ns = None if first_ns is None or second_ns is None else second_ns - first_ns
    observed = QuantileDifference(quantile, first_ns, second_ns, difference_ns)
    sides = (first, second)
    if any(side.value_ns(quantile) is None and not side.is_missed(quantile) for side in sides):
        return observed
    if any(side.merged.two_sided and side.is_missed(quantile) for side in sides):
        return replace(observed, no_interval=NoInterval.MISSED)
    resampled = difference_of(first.edges(quantile), second.edges(quantile))
    if resampled is None:
        return replace(observed, no_interval=no_interval_of_difference(first, second, quantile))
    ends = tuple(end if math.isfinite(end) else None for end in resampled.interval(confidence))
    if ends == (None, None):
        return replace(observed, no_interval=NoInterval.MISSED)
    return replace(observed, lower_ns=ends[0], upper_ns=ends[1], p_value=resampled.chance_of_none())


def _rate_difference(first: Merged, second: Merged, limit_ns: float, confidence: float) -> RateDifference:
    """The difference of what surely exceeds the limit.

    Values in the bucket of the limit and lost values may exceed it.  The interval covers every resulting difference;
    the p-value is the greatest.
    """
    sides = (first, second)
    surely, stored = zip(*(side.exceeded(limit_ns) for side in sides), strict=True)
    possibly = tuple(count + side.lost for count, side in zip(stored, sides, strict=True))
    sizes = first.judged + first.lost, second.judged + second.lost
    over_time = [exceedances_over_time(side, limit_ns) for side in sides]
    least, greatest = extremes = (possibly[0], surely[1]), (surely[0], possibly[1])
    rates = {counts: independent_rates((counts[0], sizes[0]), (counts[1], sizes[1]), *over_time) for counts in extremes}
    differences = {counts: counts[1] / sizes[1] - counts[0] / sizes[0] for counts in (*extremes, surely)}
    may_be_equal = least != greatest and differences[least] <= 0 <= differences[greatest]
    return RateDifference(
        limit_ns,
        (surely[0], sizes[0]),
        (surely[1], sizes[1]),
        differences[surely],
        bounds.rate_difference(*rates[least], confidence)[0],
        bounds.rate_difference(*rates[greatest], confidence)[1],
        1.0 if may_be_equal else max(bounds.chance_of_equal_rates(*each) for each in rates.values()),
    )


def independent_rates(
    first: tuple[int, int], second: tuple[int, int], first_over_time: IntArray, second_over_time: IntArray
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Equivalent numbers of independent (exceedances, activations) of two samples, by their exceedances over time.

    The size of clusters is that at the time scale at which it is greatest.  A few clusters hardly determine it: if one
    sample has fewer than ten, the greater size is used for both.
    """
    sizes = [
        float(inflated(counts.sum(), size_at_all_scales(counts))) for counts in (first_over_time, second_over_time)
    ]
    if min(first[0] / sizes[0], second[0] / sizes[1]) < LEAST_DISTURBANCES:
        sizes = [max(sizes)] * 2
    return (first[0] / sizes[0], first[1] / sizes[0]), (second[0] / sizes[1], second[1] / sizes[1])


def kind_name(series: Series) -> str:
    """Name of a series with its labels."""
    label = ", ".join(f"{name} {value}" for name, value in sorted(series.labels.items()))
    return f"{series.name} ({label})" if label else series.name


def judged_kinds(run: Recording) -> list[str]:
    return list(dict.fromkeys(map(kind_name, judged_series(run))))


def _pairs(first: Recording, second: Recording) -> list[tuple[str, str]]:
    """Pairs of kinds with the same name; also the first judged kinds of both, if no judged kind is in both.

    Instruments, boards, user space and kernel use different names for the same latency.
    """
    first_kinds, second_kinds = (list(dict.fromkeys(map(kind_name, run.series))) for run in (first, second))
    pairs = [(name, name) for name in first_kinds if name in second_kinds]
    judged = [judged_kinds(run) for run in (first, second)]
    if not any(name in judged[1] for name in judged[0]):
        pairs += list(zip(judged[0], judged[1], strict=False))[:1]
    return pairs


@dataclass(frozen=True)
class Sides:
    """One kind of series of the base and of the other runs, each merged; ``judged``: a verdict rests on it."""

    name: str
    judged: bool
    differences: tuple[str, ...]
    base: ResampledQuantiles
    other: ResampledQuantiles

    @property
    def of_activations(self) -> tuple[ResampledQuantiles, ResampledQuantiles]:
        """Base and other with quantiles of all activations."""
        return self.base.of_activations, self.other.of_activations

    def difference_at(
        self, quantile: float, more_ns: float = 0.0, more_share: float = 0.0
    ) -> BootstrapDifference | None:
        """Difference of a quantile of all activations, less the allowed growth; see :func:`difference_of`."""
        base, other = self.of_activations
        return difference_of(base.edges(quantile), other.edges(quantile), more_ns, more_share)


def _sides(base: Sequence[Recording], other: Sequence[Recording], pair: tuple[str, str]) -> Sides | None:
    """Merge two groups of runs; None if one has no samples; raises MixedRuns."""
    name = " and ".join(dict.fromkeys(pair))
    parts = [
        [(run, series) for run in runs for series in run.series if kind_name(series) == kind]
        for runs, kind in zip((base, other), pair, strict=True)
    ]
    keys = [series_values(*group[0]) for group in parts]
    forbidding = refusal(SERIES_KEYS, *keys)
    if forbidding is not None:
        raise _refuse(base[0], other[0], f"in series {name}, {forbidding}")
    merged_base, merged_other = (merge_samples(group) for group in parts)
    if not merged_base.judged or not merged_other.judged:
        return None
    differences = tuple(f"in series {name}, {text}" for text in all_differences(SERIES_KEYS, *keys))
    return Sides(
        name,
        pair[0] in judged_kinds(base[0]),
        differences,
        ResampledQuantiles(merged_base),
        ResampledQuantiles(merged_other),
    )


def sides_of(base: Sequence[Recording], other: Sequence[Recording]) -> tuple[tuple[str, ...], list[Sides]]:
    """The differences between two groups of mergeable runs, and their common kinds of series.

    Raises MixedRuns (names what differs and why it matters), NoCommonSeries, or FastenoughError for a run whose
    integrity check failed.
    """
    for recording in (*base, *other):
        if recording.damage is not None:
            raise FastenoughError(
                f"run {recording.run_id} cannot be compared (integrity check failed: {recording.damage})"
            )
        require_one_interval(recording)
    differences = _differences(base[0], other[0])
    candidates = [_sides(base, other, pair) for pair in _pairs(base[0], other[0])]
    sides = [candidate for candidate in candidates if candidate is not None]
    if not sides:
        raise NoCommonSeries(
            f"runs {base[0].run_id} and {other[0].run_id} have no measured series in common; compare runs of one probe"
        )
    return differences, sides


def comparison_of(
    sides: Sides, differences: tuple[str, ...], limits_ns: Sequence[float] = (), confidence: float = CONFIDENCE
) -> Comparison:
    """Compare one kind of series; nothing is marked as significant yet.

    No rates if a source left out an unknown number of values.
    """
    base, other = sides.base.merged, sides.other.merged
    complete = not base.omitted_count_unknown and not other.omitted_count_unknown
    return Comparison(
        "+".join(base.run_ids),
        "+".join(other.run_ids),
        sides.name,
        (base.n, other.n),
        differences + sides.differences,
        tuple(_quantile_difference(*sides.of_activations, quantile, confidence) for quantile in QUANTILES),
        (base.known_maximum_ns, other.known_maximum_ns),
        tuple(_rate_difference(base, other, limit, confidence) for limit in limits_ns if complete),
        confidence,
        maxima_at_least_ns=(least_maximum_ns(base), least_maximum_ns(other)),
        missed=(base.missed_uncharged, other.missed_uncharged),
    )


def _with_base(base: Recording, other: Recording, limits_ns: Sequence[float], confidence: float) -> list[Comparison]:
    differences, all_sides = sides_of([base], [other])
    return [comparison_of(sides, differences, limits_ns, confidence) for sides in all_sides]


def judged_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons, with the differences marked that are significant together (Holm 1979)."""
    p_values = [p_value for comparison in comparisons for p_value in comparison.p_values()]
    significant = iter(holm(p_values, 1 - comparisons[0].confidence if comparisons else 0.0))
    return [comparison.with_significance(significant, len(p_values)) for comparison in comparisons]


def compare(
    base: Recording, *others: Recording, limits_ns: Sequence[float] = (), confidence: float = CONFIDENCE
) -> list[Comparison]:
    """Compare runs with a base, one after the other, series by series, all CPUs together.

    ``limits_ns``: limits at which exceedance rates are compared.  Intervals come from blocks of time (:mod:`bootstrap`)
    and apply within these runs: two runs do not show how much runs differ.  Each interval is for one difference; the
    mark ``significant`` holds for all of them together.  The seed is fixed, so the same input gives the same output.
    Raises as :func:`sides_of` does.
    """
    return judged_together(
        [comparison for other in others for comparison in _with_base(base, other, limits_ns, confidence)]
    )


# --- sentences


class Difference(Protocol):
    """A difference with an interval."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Ends of its interval; None without one."""

    @property
    def significant(self) -> bool:
        """Whether it is significant when all reported differences are judged together."""


_AtQuantile = TypeVar("_AtQuantile", QuantileDifference, Effect)


def finding(difference: Difference) -> str:
    """How the run compares with the base, by the interval of a difference."""
    if difference.ends is None:
        return NONE
    lower, upper = difference.ends
    if lower <= 0 <= upper:
        return OPEN
    return (GREATER if lower > 0 else SMALLER) + ("" if difference.significant else BY_ITSELF)


def interval(difference: QuantileDifference) -> str:
    """The interval in µs, without the unit."""
    return words.microseconds_interval(*(difference.ends or (None, None)))


def significant_quantiles(differences: Sequence[_AtQuantile]) -> tuple[str, _AtQuantile] | None:
    """Text of the quantiles with a significant difference, by direction, and the highest of them; None if there is
    none."""
    significant: list[_AtQuantile] = []
    phrases: list[str] = []
    for direction in (GREATER, SMALLER):
        matching = [difference for difference in differences if finding(difference) == direction]
        if matching:
            phrases.append(f"{direction} at {', '.join(words.percent(item.quantile) for item in matching)}")
            significant += matching
    return (" and ".join(phrases), max(significant, key=lambda item: item.quantile)) if significant else None


def rate_text(limit: str, is_more: bool, first: float, second: float) -> str:
    """Text of a significant difference of the rates above a limit."""
    return (
        f"values above {limit} {'more' if is_more else 'less'} often "
        f"({words.rate(second)} instead of {words.rate(first)})"
    )


def comparison_text(comparison: Comparison, which: str) -> str:
    """Comparison of one kind of series of a run, with figures of the highest quantile and of the rates that differ, and
    the numbers of missed periods without a value."""
    phrases: list[str] = []
    significant = significant_quantiles(comparison.quantiles)
    if significant is not None:
        phrases.append(f"is {significant[0]} ({_figures(significant[1], comparison.confidence)})")
    phrases += [
        f"has {rate_text(words.exact_time(rate.limit_ns), finding(rate) == GREATER, *rate.shares)}"
        for rate in comparison.rates
        if finding(rate) in (GREATER, SMALLER)
    ]
    missed = _missed_text([comparison], which)
    if phrases:
        return f"the {which} run {' and '.join(phrases)}{missed}"
    if comparison.p_values():
        return f"no difference of the {which} run is shown{missed}"
    return f"no interval for the {which} run ({comparison.no_interval()}){missed}"


def _figures(tail: QuantileDifference, confidence: float) -> str:
    """The difference at a quantile, if it is known, and its interval."""
    difference = "" if tail.difference_ns is None else f" by {words.nearest_microseconds(tail.difference_ns)} µs"
    return f"at {words.percent(tail.quantile)}{difference}, {words.percent(confidence)} interval {interval(tail)} µs"


def _missed_text(comparisons: Sequence[Comparison], which: str) -> str:
    """The numbers of missed periods without a value; empty without any."""
    base, other = (sum(comparison.missed[side] for comparison in comparisons) for side in (0, 1))
    if not base and not other:
        return ""
    return f"; missed periods without a value: {base:,} of the base, {other:,} of the {which} run"


def _relevant(comparisons: Sequence[Comparison], judged: Collection[str]) -> list[Comparison]:
    """The comparisons of judged series, or all if there are none."""
    return [comparison for comparison in comparisons if comparison.series.split(" ")[0] in judged] or list(comparisons)


def _is_too_short(comparison: Comparison) -> bool:
    """Whether no difference has an interval, for lack of samples."""
    return not comparison.p_values() and comparison.no_interval() is NoInterval.FEW_SAMPLES


def conclusion(comparisons: Sequence[Comparison], judged: Collection[str]) -> str:
    """One sentence about the judged series, or about all if there are none."""
    others = list(dict.fromkeys(comparison.second_id for comparison in comparisons))
    if len(others) > 1 and all(map(_is_too_short, comparisons)):
        return "too little data for any interval; measure at least 30 s per run"
    sentences = [
        _conclusion_of_run(
            [comparison for comparison in comparisons if comparison.second_id == run], judged, ORDINALS[place]
        )
        for place, run in enumerate(others)
    ]
    return "; ".join(sentences)


def _conclusion_of_run(comparisons: Sequence[Comparison], judged: Collection[str], which: str) -> str:
    relevant = _relevant(comparisons, judged)
    if len(relevant) == 1:
        return f"{relevant[0].series}: {comparison_text(relevant[0], which)}"
    directions = [{*map(finding, comparison.quantiles), *map(finding, comparison.rates)} for comparison in relevant]
    greater, smaller = (sum(what in difference for difference in directions) for what in (GREATER, SMALLER))
    missed = _missed_text(relevant, which)
    if not greater and not smaller:
        return f"no difference of the {which} run is shown in any of {len(relevant)} series{missed}"
    where = "at some quantile or limit" if any(comparison.rates for comparison in relevant) else "at some quantile"
    return (
        f"of {len(relevant)} series, the {which} run is greater {where} in {greater} and smaller in "
        f"{smaller}; each is below{missed}"
    )


def cautions(recordings: Sequence[Recording]) -> list[str]:
    """Caveats of a comparison of these runs."""
    caveats = [
        f"run {recording.run_id}: {problem.text}"
        for recording in recordings
        for problem in findings_of(recording)
        if problem.verdict is Verdict.BROKEN
    ]
    caveats += [
        f"run {recording.run_id}: its source left out an unknown number of values; quantiles and rates are unknown"
        for recording in recordings
        if any(series.source_summary and series.source_summary.omitted_count_unknown for series in recording.series)
    ]
    caveats += [
        f"run {recording.run_id}: {words.counted(missed, 'missed period')} "
        f"{'has' if missed == 1 else 'have'} no value; "
        + ("figures do not include them" if counts_instructions(recording) else "in quantiles they exceed all values")
        for recording in recordings
        if (missed := sum(recording.missed(series.id) for series in judged_series(recording) if not series.corrected))
    ]
    return [*caveats, *emulation_cautions(recordings)]


def significance_note(together: int, confidence: float) -> str:
    """The meaning of the marks of differences."""
    if not together:
        return "no difference has an interval: measure longer"
    return (
        f'"{GREATER}" and "{SMALLER}" hold for all {together} differences together at '
        f'{words.percent(confidence)} (Holm); "{BY_ITSELF.strip()}" marks one whose own interval excludes zero, '
        "which is not enough among so many. The intervals hold within these runs and do not include the variation "
        "between runs (fastenough ab measures it)"
    )


def judged_names(recordings: Sequence[Recording]) -> set[str]:
    """Names of the series that a verdict rests on."""
    return {series.name for recording in recordings for series in recording.series if series.role is Role.VERDICT}
