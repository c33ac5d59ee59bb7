# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturbances: exceedances of a limit on one CPU, where one stall of 500 periods differs from 500 stalls.

A disturbance is a run of consecutive exceedances; runs less than :data:`GAP_PERIODS` apart are one.  No recording holds
the gaps between runs, so their number and length are bracketed, each on the side that is safe:

* at ``most`` as many as there are runs (never fewer than surely lie apart, whatever a recording says of its runs): what
  is said of how often they come rests on that;
* at ``least`` as many as there are groups of intervals with exceedances that are surely further apart than the gap,
  and surely hold one; the exceedances of such a group are the ``longest`` disturbance there may have been.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fastenough.analysis import sequential
from fastenough.analysis.clusters import LEAST_DISTURBANCES, ClusterSize, cluster_size
from fastenough.analysis.dependence import (
    LEAST_INTERVALS,
    MORE_OFTEN,
    Clusters,
    clusters_of,
    has_long_memory,
    scale_of,
)
from fastenough.analysis.merged import Merged, Part
from fastenough.recording import Histogram
from fastenough.recording.head import LimitCount
from fastenough.recording.histogram import bucket_highest, bucket_index, bucket_lowest, bucket_of
from fastenough.recording.rises import Rises, at_or_above
from fastenough.recording.timeline import Course, IntArray

GAP_PERIODS = 10
"""Runs of exceedances separated by fewer periods are one disturbance."""


_LONGER = 25.0
"""Share by which one more run may be longer than the longest one, if this is all there is: lengths then may have a
tail so heavy that the next one is several times as long.  With 10, twice as many of such machines (Pareto 1.2) pass
wrongly."""


class OrderSource(StrEnum):
    """Source of the order of the values."""

    LIMIT = "runs counted at the limit itself"
    RISES = "rises at the edges around the limit"
    INTERVALS = "exceedances per interval"


@dataclass(frozen=True, eq=False)
class Disturbances:
    """``surely`` and ``possibly``: exceedances; they differ where the limit lies within a bucket.

    ``scale``: of dependence, as :func:`scale_of` has it.  ``size`` and ``size_error``: of clusters, as :mod:`clusters`
    has it.  ``longest_run``: exceedances of the longest run, as far as it is known, and ``dominance``: how much it
    outweighs the others, as :func:`dominance` has it.  ``long_memory``: whether they depend on each other over times as
    long as the data.
    ``counts``: exceedances of each interval, empty ones included, of all runs in the order of time, at most, and
    ``sure`` those that surely are; ``run_of``: which run each interval is of; all are left out where nothing was
    exceeded.
    """

    n: int
    time_ns: int
    surely: int
    possibly: int
    least: int
    most: int
    longest: int
    scale: int
    size: float
    longest_run: float
    source: OrderSource
    counts: IntArray
    sure: IntArray
    run_of: IntArray
    size_error: float = 1.0
    dominance: float = 0.0
    long_memory: bool = False

    @property
    def counts_per_run(self) -> list[IntArray]:
        """``counts`` of each run."""
        return [self.counts[self.run_of == run] for run in np.unique(self.run_of)]

    @cached_property
    def clusters(self) -> Clusters:
        """Clusters of dependent disturbances."""
        return clusters_of(self.scale, self.counts, self.sure, self.run_of)

    @property
    def scale_ns(self) -> float:
        """Disturbances within this time count as one; 0 if they may be independent."""
        return self.clusters.scale * self.time_ns / self.counts.size if self.clusters.scale else 0.0

    def events_upper(self, confidence: float) -> float:
        """Upper bound on how many independent events such a time holds on average, valid at every look.

        Disturbances that depend on each other are one event, which may begin in the time free of others only.  Where no
        dependence is significant, disturbances count for as many as their spread over time says.
        """
        events, per_event = self._bounded_events
        return per_event * sequential.events_upper(events, confidence)

    def events_are_within(self, mean: float, confidence: float) -> bool:
        """Whether :meth:`events_upper` is at most this mean; several times as quick."""
        events, per_event = self._bounded_events
        return sequential.log_evidence_below(events, mean / per_event) >= sequential.log_required(confidence)

    @property
    def _bounded_events(self) -> tuple[float, float]:
        """Number of independent events whose mean is bounded, and the factor from this bound to that of all events."""
        if self.clusters.scale:
            return self.clusters.most, 1.0 / max(self.clusters.free, 1e-9)
        per_event = self.most / min(self.most, max(1.0, self.independent)) if self.most else 1.0
        return self.most / per_event, per_event

    @property
    def events(self) -> int:
        """Maximum number of independent events: clusters if disturbances depend on each other, else disturbances."""
        return self.clusters.most if self.clusters.scale else self.most

    @property
    def sure_events(self) -> int:
        """Minimum number of independent events."""
        return self.clusters.least if self.clusters.scale else self.least

    @property
    def largest(self) -> int:
        """Maximum exceedances of one event."""
        return max(self.longest, self.clusters.largest)

    @property
    def longer_run(self) -> float:
        """Exceedances that one more run may have: more than the longest one where this is unlike the others."""
        return self.longest_run * (1.0 + _LONGER * self.dominance)

    @property
    def independent(self) -> float:
        """Equivalent number of independent disturbances; 0 if their distribution over time is unknown."""
        if self.possibly == 0 or self.counts.size < LEAST_INTERVALS:
            return 0.0
        return min(float(self.most), self.possibly / self.size)

    @property
    def enough(self) -> bool:
        """Whether there are enough for a rate per activation."""
        return self.independent >= LEAST_DISTURBANCES

    @property
    def effective_n(self) -> float:
        """Equivalent number of independent activations."""
        return self.n / self.size


def disturbances(merged: Merged, limit_ns: float) -> Disturbances:
    """The disturbances of merged samples of one CPU at a limit."""
    counted = _LimitCounts(merged, limit_ns)
    surely, possibly = counted.exceeded
    if possibly == 0:
        return _no_disturbances(merged, counted.source)
    over_time = counted.over_time()
    counts, sure = over_time.possibly, over_time.surely
    gathered = gathered_counts(possibly, counts, sure)
    runs = counted.runs() or _runs_by_intervals(possibly, gathered)
    runs = runs._replace(most=max(runs.most, over_time.groups, 1))
    scale = scale_of(counts, runs.most)
    size = size_of_clusters(possibly, runs, scale, counts, sure, gathered)
    return Disturbances(
        n=merged.judged,
        time_ns=_time_ns(merged),
        surely=surely,
        possibly=possibly,
        least=over_time.groups,
        most=runs.most,
        longest=over_time.longest,
        scale=scale,
        size=size.mean,
        longest_run=runs.longest,
        source=counted.source,
        counts=counts,
        sure=sure,
        run_of=over_time.run_of,
        size_error=size.error,
        dominance=dominance(runs, counts),
        long_memory=has_long_memory(counted.more_often(), runs.most),
    )


def _no_disturbances(merged: Merged, source: OrderSource) -> Disturbances:
    nothing = np.empty(0, dtype=np.int64)
    return Disturbances(
        n=merged.judged,
        time_ns=_time_ns(merged),
        surely=0,
        possibly=0,
        least=0,
        most=0,
        longest=0,
        scale=0,
        size=1.0,
        longest_run=0.0,
        source=source,
        counts=nothing,
        sure=nothing,
        run_of=nothing,
    )


def _runs_by_intervals(exceeded: int, counts: IntArray) -> RunLengths:
    """Run lengths if only ``counts`` per interval are known: each of the ``exceeded`` values may be a run."""
    excess = counts - counts.sum() / max(counts.size, 1)
    return RunLengths(exceeded, 0.0, float(np.max(excess, initial=0.0)))


def gathered_counts(exceeded: int, most: IntArray, least: IntArray) -> IntArray:
    """The exceedances of each interval if they lie in as few intervals as possible.

    ``exceeded``: their sum; ``most`` and ``least``: in each interval.  If the limit lies within a wide bucket of the
    intervals, ``most`` contains values that do not exceed it, whose spread over time says nothing of those that do.
    """
    room = most - least
    order = np.argsort(-room, kind="stable")
    left = exceeded - least.sum() - np.cumsum(room[order]) + room[order]
    gathered = least.copy()
    gathered[order] += np.clip(left, 0, room[order])
    return gathered


def size_of_clusters(exceeded: int, runs: RunLengths, scale: int, *counts: IntArray) -> ClusterSize:
    """Size of the clusters of exceedances in ``runs``; ``scale``: of their dependence.

    ``counts``: exceedances of each interval: one array, or several that may all be true.
    """
    first, *others = counts
    different = [each for each in others if not np.array_equal(each, first)]
    independent = first.size >= LEAST_INTERVALS and not scale
    return cluster_size(exceeded, runs.most, runs.squares, first, *different, independent=independent)


def dominance(runs: RunLengths, counts: IntArray) -> float:
    """Share of the longest run in the sum of squares of all lengths, or of the exceedances of each interval, beyond its
    share if all were equal: 0 for equal lengths, near 1 if one run is unlike all others."""
    squares = runs.squares or float(counts @ counts)
    share = runs.longest**2 / squares if squares else 0.0
    return max(0.0, min(1.0, share) - 1.0 / runs.most)


def limits_above(merged: Merged, limit_ns: float) -> list[int]:
    """Higher limits at which the recordings show the disturbances as well as at this one, ascending, in ns.

    They are the edges of the rises (12 % apart), at which runs are counted.  Where no order is known at any limit, they
    are the same edges.  Empty where runs were counted at this limit only.
    """
    counted = _LimitCounts(merged, limit_ns)
    risen = [rises for recording, series in merged.parts if (rises := recording.rises(series.id)) is not None]
    if counted.source is OrderSource.INTERVALS:
        edges = [_coarse_edges(merged)]
    elif len(risen) == len(merged.parts):
        edges = [rises.lowest() for rises in risen]
    else:
        return []
    least = np.unique(np.concatenate(edges)) if edges else np.empty(0, dtype=np.int64)
    worst = (merged.maximum_ns or 0.0) / merged.unit_ns
    return [math.ceil((edge - 1) * merged.unit_ns) for edge in least.tolist() if counted.above < edge <= worst]


_COARSE_K = 3
"""Resolution of limits where no order of the values is known; that of rises."""


def _coarse_edges(merged: Merged) -> IntArray:
    """The least value (two-sided: magnitude) of each coarse bucket that holds one."""
    _, highest, _ = merged.magnitudes
    values = np.maximum(highest / merged.unit_ns, 1).astype(np.int64)
    return bucket_lowest(np.unique(bucket_index(values, _COARSE_K)), _COARSE_K)


def _time_ns(merged: Merged) -> int:
    """Observed time, without holes; a corrected series has none."""
    if merged.corrected:
        return merged.duration_ns
    covered: dict[str, int] = {}
    for recording, series in merged.parts:
        of_series_ns = recording.covered_ns(series.id)
        covered[recording.run_id] = min(of_series_ns, covered.get(recording.run_id, of_series_ns))
    return sum(covered.values())


class RunLengths(NamedTuple):
    """Greatest number of runs, sum of the squares of their lengths, and length of the longest.

    If only counts per interval are known, each exceedance may be a run, and the longest is the greatest excess of an
    interval over their mean.
    """

    most: int
    squares: float
    longest: float


class _OverTime(NamedTuple):
    """Exceedances of each interval, possibly and surely, and the run that each interval is of.

    ``groups``: number of groups of intervals that surely lie apart; ``longest``: exceedances of the greatest group.
    """

    possibly: IntArray
    surely: IntArray
    run_of: IntArray
    groups: int
    longest: int


@dataclass(frozen=True)
class _LimitCounts:
    """Counts of one limit in merged samples."""

    merged: Merged
    limit_ns: float

    @property
    def _parts(self) -> tuple[Part, ...]:
        return self.merged.parts

    @property
    def above(self) -> int:
        """The least value, in units, that exceeds the limit."""
        return self.merged.least_above(self.limit_ns)

    @cached_property
    def source(self) -> OrderSource:
        """The least exact source of all parts."""
        if any(run.order_unknown(series.id) for run, series in self._parts) or not self._parts:
            return OrderSource.INTERVALS
        if self._limits:
            return OrderSource.LIMIT
        return OrderSource.RISES if all(run.rises(series.id) for run, series in self._parts) else OrderSource.INTERVALS

    @cached_property
    def exceeded(self) -> tuple[int, int]:
        """Activations (surely, possibly) above the limit; one number where they were counted."""
        return self.merged.exceeded(self.limit_ns)

    @cached_property
    def _limits(self) -> list[LimitCount]:
        return self.merged.counted_at(self.limit_ns)

    def over_time(self) -> _OverTime:
        """Exceedances over time, of all parts one after the other."""
        lows, highs, groups, longest = [], [], 0, 0
        for recording, series in self._parts:
            course = recording.timeline.courses[series.id]
            low, high = self.per_interval(course)
            lows.append(low)
            highs.append(high)
            possibly, surely = grouped_counts(low, course.count, (low, high))
            groups += int(np.count_nonzero(surely))
            longest = max(longest, int(possibly.max(initial=0)))
        run_of = np.repeat(np.arange(len(lows)), [low.size for low in lows])
        return _OverTime(np.concatenate(lows), np.concatenate(highs), run_of, groups, longest)

    def per_interval(self, course: Course) -> tuple[IntArray, IntArray]:
        missed = 0 if self.merged.corrected else course.missed
        if self.source is OrderSource.LIMIT:
            exceeded = course.exceeded + missed
            return exceeded, exceeded
        index = abs(course.packed_index) if self.merged.two_sided else course.packed_index
        possibly, surely = bucket_of(self.above, course.k), bucket_of(self.above - 1, course.k) + 1
        low = _sums(np.where(index >= possibly, course.packed_count, 0), course.offsets) + missed
        if surely == possibly:
            return low, low
        return low, _sums(np.where(index >= surely, course.packed_count, 0), course.offsets) + missed

    def more_often(self) -> IntArray:
        """Exceedances per interval of a lower value that is exceeded more often, by up to half of all activations;
        empty if there is none."""
        _, possibly = self.exceeded
        lowest_ns, _, count = self.merged.magnitudes
        beyond = np.cumsum(count[::-1])[::-1] + self.merged.missed_uncharged
        fitting = np.flatnonzero(beyond >= MORE_OFTEN * possibly)
        if not fitting.size or 2 * beyond[fitting[-1]] > self.merged.judged:
            return np.empty(0, dtype=np.int64)
        lower = _LimitCounts(self.merged, float(lowest_ns[fitting[-1]]) - self.merged.unit_ns)
        return np.concatenate([lower.per_interval(run.timeline.courses[series.id])[0] for run, series in self._parts])

    def runs(self) -> RunLengths | None:
        """Run lengths of all parts; None if the order of the values is unknown."""
        if self.source is OrderSource.INTERVALS:
            return None
        if self.source is OrderSource.LIMIT:
            lengths = [RunLengths(limit.runs, limit.sum_sq_runs, limit.longest) for limit in self._limits]
        else:
            lengths = [_runs(*self._at_edges(part)) for part in self._parts]
        uncharged = self.merged.missed_uncharged
        return RunLengths(
            sum(runs.most for runs in lengths) + uncharged,
            sum(runs.squares for runs in lengths) + uncharged,
            max(runs.longest for runs in lengths),
        )

    def _at_edges(self, part: Part) -> tuple[Rises, Histogram, bool, int]:
        recording, series = part
        rises = recording.rises(series.id)
        assert rises is not None
        return rises, recording.totals[series.id], self.merged.two_sided, self.above


def _sums(values: IntArray, offsets: IntArray) -> IntArray:
    up_to = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(up_to[offsets[1:]] - up_to[offsets[:-1]], dtype=np.int64)


def grouped_counts(counts: IntArray, values: IntArray, rows: Sequence[IntArray]) -> list[IntArray]:
    """Sums of each of ``rows`` over groups of intervals with exceedances that may be one disturbance.

    ``counts``: exceedances of each interval, at most; ``values``: how many values each holds.  Between two groups lie
    intervals without any that hold at least as many values as the gap.
    """
    there = np.flatnonzero(counts)
    if not there.size:
        return [np.empty(0, dtype=np.int64) for _ in rows]
    up_to = np.concatenate([[0], np.cumsum(values)])
    between = up_to[there[1:]] - up_to[there[:-1] + 1]
    begins = np.flatnonzero(np.r_[True, between >= GAP_PERIODS])
    return [np.asarray(np.add.reduceat(row[there], begins), dtype=np.int64) for row in rows]


def runs_at(rises: Rises, edge: IntArray) -> IntArray:
    """Number of runs of values in these coarse buckets or above."""
    up_to = np.concatenate([[0], rises.runs()])
    return np.asarray(up_to[np.searchsorted(rises.edge, edge, side="right")], dtype=np.int64)


def _runs(rises: Rises, total: Histogram, two_sided: bool, above: int) -> RunLengths:
    """Runs of values of ``above`` or more.

    Removing a value splits or ends at most one run, and adding one begins or joins at most one.  So the numbers of runs
    at the limit and at an edge differ by at most the number of values in between.
    """
    edge = bucket_of(above, rises.k)
    edges = np.array([edge, edge + 1], dtype=np.int64)
    below, beyond = runs_at(rises, edges).tolist()
    values_below, values_beyond = at_or_above(total, bucket_lowest(edges, rises.k), two_sided).tolist()
    surely, possibly = at_or_above(total, np.array([_whole(above, total.k), above]), two_sided).tolist()
    most = min(possibly, below + values_below - surely, beyond + possibly - values_beyond)
    return RunLengths(most, *_squares(rises, total, two_sided, edge, possibly))


def _whole(above: int, k: int) -> int:
    """Least bucket edge at or above ``above``."""
    bucket = bucket_of(above, k)
    lowest, highest = int(bucket_lowest([bucket], k)[0]), int(bucket_highest([bucket], k)[0])
    return above if lowest == above else highest + 1


def _squares(rises: Rises, total: Histogram, two_sided: bool, edge: int, possibly: int) -> tuple[float, float]:
    """The sum of squares of the lengths of runs, from the number of runs at the edge below the limit and all above, and
    how long the longest is.

    With geometric lengths, the x_j values in R_j runs at an edge give x_j (2 x_j / R_j - 1), and the mean run of a
    value has 2 x_j / R_j - 1 values.  Each of these runs lies within a run at the limit, so both results are at least
    the greatest of these.
    """
    edges = np.concatenate([[edge], rises.edge[rises.edge > edge]])
    runs = runs_at(rises, edges)
    values = at_or_above(total, bucket_lowest(edges, rises.k), two_sided)
    length = np.where(runs > 0, 2.0 * values / np.maximum(runs, 1) - 1.0, 0.0)
    return float(np.max(np.minimum(values, possibly) * length)), min(float(np.max(length)), float(possibly))


def exceedances_over_time(merged: Merged, limit_ns: float) -> IntArray:
    """Number of values above a limit in each interval, all CPUs of a run together: a stall of two CPUs is one stall.

    The intervals of all runs are concatenated.  Where the limit lies within a bucket, the values are gathered in as few
    intervals as possible.
    """
    counted = _LimitCounts(merged, limit_ns)
    together: dict[str, IntArray] = {}
    for recording, series in merged.parts:
        course = recording.timeline.courses[series.id]
        counts = together.setdefault(recording.run_id, np.zeros((2, len(recording.timeline)), dtype=np.int64))
        counts[:, course.at] += np.stack(counted.per_interval(course))
    if not together:
        return np.zeros(1, dtype=np.int64)
    most, least = np.concatenate(list(together.values()), axis=1)
    return gathered_counts(counted.exceeded[1], most, least)
