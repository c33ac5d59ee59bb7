# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparison of runs of deterministic boards: paths without load exactly, maxima under load over phases.

A run without load repeats one path, so that its figures are compared exactly.  Under load each figure depends on which
events coincide, and one more instruction shifts all later ones.  Maxima are therefore those of many runs, each in
another phase, and their means are compared with an interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fastenough import words
from fastenough.analysis.bootstrap import ResampledQuantiles
from fastenough.analysis.bounds import student_interval
from fastenough.analysis.clusters import holm
from fastenough.analysis.compare import Sides, finding, sides_of
from fastenough.analysis.measures import CONFIDENCE
from fastenough.analysis.merged import Merged, load_name
from fastenough.model import BadInput
from fastenough.recording import Recording

LEAST_PHASES = 30
"""Number of phases from which the mean of their maxima has an interval."""
FIGURES = ("minimum", "median", "mean", "maximum")
"""The figures of a path."""
NO_LOAD = (None, "none")
"""Names of the load of runs without one."""

TOO_FEW_PHASES = (
    f"no statement about maxima under load: at least {LEAST_PHASES} phases of each are needed (--phases "
    f"{LEAST_PHASES}), since one more instruction shifts all later events, and the maximum with them"
)

NULL_CHANGES = (
    "For scale: without load, 50 changes without any effect moved the minimum by at most 16 instructions, the mean by "
    "at most 0.4 %, the maximum by at most 2.5 %, and not the median; one moved the mean maximum of 30 phases under "
    "load by 4.4 % (docs/virtual-bench.md)"
)
"""By how much changes without any effect moved each figure."""


@dataclass(frozen=True)
class PathFigure:
    """A figure of a path in instructions; ``difference``: second minus first; ``share``: of the first, None for 0."""

    name: str
    first: float
    second: float
    difference: float
    share: float | None


@dataclass(frozen=True)
class PathComparison:
    """One series without load.  ``buckets``: number of buckets of the histograms with different counts; ``moved``:
    number of values in another bucket; both None for different numbers of values."""

    first_id: str
    second_id: str
    series: str
    differences: tuple[str, ...]
    n: tuple[int, int]
    figures: tuple[PathFigure, ...]
    buckets: int | None
    moved: int | None

    def figure(self, name: str) -> PathFigure:
        return next(figure for figure in self.figures if figure.name == name)


@dataclass(frozen=True)
class MaximaComparison:
    """One series under a load, in instructions: the maximum of each phase, in ascending order.

    The difference is that of the means, second minus first, with Welch's interval; None with fewer than
    ``LEAST_PHASES`` phases on either side.  ``p_value`` and ``significant``: as of ``QuantileDifference``.
    """

    first_id: str
    second_id: str
    series: str
    load: str
    differences: tuple[str, ...]
    maxima: tuple[tuple[int, ...], tuple[int, ...]]
    confidence: float
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    significant: bool = False

    @property
    def ends(self) -> tuple[float, float] | None:
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def means(self) -> tuple[float, float]:
        first, second = (sum(maxima) / len(maxima) for maxima in self.maxima)
        return first, second


InstructionComparison = PathComparison | MaximaComparison


def compare_instructions(
    base: Sequence[Recording], other: Sequence[Recording], confidence: float = CONFIDENCE
) -> list[InstructionComparison]:
    """Compare two sets of runs of deterministic boards; each set: runs that differ in nothing but their phase.

    All judged series are compared, or all if none is judged.  A repetition of a run is excluded: it is the same run.
    Raises as :func:`sides_of` does, and BadInput for runs under different loads, and for runs without load in
    different phases.
    """
    base, other = _first_run_per_phase(base), _first_run_per_phase(other)
    loads = [load_name(runs[0]) for runs in (base, other)]
    if loads[0] != loads[1]:
        raise BadInput(f"runs under different loads are not compared: {loads[0] or 'none'} and {loads[1] or 'none'}")
    if loads[0] in NO_LOAD and _phases(base) != _phases(other):
        raise BadInput("runs without load are compared exactly, hence in the same phases; use the same --phases")
    differences, sides = sides_of(base, other)
    judged = [kind for kind in sides if kind.judged] or sides
    if loads[0] in NO_LOAD:
        return [_path(kind, differences) for kind in judged]
    return list(_judged_together([_maxima(kind, differences, loads[0] or "", confidence) for kind in judged]))


def _phases(runs: Sequence[Recording]) -> list[int | None]:
    return [run.head.phase_ns for run in runs]


def _first_run_per_phase(runs: Sequence[Recording]) -> list[Recording]:
    """The first run of each phase, in the order of phases."""
    by_phase: dict[int, Recording] = {}
    for run in runs:
        by_phase.setdefault(run.head.phase_ns or 0, run)
    return [by_phase[phase] for phase in sorted(by_phase)]


def _path(sides: Sides, differences: tuple[str, ...]) -> PathComparison:
    base, other = sides.base.merged, sides.other.merged
    buckets, moved = _moved(base, other) if base.n == other.n else (None, None)
    return PathComparison(
        "+".join(base.run_ids),
        "+".join(other.run_ids),
        sides.name,
        differences + sides.differences,
        (base.n, other.n),
        tuple(map(_figure, FIGURES, _figures(sides.base), _figures(sides.other))),
        buckets,
        moved,
    )


def _figures(values: ResampledQuantiles) -> tuple[float, ...]:
    merged, histogram, median_ns = values.merged, values.merged.histogram, values.value_ns(0.5)
    least, mean, greatest = histogram.minimum, histogram.mean, histogram.maximum
    assert least is not None and mean is not None and greatest is not None and median_ns is not None
    return least * merged.unit_ns, median_ns, mean * merged.unit_ns, greatest * merged.unit_ns


def _figure(name: str, first: float, second: float) -> PathFigure:
    return PathFigure(name, first, second, second - first, (second - first) / first if first else None)


def _moved(base: Merged, other: Merged) -> tuple[int, int]:
    """Number of buckets with different counts, and of values in another bucket."""
    index = np.union1d(base.histogram.index, other.histogram.index)
    counts = []
    for histogram in (base.histogram, other.histogram):
        aligned = np.zeros(index.size, dtype=np.int64)
        aligned[np.searchsorted(index, histogram.index)] = histogram.count
        counts.append(aligned)
    difference = np.abs(counts[1] - counts[0])
    return int(np.count_nonzero(difference)), int(difference.sum()) // 2


def _maxima(sides: Sides, differences: tuple[str, ...], load: str, confidence: float) -> MaximaComparison:
    base, other = sides.base.merged, sides.other.merged
    maxima = (_maxima_per_run(base), _maxima_per_run(other))
    comparison = MaximaComparison(
        "+".join(base.run_ids),
        "+".join(other.run_ids),
        sides.name,
        load,
        differences + sides.differences,
        maxima,
        confidence,
    )
    if min(map(len, maxima)) < LEAST_PHASES:
        return comparison
    difference, lower, upper, p_value = difference_of_means(*maxima, confidence)
    return replace(comparison, difference=difference, lower=lower, upper=upper, p_value=p_value)


def _maxima_per_run(merged: Merged) -> tuple[int, ...]:
    """The maximum of each run over its CPUs, ascending."""
    greatest: dict[str, int] = {}
    for run, series in merged.parts:
        maximum = run.totals[series.id].maximum
        if maximum is not None:
            greatest[run.run_id] = max(maximum, greatest.get(run.run_id, maximum))
    return tuple(sorted(round(maximum * merged.unit_ns) for maximum in greatest.values()))


def difference_of_means(
    first: Sequence[float], second: Sequence[float], confidence: float
) -> tuple[float, float, float, float]:
    """The difference of two means, second minus first, the ends of its interval and the p-value of none.

    Welch 1947: the variances may differ.
    """
    difference = float(np.mean(second) - np.mean(first))
    errors = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    squares = sum(
        error_of_mean**2 / (len(values) - 1) for error_of_mean, values in zip(errors, (first, second), strict=True)
    )
    freedom = sum(errors) ** 2 / squares if squares else math.inf
    return difference, *student_interval(difference, math.sqrt(sum(errors)), freedom, confidence)


def _judged_together(comparisons: Sequence[MaximaComparison]) -> Iterator[MaximaComparison]:
    """The comparisons, with the differences marked that are significant together (Holm 1979)."""
    p_values = [comparison.p_value for comparison in comparisons if comparison.p_value is not None]
    significant = iter(holm(p_values, 1 - comparisons[0].confidence))
    for comparison in comparisons:
        yield comparison if comparison.p_value is None else replace(comparison, significant=next(significant))


# --- sentences


def difference_text(figure: PathFigure) -> str:
    """By how many instructions a figure of a path differs: "+312 instructions (+4.1 %)"."""
    share = "" if figure.share is None else f" ({100 * figure.share:+.1f} %)"
    return "equal" if not figure.difference else f"{_signed(figure.difference)} instructions{share}"


def _signed(instructions: float) -> str:
    decimals = 0 if instructions == round(instructions) else 1
    return f"{instructions:+,.{decimals}f}"


def histograms_text(path: PathComparison) -> str:
    """In how many buckets the histograms of a path differ."""
    if path.buckets is None or path.moved is None:
        return f"histograms of {words.number(path.n[0])} and {words.number(path.n[1])} values are not compared"
    if not path.buckets:
        return "the histograms are equal"
    moved = f"{words.number(path.moved)} of {words.counted(path.n[0], 'value')}"
    return f"the histograms differ in {words.counted(path.buckets, 'bucket')} ({moved})"


def _path_text(path: PathComparison) -> str:
    figures = [f"{figure.name} {difference_text(figure)}" for figure in path.figures if figure.difference]
    equal = [figure.name for figure in path.figures if not figure.difference]
    if equal:
        figures.append(f"{' and '.join(filter(None, (', '.join(equal[:-1]), equal[-1])))} equal")
    return f"{path.series}, no load: {'; '.join([*figures, histograms_text(path)])}"


def _maxima_text(maxima: MaximaComparison) -> str:
    if maxima.ends is None or maxima.difference is None:
        return f"{maxima.series}, load {maxima.load}: {TOO_FEW_PHASES}"
    lower, upper = (_signed(round(end)) for end in maxima.ends)
    share = 100 * maxima.difference / maxima.means[0]
    return (
        f"{maxima.series}, load {maxima.load}: mean maximum of a phase {finding(maxima)} "
        f"({_signed(round(maxima.difference))} instructions, {share:+.1f} %; "
        f"{words.percent(maxima.confidence)} interval {lower} to {upper})"
    )


def instructions_conclusion(comparisons: Sequence[InstructionComparison]) -> str:
    """One sentence for each series; equal ones once."""
    sentences = [
        _path_text(comparison) if isinstance(comparison, PathComparison) else _maxima_text(comparison)
        for comparison in comparisons
    ]
    return "; ".join(dict.fromkeys(sentences))
