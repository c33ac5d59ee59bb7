# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency over time as a heat map, with the maximum of each interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fastenough.analysis import Merged
from fastenough.analysis.merged import CountedOnly, only_counted
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_index, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K, Course
from fastenough.report import plot
from fastenough.report.context import Context, SeriesEntry, SeriesKind
from fastenough.report.document import Data, Picture, Section, Text
from fastenough.report.latency import counted_note

MOST_MAPS = 24
_MOST_COLUMNS = 240
_MOST_ROWS = 72
_LEAST_US = 0.1
_TIME_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True)
class _Column:
    """One or more intervals: upper edges of their buckets, counts, and the maximum.

    ``counted``: number of values that an imported series only counted; they are in no bucket.
    """

    begin_s: float
    end_s: float
    late_us: NDArray[np.float64]
    count: NDArray[np.int64]
    maximum_us: float
    counted: int


def _columns(recordings: tuple[Recording, ...], kind: SeriesKind) -> tuple[list[_Column], list[float]]:
    """All intervals in order of measured time, combined if there are too many; and the times where runs join."""
    columns: list[_Column] = []
    joins: list[float] = []
    together = max(1, -(-sum(recording.aggregate.intervals for recording in recordings) // _MOST_COLUMNS))
    at_s = 0.0
    for recording in sorted(recordings, key=lambda recording: recording.head.begin.wall_ns):
        timeline = recording.timeline
        courses = [
            (timeline.courses[series.id], only_counted(recording, series, timeline.courses[series.id].k))
            for series in recording.series
            if (series.name, series.labels) == (kind.series.name, kind.series.labels)
        ]
        for first in range(0, len(timeline), together):
            last = min(first + together, len(timeline))
            length_s = int(timeline.end_mono_ns[last - 1] - timeline.begin_mono_ns[first]) / 1e9
            columns.append(_column(courses, (first, last), (at_s, at_s + length_s), kind.all_cpus))
            at_s += length_s
        joins.append(at_s)
    return columns, joins[:-1]


def _column(
    courses: list[tuple[Course, CountedOnly | None]],
    intervals: tuple[int, int],
    times_s: tuple[float, float],
    values: Merged,
) -> _Column:
    """These intervals, all CPUs combined."""
    late, counts = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    maximum_us, counted = np.nan, 0
    for course, only in courses:
        entries = course.within(*intervals)
        index, count = course.buckets(entries)
        if index.size:
            filled = course.count[entries] > 0
            low = np.maximum(bucket_lowest(index, course.k), course.minimum[entries][filled].min())
            high = np.minimum(bucket_highest(index, course.k), course.maximum[entries][filled].max())
            off = np.maximum(np.abs(low), np.abs(high)) if values.two_sided else high
            late_us = off * np.float64(values.unit_ns / 1000.0)
            maximum_us = float(np.fmax(maximum_us, late_us.max()))
            if only is not None:
                unmeasured = np.where(index == only.bucket, np.minimum(count, only.count), 0)
                counted += int(unmeasured.sum())
                count = count - unmeasured
            late.append(late_us[count > 0])
            counts.append(count[count > 0])
    return _Column(*times_s, np.concatenate(late), np.concatenate(counts), maximum_us, counted)


def _row_edges(together: list[Merged]) -> NDArray[np.float64]:
    """In µs, at edges of the buckets of the intervals: every bucket lies in exactly one row."""
    unit_ns = together[0].unit_ns
    low_ns = max(_LEAST_US * 1000.0, min(float(values.magnitudes[0].min()) for values in together))
    high_ns = max(low_ns * 8, *(values.maximum_ns or 0.0 for values in together))
    ends = bucket_index([max(1, int(low_ns / unit_ns)), int(high_ns / unit_ns) + 1], INTERVAL_K)
    first, last = int(ends[0]), int(ends[1])
    step = -(-(last + 1 - first) // _MOST_ROWS)
    return bucket_lowest(np.arange(first, last + 1 + step, step), INTERVAL_K) * np.float64(unit_ns / 1000.0)


def _counts(columns: list[_Column], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    grid = np.zeros((edges.size - 1, len(columns)))
    for place, column in enumerate(columns):
        late_us = np.clip(column.late_us, edges[0], edges[-1])
        rows = np.clip(np.searchsorted(edges, late_us, side="right") - 1, 0, edges.size - 2)
        np.add.at(grid[:, place], rows, column.count)
    return grid


@dataclass(frozen=True)
class _Map:
    """One kind of series over time.  ``counts``: rows by ``edges`` of latency, columns by ``columns``."""

    entry: SeriesEntry
    columns: list[_Column]
    joins: list[float]
    edges: NDArray[np.float64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, context: Context, entry: SeriesEntry) -> _Map:
        columns, joins = _columns(entry.group.recordings, entry.kind)
        edges = _row_edges([other.kind.all_cpus for other in context.beside(entry)])
        return cls(entry, columns, joins, edges, _counts(columns, edges))

    @property
    def neighbours(self) -> tuple[str, str]:
        """Maps with the same value share their axes."""
        return self.entry.group.setup, self.entry.kind.name

    @property
    def data(self) -> Data:
        """One row for the maxima and one per band of latency, lowest first; one column per moment."""
        moments = [f"samples from {column.begin_s:.6g} s" for column in self.columns]
        bands = [
            [f"{low:.6g}", f"{high:.6g}", *(int(count) or None for count in row)]
            for low, high, row in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True)
        ]
        maxima = [None if np.isnan(column.maximum_us) else column.maximum_us for column in self.columns]
        counted = [column.counted or None for column in self.columns]
        only = [["only counted", "", *counted]] if any(counted) else []
        return ["latency from [µs]", "to [µs]", *moments], [["maximum [µs]", "", *maxima], *only, *bands]


def heat_figure(heat: _Map, beside: list[_Map]) -> Figure:
    """The heat map of one kind of series, all CPUs combined.  All loads of one setup share axes and colours."""
    total_s = max(other.columns[-1].end_s for other in beside)
    _, scale, unit = next(entry for entry in _TIME_UNITS if total_s >= entry[0])
    times = np.array([column.begin_s for column in heat.columns] + [heat.columns[-1].end_s]) / scale
    figure, axes = plot.new_figure(heat.entry.name)
    axes.grid(False)
    axes.set_facecolor(plot.GROUND)
    mesh = axes.pcolormesh(
        times,
        heat.edges,
        np.ma.masked_equal(heat.counts, 0),
        cmap=plot.DENSITY,
        rasterized=True,
        norm=LogNorm(1, max(10.0, *(float(other.counts.max()) for other in beside))),
    )
    maxima = np.clip([column.maximum_us for column in heat.columns], heat.edges[0], None)
    axes.stairs(maxima, times, baseline=None, color=plot.LIMIT, linewidth=0.8)
    for join in heat.joins if len(heat.joins) <= 50 else ():
        axes.axvline(join / scale, color="#999999", linewidth=0.5, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylim(heat.edges[0], heat.edges[-1] * 1.15)
    axes.set_xlim(0, total_s / scale)
    plot.plain_log_axis(axes.yaxis)
    axes.set_xlabel(f"measured time [{unit}]")
    axes.set_ylabel("latency [µs]; red: maximum")
    bar = figure.colorbar(mesh, ax=axes, label="samples", pad=0.01)
    plot.plain_log_axis(bar.ax.yaxis)
    return figure


def _picture(heat_map: _Map, maps: list[_Map], name: str) -> Picture:
    kind, group = heat_map.entry.kind, heat_map.entry.group
    figure = heat_figure(heat_map, [other for other in maps if other.neighbours == heat_map.neighbours])
    return plot.picture(
        figure,
        name,
        f"{kind.name}, all CPUs: {group.label(kind.all_cpus)}.{_note(kind, heat_map.joins)}",
        heat_map.data,
    )


def _note(kind: SeriesKind, joins: list[float]) -> str:
    notes = []
    values = kind.all_cpus
    if not values.two_sided and (values.histogram.minimum or 0) * values.unit_ns < _LEAST_US * 1000:
        notes.append(f" The lowest row includes values below {_LEAST_US} µs and early ones.")
    notes.append(counted_note([values]))
    if joins:
        notes.append(f" {len(joins) + 1} runs one after the other.")
    return "".join(notes)


def section(context: Context) -> Section | None:
    chosen = [entry for entry in (*context.entries, *context.ways) if entry.kind.all_cpus.duration_ns]
    if not chosen:
        return None
    maps = [_Map.of(context, entry) for entry in chosen[:MOST_MAPS]]
    parts: list[Picture | Text] = [
        _picture(heat_map, maps, f"heat-{number}") for number, heat_map in enumerate(maps, start=1)
    ]
    if len(chosen) > MOST_MAPS:
        parts.append(Text(f"{len(chosen) - MOST_MAPS} more are not drawn; the tables have all."))
    return Section(
        "heat",
        "Latency over time",
        "Darker means more samples. The red line is the maximum of each interval. The latency axis is logarithmic.",
        parts,
    )
