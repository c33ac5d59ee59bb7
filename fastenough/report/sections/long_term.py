# SPDX-License-Identifier: GPL-2.0-or-later
"""Hours to years: five-minute maxima with the overall maximum, and latency plots one behind the other.

After figures 2, 5 and 7 of OSADL's article on the quality assessment of real-time Linux.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from fastenough.analysis import words
from fastenough.analysis.long_term import (
    FIVE_MINUTES_NS,
    FiveMinutes,
    FloatArray,
    Stretch,
    five_minutes,
    stretch_for,
    stretches,
)
from fastenough.recording.histogram import bucket_highest, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K
from fastenough.report import plot
from fastenough.report.context import Context, SeriesEntry
from fastenough.report.document import Data, Folded, Picture, Section, Text

_HOUR_NS = 3600 * 10**9
_DAY_NS = 24 * _HOUR_NS
WINDOWS = (("30 hours", 30 * _HOUR_NS), ("a month", 31 * _DAY_NS), ("a year", 366 * _DAY_NS))
LEAST_NS = _HOUR_NS
"""Shorter measurements are shown by the heat map."""
MOST_ENTRIES = 8
LEAST_STRETCHES, MOST_STRETCHES = 6, 40
_MOST_COLUMNS = 1200
_ROW_DECADES = 1.0
_LEAST_US = 0.01
_LINEAR_UP_TO = 30
"""A linear axis may reach to this multiple of the median of the maxima drawn."""


def _dates(wall_ns: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """Wall-clock times as days, for matplotlib."""
    return np.asarray(wall_ns, dtype=np.float64) / 1e9 / 86400.0


def _columns(maxima: FiveMinutes, begin_wall_ns: int, end_wall_ns: int) -> tuple[FloatArray, FloatArray]:
    """Edges (days) and heights (µs): the maximum of each column, NaN without data."""
    together = -(-(end_wall_ns - begin_wall_ns) // (FIVE_MINUTES_NS * _MOST_COLUMNS)) * FIVE_MINUTES_NS
    within = (maxima.begin_wall_ns >= begin_wall_ns) & (maxima.begin_wall_ns < end_wall_ns)
    place = (maxima.begin_wall_ns[within] - begin_wall_ns) // together
    heights = np.full(-(-(end_wall_ns - begin_wall_ns) // together), -np.inf)
    np.maximum.at(heights, place, maxima.maximum_ns[within] / 1000.0)
    heights[np.isinf(heights)] = np.nan
    return _dates(begin_wall_ns + together * np.arange(heights.size + 1)), heights


def _maxima_figure(
    entry: SeriesEntry, maxima: FiveMinutes, window: str, begin_wall_ns: int, end_wall_ns: int
) -> Figure:
    figure, axes = plot.new_figure(f"Five-minute maxima, {window}: {entry.name}", plot.WIDE_IN)
    edges, heights = _columns(maxima, begin_wall_ns, end_wall_ns)
    axes.stairs(heights, edges, baseline=None, color=plot.COLOURS[0], linewidth=1.0, label="maximum, all CPUs")
    worst_us = maxima.worst_ns / 1000.0
    cpu = "" if maxima.worst_cpu is None else f", CPU {maxima.worst_cpu}"
    axes.axhline(
        worst_us,
        color=plot.LIMIT,
        linestyle="--",
        linewidth=1.0,
        label=f"overall maximum: {words.latency(maxima.worst_ns)}{cpu}, {words.minute(maxima.worst_wall_ns)}",
    )
    if begin_wall_ns <= maxima.worst_wall_ns <= end_wall_ns:
        axes.plot(_dates([maxima.worst_wall_ns]), [worst_us], "D", color=plot.LIMIT, markersize=5)
    if worst_us > _LINEAR_UP_TO * float(np.nanmedian(heights)):
        axes.set_yscale("log")
        plot.plain_log_axis(axes.yaxis)
    else:
        axes.set_ylim(0, worst_us * 1.1)
    axes.set_xlim(edges[0], edges[-1])
    _date_axis(axes)
    axes.set_ylabel("latency [µs]" + (", logarithmic" if axes.get_yscale() == "log" else ""))
    plot.legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


def _date_axis(axes: Axes) -> None:
    locator = AutoDateLocator(tz=UTC, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    axes.set_xlabel("time (UTC)")


def _interval_note(maxima: FiveMinutes) -> str:
    """A note on intervals that are longer than five minutes."""
    if maxima.longest_ns < 2 * FIVE_MINUTES_NS:
        return ""
    longest = words.duration(maxima.longest_ns)
    return f"Intervals are up to {longest} long; the maximum of an interval is drawn over its whole length. "


def _maxima(entry: SeriesEntry, maxima: FiveMinutes, number: int) -> Iterator[Picture]:
    """One figure for each window that is longer than the data of the one before."""
    end_wall_ns = int(maxima.begin_wall_ns[-1]) + FIVE_MINUTES_NS
    shown_ns = 0
    for place, (window, length_ns) in enumerate(WINDOWS):
        if maxima.span_ns <= shown_ns:
            return
        begin_wall_ns = max(end_wall_ns - length_ns, int(maxima.begin_wall_ns[0]))
        figure = _maxima_figure(entry, maxima, window, begin_wall_ns, end_wall_ns)
        within = maxima.begin_wall_ns >= begin_wall_ns
        data: Data = (
            ["begin_utc", "maximum_ns"],
            [
                [words.minute(int(wall_ns)), float(value_ns)]
                for wall_ns, value_ns in zip(maxima.begin_wall_ns[within], maxima.maximum_ns[within], strict=True)
            ],
        )
        yield plot.picture(
            figure,
            f"maxima-{number}-{place + 1}",
            f"Maxima of {int(within.sum()):,} five-minute intervals up to "
            f"{words.minute(end_wall_ns)}, {entry.kind.name}: "
            f"{entry.group.label(entry.kind.all_cpus)}. {_interval_note(maxima)}Gaps: not measured.",
            data,
            wide=True,
        )
        shown_ns = length_ns


def _stairs(stretch: Stretch) -> tuple[FloatArray, FloatArray]:
    """Edges in µs, and decades of values per bucket; counts are doubled so that a single value is visible."""
    index = np.arange(stretch.index[0], stretch.index[-1] + 2)
    decades = np.zeros(index.size - 1)
    decades[stretch.index - stretch.index[0]] = np.log10(stretch.count * 2.0)
    return np.maximum(bucket_lowest(index, INTERVAL_K) / 1000.0, _LEAST_US), decades


def _ridge_figure(entry: SeriesEntry, ridges: Sequence[Stretch], scale: str) -> Figure:
    """Latency plots of stretches of time: the oldest at the back, the most recent in front.

    ``scale`` of the latencies: linear, as OSADL's article recommends, or log.
    """
    figure, axes = plot.new_figure(
        f"Latency plots over time, most recent in front: {entry.name}", (plot.WIDE_IN[0], 2.2 + 0.13 * len(ridges))
    )
    for row, stretch in enumerate(ridges):
        foot = (len(ridges) - 1 - row) * _ROW_DECADES
        edges_us, decades = _stairs(stretch)
        axes.stairs(foot + decades, edges_us, baseline=foot, fill=True, color="#ffffff", zorder=row + 2)
        axes.stairs(foot + decades, edges_us, baseline=foot, color=plot.COLOURS[0], linewidth=0.8, zorder=row + 2.3)
        axes.plot(
            [max(stretch.maximum_ns / 1000.0, _LEAST_US)],
            [foot],
            marker="o",
            color=plot.COLOURS[1],
            markersize=3,
            zorder=row + 2.6,
        )
    axes.set_xlabel("latency [µs]; the dots mark the maxima")
    if scale == "log":
        axes.set_xscale("log")
        plot.plain_log_axis(axes.xaxis)
        axes.set_xlabel("latency [µs], logarithmic; the dots mark the maxima")
    else:
        axes.set_xlim(0, None)
        axes.xaxis.set_major_formatter(plot.plain)
    step = max(1, len(ridges) // 10)
    feet = range(0, len(ridges), step)
    axes.set_yticks(
        [foot * _ROW_DECADES for foot in feet],
        [words.minute(ridges[len(ridges) - 1 - foot].begin_wall_ns).removesuffix(" UTC") for foot in feet],
    )
    axes.set_ylabel("begin (UTC)")
    axes.set_ylim(0, None)
    return figure


def _ridges(entry: SeriesEntry, maxima: FiveMinutes, number: int) -> Iterator[Picture | Folded]:
    """On a linear axis; folded, on a logarithmic one."""
    length_ns = stretch_for(maxima.span_ns, MOST_STRETCHES - 1)  # the first and the last may be parts of one
    newest = stretches(entry.kind.all_cpus.parts, length_ns)[-MOST_STRETCHES:]
    if len(newest) < LEAST_STRETCHES:
        return
    rows = [
        [words.minute(stretch.begin_wall_ns), int(low_ns), int(high_ns), int(count)]
        for stretch in newest
        for low_ns, high_ns, count in zip(
            bucket_lowest(stretch.index, INTERVAL_K),
            bucket_highest(stretch.index, INTERVAL_K),
            stretch.count,
            strict=True,
        )
    ]
    n = sum(stretch.n for stretch in newest)
    caption = (
        f"{len(newest)} stretches of {words.duration(length_ns)}, {entry.kind.name}, n = {n:,}, "
        f"{entry.group.title}, {entry.group.instrument}. Heights are logarithmic: the distance between "
        "two plots is a factor of ten."
    )
    data: Data = (["begin_utc", "from_ns", "to_ns", "values"], rows)
    yield plot.picture(_ridge_figure(entry, newest, "linear"), f"ridge-{number}", caption, data, wide=True)
    yield Folded(
        "Logarithmic axis",
        [plot.picture(_ridge_figure(entry, newest, "log"), f"ridge-{number}-logarithmic", caption, data, wide=True)],
    )


def section(context: Context) -> Section | None:
    chosen = [
        (entry, maxima)
        for entry in (*context.entries, *context.ways)
        if (maxima := five_minutes(entry.kind.all_cpus.parts)) is not None and maxima.span_ns > LEAST_NS
    ]
    if not chosen:
        return None
    parts: list[Picture | Text | Folded] = []
    for number, (entry, maxima) in enumerate(chosen[:MOST_ENTRIES], start=1):
        parts += itertools.chain(_maxima(entry, maxima, number), _ridges(entry, maxima, number))
    if len(chosen) > MOST_ENTRIES:
        parts.append(Text(f"{len(chosen) - MOST_ENTRIES} more are not drawn; the tables have all."))
    return Section(
        "long-term",
        "Long-term maxima",
        "Rare events show only in long measurements. Each step is the maximum of five minutes; the dashed line is "
        "the overall maximum.",
        parts,
    )
