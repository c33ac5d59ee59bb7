# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency plots in OSADL's form: x in µs, logarithmic y, stairs; one line per series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fastenough.analysis import Merged, words
from fastenough.analysis.measures import least_maximum_ns
from fastenough.report import plot
from fastenough.report.context import SeriesEntry
from fastenough.report.document import Data

MOST_NAMED = len(plot.COLOURS)
_HATCH = "////"
_LIMIT_WITHIN = 3.0
_HATCHED_PLACES = 250
"""Columns of hatching over the width of a figure; narrower ones would not be visible."""


@dataclass(frozen=True)
class HistogramLine:
    """Values under one name.  ``measured``: the same without what was charged for missed periods; None: nothing was."""

    name: str
    values: Merged
    measured: Merged | None = None


def line_of(entry: SeriesEntry) -> HistogramLine:
    """All CPUs together."""
    measured = entry.group.measured_kind(entry.kind)
    return HistogramLine(entry.name, entry.kind.all_cpus, None if measured is None else measured.all_cpus)


def lines_by_cpu(entry: SeriesEntry) -> list[HistogramLine]:
    """CPU by CPU, those that hold samples."""
    measured = entry.group.measured_kind(entry.kind)
    uncharged = {values.cpus: values for values in measured.per_cpu} if measured else {}
    return [
        HistogramLine(
            f"CPU {values.cpus[0]}" if values.cpus else values.name,
            values,
            uncharged.get(values.cpus) if values.missed else None,
        )
        for values in sorted(entry.kind.per_cpu, key=lambda values: values.cpus)
        if values.n
    ]


@dataclass(frozen=True)
class Scale:
    """What neighbouring figures share: the x axis over all of ``together``, and the greatest count of the y axis.

    A limit is drawn, and the axis extended to it, up to ``reach`` times as far as the axis goes without it.
    """

    together: Sequence[Merged]
    axis: Callable[[Axes, Sequence[Merged]], object]
    most: int
    limits_ns: Sequence[float] = ()
    reach: float = _LIMIT_WITHIN

    @classmethod
    def over(
        cls,
        together: Sequence[Merged],
        axis: Callable[[Axes, Sequence[Merged]], object],
        limits_ns: Sequence[float] = (),
        reach: float = _LIMIT_WITHIN,
    ) -> Scale:
        greatest = max((int(plot.one_microsecond_view(values)[1].max(initial=1)) for values in together), default=1)
        return cls(together, axis, greatest, limits_ns, reach)


def charged(line: HistogramLine) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Whole µs, number of values there, and number of those that were charged, not measured."""
    us, counts = plot.one_microsecond_view(line.values)
    if line.measured is None:
        return us, counts, np.zeros_like(counts)
    measured_us, measured_counts = plot.one_microsecond_view(line.measured)
    measured = np.zeros_like(counts)
    both = np.isin(measured_us, us)
    measured[np.searchsorted(us, measured_us[both])] = measured_counts[both]
    return us, counts, np.maximum(counts - measured, 0)


def _draw_charged(
    axes: Axes, line: HistogramLine, edges: NDArray[np.float64], heights: NDArray[np.float64], colour: str
) -> None:
    """Hatched from what was measured up to what is judged, where the two differ."""
    us, counts, added = charged(line)
    measured, _ = plot.stairs(us, counts - added)
    measured = np.maximum(measured, plot.FLOOR)
    first = plot.places(edges, axes, _HATCHED_PLACES)
    tops, floors = np.maximum.reduceat(heights, first), np.maximum.reduceat(measured, first)
    has = np.add.reduceat((heights > measured).astype(np.int64), first) > 0
    axes.stairs(
        np.where(has, tops, floors),
        np.append(edges[first], edges[-1]),
        baseline=floors,
        fill=True,
        facecolor="none",
        edgecolor=colour,
        hatch=_HATCH,
        linewidth=0,
    )
    axes.stairs(*plot.drawable(measured, edges, axes), baseline=plot.FLOOR, color=colour, linewidth=1.3)


def _draw_line(axes: Axes, line: HistogramLine, colour: str) -> None:
    heights, edges = plot.stairs(*plot.one_microsecond_view(line.values))
    left, right = axes.get_xlim()
    if axes.get_xscale() == "log":
        edges = np.maximum(edges, left)
    if line.measured is None:
        if heights.size:  # else all values were only counted
            axes.stairs(*plot.drawable(heights, edges, axes), baseline=plot.FLOOR, color=colour, linewidth=1.3)
    else:
        axes.stairs(*plot.drawable(heights, edges, axes), baseline=plot.FLOOR, color=colour, linewidth=0.6, alpha=0.5)
        _draw_charged(axes, line, edges, heights, colour)
    maximum_us = (line.values.maximum_ns or 0.0) / 1000.0
    axes.plot(
        [min(maximum_us, right)],
        [plot.FLOOR],
        marker="^" if maximum_us <= right else ">",
        color=colour,
        markersize=6,
        clip_on=False,
        zorder=5,
    )


def _draw_limits(axes: Axes, scale: Scale) -> list[Artist]:
    end_us = axes.get_xlim()[1] * scale.reach
    near_us = [limit_ns / 1000.0 for limit_ns in scale.limits_ns if limit_ns / 1000.0 <= end_us]
    axes.set_xlim(right=max([axes.get_xlim()[1], *(limit_us * 1.05 for limit_us in near_us)]))
    return [
        axes.axvline(
            limit_us,
            color=plot.LIMIT,
            linestyle=style,
            linewidth=1.2,
            label=f"limit {words.exact_time(limit_us * 1000.0)}",
        )
        for limit_us, style in zip(near_us, itertools.cycle(("--", "-.", ":")), strict=False)
    ]


def _named(lines: Sequence[HistogramLine]) -> list[bool]:
    """Which get a colour of their own: where there are too many lines, those with the greatest maxima."""
    by_maximum = sorted(range(len(lines)), key=lambda place: -(lines[place].values.maximum_ns or 0.0))
    return [place in by_maximum[:MOST_NAMED] for place in range(len(lines))]


def _maximum_text(values: Merged) -> str:
    return words.latency_or_least(values.known_maximum_ns, least_maximum_ns(values))


def _draw_lines(axes: Axes, lines: Sequence[HistogramLine]) -> list[Artist]:
    """Draw them; returns what the legend says of them."""
    colours = iter(plot.COLOURS)
    handles: list[Artist] = []
    for line, named in zip(lines, _named(lines), strict=True):
        colour = next(colours) if named else plot.UNNAMED
        _draw_line(axes, line, colour)
        if named:
            handles.append(
                Line2D([], [], color=colour, linewidth=2, label=f"{line.name}: max {_maximum_text(line.values)}")
            )
    if len(lines) > MOST_NAMED:
        handles.append(Line2D([], [], color=plot.UNNAMED, linewidth=2, label=f"{len(lines) - MOST_NAMED} others"))
    if any(line.measured is not None for line in lines):
        handles.append(
            Patch(
                facecolor="none", edgecolor=plot.UNNAMED, hatch=_HATCH, label="charged for missed periods, not measured"
            )
        )
    return handles


def latency_figure(
    title: str, lines: Sequence[HistogramLine], scale: Scale, size_in: tuple[float, float] = plot.HALF_IN
) -> Figure:
    """These lines, which all hold samples, on the axes of ``scale``."""
    figure, axes = plot.new_figure(title, size_in)
    scale.axis(axes, scale.together)
    axes.xaxis.set_major_formatter(plot.plain)
    axes.set_xlabel("latency [µs]" + (", logarithmic" if axes.get_xscale() != "linear" else ""))
    axes.set_ylabel("samples per µs")
    limits = _draw_limits(axes, scale)
    plot.count_axis(axes, scale.most)
    plot.legend_below(figure, _draw_lines(axes, lines) + limits)
    return figure


def counted_note(together: Sequence[Merged]) -> str:
    """A note on the values that no figure draws, because a tool only counted them; empty if there are none."""
    counted = [only for values in together for only in values.counted_only]
    if not counted:
        return ""
    n = sum(only.count for only in counted)
    least_ns = min(only.least_ns for only in counted)
    return f" Not drawn: {words.counted(n, 'value')} of at least {words.latency(least_ns)}, which a tool only counted."


def latency_data(lines: Sequence[HistogramLine]) -> Data:
    """What such a figure draws, as numbers; values that were only counted have a row and a column of their own."""
    rows: list[tuple[str, int, int, int]] = [
        (line.name, int(us), int(count), int(added))
        for line in lines
        for us, count, added in zip(*charged(line), strict=True)
    ]
    header = ("line", "latency_us", "samples", "of_which_charged")
    counted = [
        (line.name, None, only.count, 0, math.floor(only.least_ns / 1000))
        for line in lines
        for only in line.values.counted_only
    ]
    return ((*header, "at_least_us"), [*((*row, None) for row in rows), *counted]) if counted else (header, rows)
