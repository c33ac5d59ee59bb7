# SPDX-License-Identifier: GPL-2.0-or-later
"""Drawing: one style for all figures, through matplotlib's objects (no global state)."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter
from numpy.typing import NDArray

from fastenough.analysis import Merged
from fastenough.report.document import Data, Picture

WIDE_IN = (10.4, 3.6)
HALF_IN = (5.4, 3.7)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#5d3a9b", "#444444")
"""Told apart by those who do not see all colours (after Okabe and Ito), dark enough for paper."""

UNNAMED = "#8c8c8c"
"""What has no name in the legend."""

LIMIT = "#b00020"

GROUND = "#fefefe"
DENSITY = ListedColormap(mpl.colormaps["YlGnBu"](np.linspace(0.45, 1.0, 256)))
"""How many there are, from one to the most.  It begins where a single sample, which is what a tail consists of, still
stands out from the ground."""

FLOOR = 0.5
"""Where a logarithmic axis of counts begins, so that a single sample is seen.  No tick stands there."""

LINEAR_UP_TO = 100
"""A linear axis may reach to this multiple of the median; farther, the body would be a line on its edge."""

CUT_AT = 30
"""A linear axis that cannot reach to the maximum ends at this multiple of the median."""

_LONG_AXIS = 300
"""Ratio of the ends of a logarithmic axis above which only decades have ticks."""
_TITLE_LETTERS_PER_IN = 9
_LEGEND_SHARE = 0.98
"""So much of a figure's width a legend may take."""
_LEGEND_IN = 1.0
"""So high a legend may be without taking from the axes what they need."""
_HANDLE_LETTERS = 6
"""How many letters are as wide as what stands before a legend's text."""
_MOST_STEPS = 2000
"""Of one line: more than a wide figure has pixels for, printed at 150 dots per inch."""
_RASTER_DPI = 200
"""Of what is drawn as pixels inside an SVG: a cell of a heat map is more than one of them."""


def new_figure(title: str, size_in: tuple[float, float] = HALF_IN) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes; a dollar sign in the title is no formula."""
    figure = Figure(figsize=size_in, layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    wrapped = textwrap.fill(title, width=round(size_in[0] * _TITLE_LETTERS_PER_IN), max_lines=2, placeholder=" …")
    axes.set_title(wrapped.replace("$", r"\$"), loc="left", fontsize=10, fontweight="bold")
    return figure, axes


def _inline(svg: str, name: str) -> str:
    """An SVG that can stand in a page beside others: no prolog, no fixed size, ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", svg)


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 2) -> None:
    """A legend outside the axes, where nothing can lie under it; in fewer columns where the figure is too narrow for
    as many, and with its lines broken where it is too narrow for one.  The figure grows by what is too high for it.
    A dollar sign in a legend is no formula.
    """
    legend = figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_parse_math(False)
    share = legend.get_window_extent().width / (_LEGEND_SHARE * figure.bbox.width)
    if share > 1 and columns > 1:
        legend.remove()
        legend_below(figure, handles, columns - 1)
        return
    if share > 1:
        letters = int(max(len(text.get_text()) for text in legend.get_texts()) / share) - _HANDLE_LETTERS
        for text in legend.get_texts():
            text.set_text(textwrap.fill(text.get_text(), width=max(1, letters)))
    too_high_in = legend.get_window_extent().height / figure.dpi - _LEGEND_IN
    figure.set_figheight(figure.get_figheight() + max(0.0, too_high_in))


def count_axis(axes: Axes, greatest: int) -> None:
    """A logarithmic y axis of counts, of which the greatest is ``greatest``; no tick is below one sample."""
    top = max(10, greatest * 3)
    axes.set_yscale("log")
    axes.set_ylim(FLOOR, top)
    decades = [10.0**power for power in range(int(np.log10(top)) + 1)]
    axes.yaxis.set_major_locator(FixedLocator(decades))
    axes.yaxis.set_minor_locator(FixedLocator([decade * times for decade in decades for times in range(2, 10)]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def picture(figure: Figure, name: str, caption: str, data: Data, wide: bool = False) -> Picture:
    """Draw a figure as SVG, PDF and PNG; of the name, which may be a recording's, only letters and digits stay."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", name)[:80]
    svg, pdf, png = io.StringIO(), io.BytesIO(), io.BytesIO()
    layout = figure.get_layout_engine()
    if layout is not None:  # once, not by a further drawing for each of the files
        layout.execute(figure)
        figure.set_layout_engine(None)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(svg, format="svg", metadata={"Date": None}, dpi=_RASTER_DPI)
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None}, dpi=_RASTER_DPI)
        figure.savefig(png, format="png", dpi=150)
    return Picture(name, caption, _inline(svg.getvalue(), name), pdf.getvalue(), png.getvalue(), data, wide)


def one_microsecond_view(values: Merged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole µs (floor of a bucket's upper edge) and how many values lie there; non-empty ones only, ascending.

    Without values that were only counted: their latencies are unknown.
    """
    count = values.histogram.count.copy()
    for only in values.counted_only:
        count[np.searchsorted(values.histogram.index, only.bucket)] -= only.count
    whole_us = np.floor(values.edges_ns[1] / 1000.0).astype(np.int64)[count > 0]
    us, first = np.unique(whole_us, return_index=True)
    counts = np.add.reduceat(count[count > 0], first) if us.size else np.empty(0, dtype=np.int64)
    return us, counts


def stairs(us: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Heights and edges of stairs over sparse bins 1 µs wide; what is empty between them lies on the floor."""
    edges = np.unique(np.concatenate([us, us + 1]))
    heights = np.full(max(0, edges.size - 1), FLOOR)
    heights[np.searchsorted(edges, us)] = counts
    return heights, edges.astype(np.float64)


def places(edges: NDArray[np.float64], axes: Axes, most: int) -> NDArray[np.intp]:
    """Which steps come first in each of ``most`` places of equal width on these axes."""
    ends = axes.transData.transform([(x, 1.0) for x in axes.get_xlim()])[:, 0]
    lefts = np.maximum(edges[:-1], axes.get_xlim()[0])
    at = axes.transData.transform(np.column_stack([lefts, np.ones(lefts.size)]))[:, 0]
    place = np.floor(np.clip((at - ends[0]) / (ends[1] - ends[0]), 0, 1) * (most - 1))
    return np.flatnonzero(np.r_[True, np.diff(place) != 0])


def drawable(
    heights: NDArray[np.float64], edges: NDArray[np.float64], axes: Axes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Stairs with no more steps than these axes can show: of several at one place the tallest is drawn.

    No count is drawn lower than it is, and the last edge stays where it is: what lies beyond the axes stays beyond.
    """
    if heights.size <= _MOST_STEPS:
        return heights, edges
    first = places(edges, axes, _MOST_STEPS)
    return np.maximum.reduceat(heights, first), np.append(edges[first], edges[-1])


def plain(value: float, _: float) -> str:
    """A number on an axis, written as in the text beside it: thousands set off."""
    return f"{value:,.10g}"


class _PlainLocator(LogLocator):
    """Ticks at 1, 2 and 5 of each decade, on a long axis only at 1; also if the axis is lengthened later."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        self.set_params(subs=(1.0,) if vmax / vmin > _LONG_AXIS else (1.0, 2.0, 5.0))
        return super().tick_values(vmin, vmax)


def plain_log_axis(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, not with powers of ten."""
    low, _ = axis.get_view_interval()
    if low > 0:
        axis.set_major_locator(_PlainLocator())
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(NullFormatter())


def _body_ns(values: Merged) -> float:
    """The median, or 1 µs.  A quantile of the tail would not do: one long stall owes thousands of periods."""
    _, highest_ns, count = values.magnitudes
    return max(1000.0, float(highest_ns[np.searchsorted(np.cumsum(count), 0.5 * values.n)]))


def _greatest_ns(together: Sequence[Merged]) -> float:
    return max(float(values.edges_ns[1][-1]) for values in together)


def _least_ns(together: Sequence[Merged]) -> float:
    return min(float(values.edges_ns[0][0]) for values in together)


def fits_linear(together: Sequence[Merged], limits_ns: Sequence[float] = ()) -> bool:
    """Whether a linear axis up to the maximum, and to the limits, would still show the body of these, not empty."""
    return max([_greatest_ns(together), *limits_ns]) <= LINEAR_UP_TO * max(_body_ns(values) for values in together)


def linear_axis(axes: Axes, together: Sequence[Merged]) -> float:
    """A linear x axis over all of these, cut where the body would vanish otherwise; where it ends, in µs."""
    end_ns = _greatest_ns(together)
    if not fits_linear(together):
        end_ns = max(min(values.maximum_ns or 0.0, CUT_AT * _body_ns(values)) for values in together)
    end_us = (end_ns / 1000.0 + 1) * 1.04
    axes.set_xlim(min(0.0, _least_ns(together) / 1000.0), end_us)
    return end_us


def log_axis(axes: Axes, together: Sequence[Merged]) -> None:
    """A logarithmic x axis over all values of these; linear about zero where there are negative ones."""
    least_us, greatest_us = _least_ns(together) / 1000.0, _greatest_ns(together) / 1000.0
    if least_us < 0:
        axes.set_xscale("symlog", linthresh=10.0)
        axes.set_xlim(least_us * 1.3 - 1, greatest_us * 1.3)
    else:
        axes.set_xscale("log")
        axes.set_xlim(max(0.5, least_us * 0.7), greatest_us * 1.3)
    plain_log_axis(axes.xaxis)


_NAMED = {
    "#000000": "ink",
    "#ffffff": "paper",
    "#dddddd": "grid",
    UNNAMED: "unnamed",
    LIMIT: "limit",
    **{colour: f"colour-{place}" for place, colour in enumerate(COLOURS)},
}
"""Colours that figures are drawn in, and the page's variables for them (style.css)."""

_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})\b")


def _themed(match: re.Match[str]) -> str:
    name = _NAMED.get(match[2])
    return f"{match[1]}: var(--{name}, {match[2]})" if name else match[0]


def themed(svg: str) -> str:
    """The same drawing with variables for its colours, which keep their value where a page does not set them."""
    return _COLOUR.sub(_themed, svg)
