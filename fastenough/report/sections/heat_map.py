# SPDX-License-Identifier: GPL-2.0-or-later
"""Time × latency, with each interval's maximum drawn on top: what a histogram alone would hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from fastenough.analysis import Merged
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_index, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K, Course
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Picture, Section, Text

MOST_MAPS = 24
_MOST_COLUMNS = 400
_MOST_ROWS = 72
_LEAST_US = 0.1
_TIME_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True)
class _Column:
    """Some intervals together: what their buckets hold at most, how many values each, and the greatest of all."""

    begin_s: float
    end_s: float
    late_us: NDArray[np.float64]
    count: NDArray[np.int64]
    maximum_us: float


def _columns(recordings: tuple[Recording, ...], kind: Kind) -> tuple[list[_Column], list[float]]:
    """All intervals one after the other in measured time, several put together where there are many; and the joins."""
    columns: list[_Column] = []
    joins: list[float] = []
    together = max(1, -(-sum(recording.aggregate.intervals for recording in recordings) // _MOST_COLUMNS))
    at_s = 0.0
    for recording in sorted(recordings, key=lambda recording: recording.head.begin.wall_ns):
        timeline = recording.timeline
        courses = [timeline.courses[series.id] for series in recording.series
                   if (series.name, series.labels) == (kind.series.name, kind.series.labels)]
        for first in range(0, len(timeline), together):
            last = min(first + together, len(timeline))
            length_s = int(timeline.end_mono_ns[last - 1] - timeline.begin_mono_ns[first]) / 1e9
            columns.append(_column(courses, (first, last), (at_s, at_s + length_s), kind.all_cpus))
            at_s += length_s
        joins.append(at_s)
    return columns, joins[:-1]


def _column(courses: list[Course], intervals: tuple[int, int], times_s: tuple[float, float], values: Merged) -> _Column:
    """These intervals of all CPUs together."""
    late, counts = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for course in courses:
        entries = course.within(*intervals)
        index, count = course.buckets(entries)
        if index.size:
            taken = course.count[entries] > 0
            low = np.maximum(bucket_lowest(index, course.k), course.minimum[entries][taken].min())
            high = np.minimum(bucket_highest(index, course.k), course.maximum[entries][taken].max())
            off = np.maximum(np.abs(low), np.abs(high)) if values.two_sided else high
            late.append(off * np.float64(values.unit_ns / 1000.0))
            counts.append(count)
    late_us = np.concatenate(late)
    return _Column(*times_s, late_us, np.concatenate(counts), float(late_us.max()) if late_us.size else np.nan)


def _row_edges(together: list[Merged]) -> NDArray[np.float64]:
    """In µs, at edges of the intervals' buckets, so that each of these lies in one row and no row is skipped."""
    unit_ns = together[0].unit_ns
    low_ns = max(_LEAST_US * 1000.0, min(float(values.magnitudes()[0].min()) for values in together))
    high_ns = max(low_ns * 8, *(values.maximum_ns or 0.0 for values in together))
    ends = bucket_index([int(low_ns / unit_ns), int(high_ns / unit_ns) + 1], INTERVAL_K)
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


def heat_picture(context: Context, group: Group, kind: Kind, name: str) -> Picture:
    """The heat map of one kind of series, all CPUs together; all loads of one setup share the latency axis."""
    columns, joins = _columns(group.recordings, kind)
    edges = _row_edges(context.beside(group, kind))
    counts = _counts(columns, edges)
    total_s = columns[-1].end_s
    _, scale, unit = next(entry for entry in _TIME_UNITS if total_s >= entry[0])
    times = np.array([column.begin_s for column in columns] + [total_s]) / scale
    figure, axes = plot.new_figure(group.title)
    axes.grid(False)
    mesh = axes.pcolormesh(times, edges, np.ma.masked_equal(counts, 0), cmap="YlGnBu",
                           norm=LogNorm(1, max(10.0, float(counts.max()))), rasterized=True)
    maxima = np.clip([column.maximum_us for column in columns], edges[0], None)
    axes.stairs(maxima, times, baseline=None, color="#b00020", linewidth=1.1, label="maximum")
    for join in joins if len(joins) <= 50 else ():
        axes.axvline(join / scale, color="#999999", linewidth=0.5, linestyle=":")
    axes.set_yscale("log")
    axes.set_ylim(edges[0], edges[-1] * 1.15)
    plot.plain_log_axis(axes.yaxis)
    axes.set_xlabel(f"measured time [{unit}]")
    axes.set_ylabel("latency [µs]")
    axes.legend(loc="lower right", bbox_to_anchor=(1.02, 0.99), frameon=False, fontsize=8)
    bar = figure.colorbar(mesh, ax=axes, label="samples", pad=0.01)
    plot.plain_log_axis(bar.ax.yaxis)
    return plot.picture(figure, name, f"{kind.name}, all CPUs: {group.label(kind.all_cpus)}.{_note(kind, joins)}")


def _note(kind: Kind, joins: list[float]) -> str:
    notes = []
    values = kind.all_cpus
    if not values.two_sided and (values.histogram.minimum or 0) * values.unit_ns < _LEAST_US * 1000:
        notes.append(f" Values below {_LEAST_US} µs, early ones too, lie in the lowest row.")
    if joins:
        notes.append(f" {len(joins) + 1} runs one after the other.")
    return "".join(notes)


def section(context: Context) -> Section | None:
    chosen = [(group, kind) for group in context.groups for kind in group.judged_kinds if kind.all_cpus.n]
    if not chosen:
        return None
    parts: list[Picture | Text] = [heat_picture(context, group, kind, f"heat-{number}")
                                   for number, (group, kind) in enumerate(chosen[:MOST_MAPS], start=1)]
    if len(chosen) > MOST_MAPS:
        parts.append(Text(f"{len(chosen) - MOST_MAPS} more are not drawn; the tables hold all of them."))
    return Section("heat", "Latency over time",
                   "Each column is a moment, each row a latency; the darker, the more samples. The red line is the "
                   "greatest latency of that moment. Latency is on a logarithmic axis.", parts)
