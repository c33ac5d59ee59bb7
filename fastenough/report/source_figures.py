# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures in the form of the sources: histograms one above another with the 95 % mark (figures 2 and 4 of Brown and
Martin), 95 % and 100 % as bars on a logarithmic scale (3 and 5), and an oscilloscope's overlay (AT91SAM)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from fastenough.analysis import Merged, words
from fastenough.reference import Figure
from fastenough.report import plot
from fastenough.report.document import Data, Picture
from fastenough.report.source_tables import names

_SERIAL_BYTES = 12
_SERIAL_BAUD = 115_200
_BITS_PER_BYTE = 10
SERIAL_US = _SERIAL_BYTES * _BITS_PER_BYTE / _SERIAL_BAUD * 1e6
"""Time of twelve bytes on a serial line (8 data bits, start and stop bit), as a yardstick."""
_BINS = 160
_ROW_IN = 1.15
_BAR_IN = 0.6
_TRACES = 400
"""Columns of an overlay."""
_LEVELS = (0.0, 0.12, 0.88, 1.0)
"""Where in an overlay the lower level, the edges and the upper level lie."""


@dataclass(frozen=True)
class FigureTexts:
    """Texts that the figures of one quantity share.  ``name``: prefix of their files; ``heading``: added to titles;
    ``levels``: names of the levels before and after the edge; ``conditions``: n, duration, load, instrument.
    """

    name: str
    quantity: str
    levels: tuple[str, str]
    heading: str
    conditions: str


def _rows(count: int, row_in: float) -> tuple[Drawing, NDArray[np.object_]]:
    """One pair of axes above another, all with the same x axis."""
    figure = Drawing(figsize=(plot.WIDE_IN[0], 0.9 + row_in * count), layout="constrained")
    rows: NDArray[np.object_] = figure.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes in rows:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, rows


def _named(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="right", fontsize=8, parse_math=False)


def _titled(figure: Drawing, texts: FigureTexts, title: str) -> None:
    full_title = " · ".join(filter(None, (title, texts.heading)))
    figure.suptitle(full_title, x=0.01, ha="left", fontsize=10, fontweight="bold", parse_math=False)


def shares(values: Merged, edges_us: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percent of all samples in each bin; a bucket wider than a bin is spread evenly over its width."""
    lowest_ns, highest_ns = values.edges_ns
    up_to = np.cumsum(values.histogram.count)
    ends_us = np.column_stack([lowest_ns, highest_ns + values.unit_ns]).ravel() / 1000.0
    counts = np.column_stack([up_to - values.histogram.count, up_to]).ravel()
    return np.asarray(100.0 * np.diff(np.interp(edges_us, ends_us, counts)) / values.n)


def _bins_us(figures: Sequence[Figure], merged: Sequence[Merged]) -> tuple[NDArray[np.float64], int]:
    """Bin edges for all together, and how many samples lie beyond them."""
    body_ns = [figure.p95_ns for figure in figures if figure.p95_ns is not None]
    end_us = 1.5 * max(body_ns, default=max(values.maximum_ns or 1000.0 for values in merged)) / 1000.0
    begin_us = -end_us if any(values.two_sided for values in merged) else 0.0
    beyond = sum(values.exceeded(end_us * 1000.0)[1] for values in merged)
    return np.linspace(begin_us, end_us, _BINS + 1), beyond


def histograms(texts: FigureTexts, figures: Sequence[Figure], merged: Sequence[Merged]) -> Picture:
    """Figures 2 and 4: linear histograms on one axis, and the mark within which 95 % lie."""
    edges_us, beyond = _bins_us(figures, merged)
    drawing, rows = _rows(len(figures), _ROW_IN)
    for axes, name, figure, values in zip(rows, names(figures), figures, merged, strict=True):
        axes.stairs(shares(values, edges_us), edges_us, fill=True, color=plot.COLOURS[0])
        for side in (1, -1) if values.two_sided else (1,):
            if figure.p95_ns is not None:
                axes.axvline(side * figure.p95_ns / 1000.0, color=plot.LIMIT, linestyle="--", linewidth=1)
        _named(axes, name)
        axes.set_ylabel("%")
        axes.set_xlim(edges_us[0], edges_us[-1])
    rows[-1].set_xlabel(f"{texts.quantity} [µs]")
    _titled(drawing, texts, f"Share of the samples by {texts.quantity}")
    cut = f" {words.counted(beyond, 'sample')} lie beyond the axis." if beyond else ""
    data = (
        ("configuration", "implementation", "from_us", "to_us", "percent"),
        [
            (figure.configuration, figure.implementation, *band)
            for figure, values in zip(figures, merged, strict=True)
            for band in zip(edges_us[:-1], edges_us[1:], shares(values, edges_us), strict=True)
        ],
    )
    return plot.picture(
        drawing,
        f"{texts.name}-histograms",
        f"Share of the samples by {texts.quantity}, on a linear "
        f"scale; 95 % lie within the dashed line.{cut} {texts.conditions}",
        data,
        wide=True,
    )


def _serial_line(axes: Axes) -> None:
    """The yardstick, labelled above the axes on the side with more room."""
    low, high = np.log10(axes.get_xlim())
    right = (np.log10(SERIAL_US) - low) / (high - low) > 0.5
    axes.axvline(SERIAL_US, color="#444444", linestyle=":", linewidth=1.5)
    axes.annotate(
        f"{_SERIAL_BYTES} serial bytes at {_SERIAL_BAUD:,} bps: {SERIAL_US:,.0f} µs",
        (SERIAL_US, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-3 if right else 3, 2),
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=8,
    )


def _bar(axes: Axes, row: float, share: str, value_ns: float, colour: str) -> None:
    """A bar with its label, which covers the serial line behind it."""
    axes.barh(row, value_ns / 1000.0, height=0.38, color=colour)
    axes.annotate(
        f"{share}: {words.latency(value_ns)}",
        (value_ns / 1000.0, row),
        xytext=(4, 0),
        va="center",
        textcoords="offset points",
        fontsize=9,
        bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.8},
    )


def bars(texts: FigureTexts, figures: Sequence[Figure]) -> Picture:
    """Figures 3 and 5: maximum and 95 % envelope on a logarithmic scale, and the serial line as a yardstick."""
    drawing, axes = plot.new_figure("", (plot.WIDE_IN[0], 1.0 + _BAR_IN * len(figures)))
    rows = [
        (place + off, figure, share, value_ns or 0.0, colour)
        for place, figure in enumerate(figures)
        for off, share, value_ns, colour in (
            (-0.2, "95 %", figure.p95_ns, plot.COLOURS[0]),
            (0.2, "100 %", figure.maximum_ns, plot.COLOURS[1]),
        )
    ]
    least_us = min([SERIAL_US, *((figure.p95_ns or 1e9) / 1000.0 for figure in figures)])
    greatest_us = max([SERIAL_US, *(value_ns / 1000.0 for _, _, _, value_ns, _ in rows)])
    axes.set_xscale("log")
    axes.set_xlim(max(0.05, least_us / 3), greatest_us * 6)
    _serial_line(axes)
    for row, _, share, value_ns, colour in rows:
        _bar(axes, row, share, value_ns, colour)
    axes.set_yticks(range(len(figures)), names(figures), parse_math=False)
    axes.invert_yaxis()
    plot.plain_log_axis(axes.xaxis)
    axes.set_xlabel(f"{texts.quantity} [µs], logarithmic")
    _titled(drawing, texts, f"95 % and 100 % of the samples by {texts.quantity}")
    data = (
        ("configuration", "implementation", "share", "value_ns"),
        [(figure.configuration, figure.implementation, share, value_ns) for _, figure, share, value_ns, _ in rows],
    )
    return plot.picture(
        drawing,
        f"{texts.name}-bars",
        f"95 % and 100 % of the samples by {texts.quantity}, on a "
        f"logarithmic scale; dotted: the time of {_SERIAL_BYTES} bytes on a serial line. "
        f"{texts.conditions}",
        data,
        wide=True,
    )


def traces(values: Merged, edges_us: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts of traces after, at and before their edge, by column; no trace is left out."""
    _, highest_ns = values.edges_ns
    place = np.clip(np.searchsorted(edges_us, highest_ns / 1000.0, side="right") - 1, 0, edges_us.size - 2)
    at_edge = np.zeros(edges_us.size - 1, dtype=np.int64)
    np.add.at(at_edge, place, values.histogram.count)
    cumulative = np.cumsum(at_edge)
    return np.stack([cumulative, at_edge, values.n - cumulative + at_edge])


def _places_us(axes: Axes) -> NDArray[np.float64]:
    """Edges of places of equal width on this axis, whatever its scale."""
    scale = axes.xaxis.get_transform()
    low, high = scale.transform(np.array(axes.get_xlim()))
    return np.asarray(scale.inverted().transform(np.linspace(low, high, _TRACES + 1)))


def overlay(texts: FigureTexts, figures: Sequence[Figure], merged: Sequence[Merged]) -> Picture:
    """All edges over one another, as on an oscilloscope in overlay mode; single edges are visible."""
    drawing, rows = _rows(len(figures), _ROW_IN)
    (plot.linear_axis if plot.fits_linear(merged) else plot.log_axis)(rows[0], merged)
    edges_us = _places_us(rows[0])
    norm = LogNorm(1, max(10, *(values.n for values in merged)))
    data: list[tuple[object, ...]] = []
    for axes, name, figure, values in zip(rows, names(figures), figures, merged, strict=True):
        counts = traces(values, edges_us)
        axes.set_facecolor(plot.GROUND)
        mesh = axes.pcolormesh(
            edges_us, _LEVELS, np.ma.masked_equal(counts, 0), cmap=plot.DENSITY, norm=norm, rasterized=True
        )
        _named(axes, f"{name}: max {words.latency(values.maximum_ns)}")
        data += [
            (figure.configuration, figure.implementation, *band)
            for band in zip(edges_us[:-1], edges_us[1:], counts[1], strict=True)
            if band[-1]
        ]
    rows[0].set_yticks([np.mean(_LEVELS[:2]), np.mean(_LEVELS[2:])], reversed(texts.levels))
    rows[-1].set_xlabel(f"{texts.quantity} [µs]" + (", logarithmic" if rows[0].get_xscale() != "linear" else ""))
    plot.plain_log_axis(drawing.colorbar(mesh, ax=list(rows), label="traces", pad=0.01).ax.yaxis)
    _titled(drawing, texts, "Oscilloscope overlay")
    header: Data = (("configuration", "implementation", "from_us", "to_us", "traces"), data)
    return plot.picture(
        drawing,
        f"{texts.name}-overlay",
        f"All edges drawn over one another; darker means more. An empty area means that no edge was there. "
        f"{texts.conditions}",
        header,
        wide=True,
    )
