# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of several CPUs and runs, merged.

Runs may be merged only where everything that shapes a latency is the same; the first key that differs is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.differences import difference, group_text, kind_text, run_values, series_values
from fastenough.analysis.keys import FOR_MERGING, RUN_KEYS, SERIES_KEYS, build_id_of
from fastenough.analysis.machine import cpus_in_use
from fastenough.analysis.resampling import Blocks, blocks_of, with_missed
from fastenough.model import BadInput, Machines, Role, Series
from fastenough.recording import Histogram, Recording
from fastenough.recording.aggregate import MOST_COUNT
from fastenough.recording.head import LimitCount

FloatArray = NDArray[np.float64]
CountArray = NDArray[np.int64]
Part = tuple[Recording, Series]
"""One series of one run."""
_CORRECTED = "_corrected"


class MixedRuns(BadInput):
    """Runs that may not be merged or compared; the message names the key that differs."""


def load_name(recording: Recording) -> str | None:
    """The name of the load, None where the recording does not state any."""
    return None if recording.head.load is None else recording.head.load.name


def grouped(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Recordings in groups that may be merged, in order of first appearance."""
    alike: dict[str, list[Recording]] = {}
    for recording in recordings:
        alike.setdefault(group_text(recording), []).append(recording)
    return [group for members in alike.values() for group in by_system(members)]


def by_system(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """The recordings of each machine and each build of its kernel."""
    return [group for members in _by_machine(recordings) for group in _by_kernel_build(members)]


def _by_machine(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """The recordings of each machine; those that do not identify theirs are with the first one."""
    machines = Machines(recording.head.machine for recording in recordings)
    groups: dict[int, list[Recording]] = {}
    for recording in recordings:
        groups.setdefault(machines.number(recording.head.machine) or 0, []).append(recording)
    return list(groups.values())


def _by_kernel_build(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """The recordings of each build of the kernel; those without a build ID are with the first one."""
    build_ids = [build_id_of(recording.head) for recording in recordings]
    first = next(filter(None, build_ids), None)
    groups: dict[str | None, list[Recording]] = {}
    for recording, build_id in zip(recordings, build_ids, strict=True):
        groups.setdefault(build_id or first, []).append(recording)
    return list(groups.values())


@dataclass(frozen=True)
class Known:
    """Which figures are known although an imported source left values out or only counted them.

    ``spread``: the standard deviation.
    """

    minimum: bool
    mean: bool
    spread: bool
    maximum: bool


@dataclass(frozen=True)
class CountedOnly:
    """Values beyond the histogram of an imported series, or of a summary without one: stored in the bucket of the
    maximum, but each may be as small as ``least_ns``."""

    bucket: int
    count: int
    least_ns: float


def only_counted(run: Recording, series: Series, k: int) -> CountedOnly | None:
    """The values of an imported series that its tool only counted, if they are stored; in a bucket of ``k``."""
    total, source = run.totals[series.id], series.source_summary
    if source is None or source.overflow == 0 or not total.wide or run.lost(series.id):
        return None
    bucket, least = total.wide[-1]
    held = int(total.count[np.searchsorted(total.index, bucket)])
    return CountedOnly(total.folded(k).wide[-1][0], min(held, source.overflow or held), least * series.unit_ns)


@dataclass(frozen=True)
class Merged:
    """Values of one kind, from one or more CPUs and runs, in the series' own unit.

    ``duration_ns`` is the time measured per CPU, added over runs.  ``corrected``: missed periods are already
    charged in the values.  ``two_sided``: a value off in either direction counts (jitter).  ``parts``: what was
    merged, in the order of time, for whoever needs the order of the values.
    """

    name: str
    cpus: tuple[int, ...]
    unit_ns: float
    period_ns: int | None
    corrected: bool
    two_sided: bool
    histogram: Histogram
    lost: int
    missed: int
    duration_ns: int
    run_ids: tuple[str, ...]
    from_event: str
    to_event: str
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)

    @property
    def n(self) -> int:
        """How many values are stored."""
        return self.histogram.total

    @property
    def judged(self) -> int:
        """How many activations a verdict rests on: values, and periods missed that no value stands for."""
        return self.n + self.missed_uncharged

    @property
    def missed_uncharged(self) -> int:
        """Periods missed that no value stands for: each exceeds every limit."""
        return 0 if self.corrected else self.missed

    @property
    def maximum_ns(self) -> float | None:
        """The exact maximum; for jitter, the exact greatest magnitude."""
        low, high = self.histogram.minimum, self.histogram.maximum
        if low is None or high is None:
            return None
        return (max(abs(low), abs(high)) if self.two_sided else high) * self.unit_ns

    @property
    def known_maximum_ns(self) -> float | None:
        """The maximum of all values; None if a source left out values that may exceed those that are stored."""
        return self.maximum_ns if self.known.maximum else None

    @property
    def omitted_count_unknown(self) -> bool:
        """Whether the source of an imported series left out an unknown number of values."""
        return any(
            series.source_summary is not None and series.source_summary.omitted_count_unknown
            for _, series in self.parts
        )

    @cached_property
    def overflow_from_ns(self) -> float | None:
        """From where on values of an imported series were only counted; None where all have their buckets."""
        least = [
            run.totals[series.id].wide[-1][1] * series.unit_ns
            for run, series in self.parts
            if series.source_summary is not None and series.source_summary.overflow != 0 and run.totals[series.id].wide
        ]
        return min(least, default=None)

    @cached_property
    def counted_only(self) -> tuple[CountedOnly, ...]:
        """The values of imported series that were only counted, with buckets of the merged histogram."""
        parts = (only_counted(run, series, self.histogram.k) for run, series in self.parts)
        return tuple(only for only in parts if only is not None)

    @cached_property
    def _edges(self) -> tuple[CountArray, CountArray]:
        """Least and greatest value of each bucket, signed and ascending, in units."""
        return self.histogram.lowest(), self.histogram.highest()

    @cached_property
    def edges_ns(self) -> tuple[FloatArray, FloatArray]:
        """Least and greatest value of each bucket, signed and ascending, in ns."""
        lowest, highest = self._edges
        unit_ns = np.float64(self.unit_ns)
        return lowest * unit_ns, highest * unit_ns

    @cached_property
    def known(self) -> Known:
        """Which figures of all values the sources of imported series state or imply."""
        summaries = [
            (series.source_summary, run.lost(series.id), bool(run.totals[series.id].wide))
            for run, series in self.parts
            if series.source_summary is not None
        ]
        return Known(
            minimum=not any(
                stated.minimum is None and stated.overflow is None and (lost or stated.omitted_count_unknown)
                for stated, lost, _ in summaries
            ),
            mean=not any(
                lost or (stated.mean is None and (wide or stated.omitted_count_unknown))
                for stated, lost, wide in summaries
            ),
            spread=not any(lost or wide or stated.omitted_count_unknown for stated, lost, wide in summaries),
            maximum=not any(lost and stated.maximum is None for stated, lost, _ in summaries),
        )

    @cached_property
    def over_time(self) -> Blocks:
        """The values over time, signed."""
        return blocks_of(self.parts, magnitudes=False)

    @cached_property
    def activations_over_time(self) -> Blocks:
        """The values over time, signed, and the missed periods without a value above them."""
        return with_missed(self.over_time, self.parts)

    @cached_property
    def magnitudes_over_time(self) -> Blocks:
        """The values over time, without their sign."""
        return blocks_of(self.parts, magnitudes=True)

    def least_above(self, limit_ns: float) -> int:
        """The least value, in units, that exceeds a limit: products with the unit are rounded."""
        return math.floor(limit_ns / self.unit_ns + 1e-9) + 1

    def counted_at(self, limit_ns: float) -> list[LimitCount]:
        """What each part counted at this limit in the order of its values; empty unless all of them did."""
        if any(run.order_unknown(series.id) for run, series in self.parts):
            return []
        counts = [run.limit(series.id) for run, series in self.parts]
        counted = [each for each in counts if each is not None and each.ns == limit_ns]
        return counted if len(counted) == len(counts) else []

    def exceeded(self, limit_ns: float) -> tuple[int, int]:
        """Activations (surely, possibly) beyond the limit.

        They differ where the limit lies within a bucket, unless the recordings counted at this limit.  Of a wide bucket
        that holds the maximum, one value is known exactly.
        """
        if counted := self.counted_at(limit_ns):
            exactly = sum(limit.exceeded for limit in counted) + self.missed_uncharged
            return exactly, exactly
        least = self.least_above(limit_ns)
        lowest, highest = self._edges
        surely, possibly = lowest >= least, highest >= least
        if self.two_sided:
            surely, possibly = surely | (highest <= -least), possibly | (lowest <= -least)
        count = self.histogram.count
        greatest = round((self.maximum_ns or 0.0) / self.unit_ns)
        known_exceeding = int(bool(self.histogram.wide) and greatest >= least)
        return (
            max(int(count[surely].sum()), known_exceeding) + self.missed_uncharged,
            int(count[possibly].sum()) + self.missed_uncharged,
        )

    @cached_property
    def magnitudes(self) -> tuple[FloatArray, FloatArray, CountArray]:
        """(lowest, highest, count) per bucket, ascending, in ns; for jitter of the magnitudes."""
        lowest, highest = self.edges_ns
        count = self.histogram.count
        if not self.two_sided:
            return lowest, highest, count
        negative = highest < 0
        low, high = np.where(negative, -highest, lowest), np.where(negative, -lowest, highest)
        order = np.argsort(high, kind="stable")
        return low[order], high[order], count[order]


def require_mergeable(parts: Sequence[Part], *, unknown_agrees: bool = False) -> None:
    """Raises MixedRuns where two of them may not be merged.

    ``unknown_agrees``: a value that is unknown of a run agrees with every other one.
    """
    first_run, first = parts[0]
    run_key, series_key = run_values(first_run), series_values(first_run, first)
    agreeing = {id(first_run)}
    for other_run, other in parts[1:]:
        text = None
        if id(other_run) not in agreeing:
            other_key = run_values(other_run)
            text = difference(RUN_KEYS, run_key, other_key, FOR_MERGING, unknown_agrees=unknown_agrees)
        text = text or difference(SERIES_KEYS, series_key, series_values(other_run, other), FOR_MERGING)
        if text is not None:
            raise MixedRuns(f"runs {first_run.run_id} and {other_run.run_id} cannot be merged: {text}")
        agreeing.add(id(other_run))


def require_one_interval(recording: Recording) -> None:
    """Raises MixedRuns for a run whose parameter ``distance`` gave another interval to each CPU."""
    if recording.head.parameters.get("distance_ns") and len({one.period_ns for one in judged_series(recording)}) > 1:
        raise MixedRuns(
            f"run {recording.run_id} has another interval on each CPU (distance), so its CPUs cannot be compared "
            "together; measure without distance, or on one CPU (affinity)"
        )


def merge_samples(parts: Sequence[Part], *, unknown_agrees: bool = False) -> Merged:
    """Merge series of one or several runs; raises MixedRuns where they may not be merged (`require_mergeable`)."""
    require_mergeable(parts, unknown_agrees=unknown_agrees)
    return merged_of(parts)


def merged_of(parts: Sequence[Part]) -> Merged:
    """Merge series that agree in everything that shapes a latency; raises MixedRuns if they claim too many values.

    Where instruments' ticks were calibrated to slightly different lengths, the longest is taken: no value is
    understated.
    """
    if sum(run.totals[series.id].total + run.missed(series.id) for run, series in parts) > MOST_COUNT:
        raise MixedRuns(
            f"the series {parts[0][1].name} of {len({id(run) for run, _ in parts})} runs cannot be merged: they hold "
            f"more than {MOST_COUNT} values, which is impossible; exclude the runs that claim it"
        )
    first = parts[0][1]
    totals = [recording.totals[series.id] for recording, series in parts]
    k = min(total.k for total in totals)
    runs = {recording.run_id: recording for recording, _ in parts}
    return Merged(
        name=first.name,
        cpus=tuple(sorted({series.cpu for _, series in parts if series.cpu is not None})),
        unit_ns=max(series.unit_ns for _, series in parts),
        period_ns=first.period_ns,
        corrected=first.corrected,
        two_sided=first.two_sided,
        histogram=Histogram.merged((total.folded(k) for total in totals), k),
        lost=sum(recording.lost(series.id) for recording, series in parts),
        missed=sum(recording.missed(series.id) for recording, series in parts),
        duration_ns=sum(recording.duration_ns for recording in runs.values()),
        run_ids=tuple(runs),
        from_event=first.from_event,
        to_event=first.to_event,
        parts=tuple(sorted(parts, key=lambda part: part[0].head.begin.wall_ns)),
    )


def judged_series(recording: Recording) -> list[Series]:
    """The series a limit applies to: per CPU those whose role it is, the corrected one where there are both.

    Where the plain series is none for a verdict because a corrected one is, and a CPU has only the plain one, this one
    is judged: no CPU is passed over.
    """
    taken = [series for series in recording.series if series.refused is None and series.role is not Role.THROUGHPUT]
    corrected = {variant(series) for series in taken if series.corrected and series.role is Role.VERDICT}
    acts = {act for act, _ in corrected}
    return [
        series
        for series in taken
        if (series.role is Role.VERDICT or variant(series)[0] in acts)
        and (series.corrected or variant(series) not in corrected)
    ]


def variant(series: Series) -> tuple[str, int | None]:
    """The act (its plain series' name and labels) and CPU: the same for a plain series and the corrected one of it."""
    name = series.name.removesuffix(_CORRECTED) if series.corrected else series.name
    return repr((name, sorted(series.labels.items()))), series.cpu


def kinds(recording: Recording) -> list[list[Series]]:
    """The recording's series in groups that differ in their CPU only, in order of first appearance."""
    groups: dict[str, list[Series]] = {}
    for series in recording.series:
        groups.setdefault(kind_text(recording, series), []).append(series)
    return list(groups.values())


def cpus_judged(recording: Recording) -> set[int | None]:
    """The CPUs on which a series was taken that a limit applies to, or any series where a limit applies to none."""
    return {series.cpu for series in judged_series(recording) or recording.series}


def cpus_not_measured(recordings: Iterable[Recording]) -> list[int]:
    """CPUs of the machine on which no such series was taken, where series belong to CPUs at all."""
    in_use: set[int] = set()
    measured: set[int] = set()
    for recording in recordings:
        cpus = cpus_judged(recording)
        if not cpus or None in cpus:
            return []
        measured.update(cpu for cpu in cpus if cpu is not None)
        in_use |= cpus_in_use(recording)
    return sorted(in_use - measured)
