# SPDX-License-Identifier: GPL-2.0-or-later
"""Time × latency, with each interval's maximum drawn on top: what a histogram alone would hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from fastenough.analysis import Pool
from fastenough.recording import Histogram, Interval, Recording
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Picture, Section, Text

MOST_MAPS = 24
_MOST_COLUMNS = 400
_ROWS = 72
_LEAST_US = 0.1
_TIME_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True)
class _Column:
    begin_s: float
    end_s: float
    histogram: Histogram


def _columns(recordings: tuple[Recording, ...], kind: Kind) -> tuple[list[_Column], list[float]]:
    """All intervals one after the other in measured time, several put together where there are many; and the joins."""
    columns: list[_Column] = []
    joins: list[float] = []
    together = max(1, -(-sum(len(recording.intervals) for recording in recordings) // _MOST_COLUMNS))
    at_s = 0.0
    for recording in sorted(recordings, key=lambda recording: recording.head.begin.wall_ns):
        ids = [series.id for series in recording.series
               if (series.name, series.labels) == (kind.series.name, kind.series.labels)]
        for first in range(0, len(recording.intervals), together):
            some = recording.intervals[first:first + together]
            length_s = (some[-1].end_mono_ns - some[0].begin_mono_ns) / 1e9
            columns.append(_Column(at_s, at_s + length_s, _merged(some, ids, kind.series.k)))
            at_s += length_s
        joins.append(at_s)
    return columns, joins[:-1]


def _merged(intervals: tuple[Interval, ...], ids: list[int], k: int) -> Histogram:
    return Histogram.merged((interval.histograms[identity] for interval in intervals for identity in ids
                             if identity in interval.histograms), k)


def _late_us(histogram: Histogram, unit_ns: float, two_sided: bool) -> NDArray[np.float64]:
    values = histogram.highest() * np.float64(unit_ns / 1000.0)
    return np.abs(values) if two_sided else values


def _row_edges(together: list[Pool]) -> NDArray[np.float64]:
    low = max(_LEAST_US, min(float(values.magnitudes()[0].min()) for values in together) / 1000.0 * 0.9)
    high = max(max(values.maximum_ns or 0.0 for values in together) / 1000.0 * 1.1, low * 8)
    return np.geomspace(low, high, _ROWS + 1)


def _counts(columns: list[_Column], kind: Kind, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    values = kind.all_cpus
    grid = np.zeros((_ROWS, len(columns)))
    for place, column in enumerate(columns):
        late_us = np.clip(_late_us(column.histogram, values.unit_ns, values.two_sided), edges[0], edges[-1])
        rows = np.clip(np.searchsorted(edges, late_us, side="right") - 1, 0, _ROWS - 1)
        np.add.at(grid[:, place], rows, column.histogram.count)
    return grid


def _maxima_us(columns: list[_Column], kind: Kind) -> NDArray[np.float64]:
    values = kind.all_cpus
    return np.array([np.nan if not column.histogram.total else
                     _late_us(column.histogram, values.unit_ns, values.two_sided).max() for column in columns])


def heat_picture(context: Context, group: Group, kind: Kind, name: str) -> Picture:
    """The heat map of one kind of series, all CPUs together; all loads of one setup share the latency axis."""
    columns, joins = _columns(group.recordings, kind)
    edges = _row_edges(context.beside(group, kind))
    counts = _counts(columns, kind, edges)
    total_s = columns[-1].end_s
    _, scale, unit = next(entry for entry in _TIME_UNITS if total_s >= entry[0])
    times = np.array([column.begin_s for column in columns] + [total_s]) / scale
    figure, axes = plot.new_figure(group.title)
    axes.grid(False)
    mesh = axes.pcolormesh(times, edges, np.ma.masked_equal(counts, 0), cmap="YlGnBu",
                           norm=LogNorm(1, max(10.0, float(counts.max()))), rasterized=True)
    maxima = np.clip(_maxima_us(columns, kind), edges[0], None)
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
