# SPDX-License-Identifier: GPL-2.0-or-later
"""The path through the flowchart of Brown and Martin (figure 6) as a figure and a table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.text import Annotation

from fastenough.analysis import words
from fastenough.analysis.advice import APPROACHES, Advice, Ending, Turn
from fastenough.analysis.approach_rating import NOT_MEASURED, OFF_THE_MAP_TIMES, Grade
from fastenough.report import plot
from fastenough.report.context import Context
from fastenough.report.document import Column, Picture, ReportTable, Section

_HARDWARE, _DELIVER = "hardware", "deliver"
_OFF_THE_MAP = "no: off the map"
_MARGIN = 0.005
"""Where the arrows for "off the map" run, beside all boxes, in shares of the width."""
_ROW_IN = 1.1
_COLUMNS = {"user-rt": 0.16, _DELIVER: 0.92}
"""In shares of the width.  All other boxes are in one column; "deliver" is at half its height."""
_COLUMN = 0.47
_OFF_PATH = plot.UNNAMED
_ON_PATH = plot.COLOURS[0]
Place = tuple[float, float]
_NAMES = {_HARDWARE: "use dedicated\nhardware", _DELIVER: "deliver"}


def _edges(chart: Mapping[str, Turn]) -> list[tuple[str, str, str]]:
    """(from, to, label)."""
    edges = []
    for box, turn in chart.items():
        if turn.asks:
            edges += [(box, turn.marginal, "no: marginal"), (box, turn.awful, "no: awful")]
        else:
            edges.append((box, turn.awful, "no"))
        if turn.awful != _HARDWARE:
            edges.append((box, _HARDWARE, _OFF_THE_MAP))
        edges.append((box, _DELIVER, "yes"))
    return edges


def _places(boxes: Sequence[str]) -> dict[str, Place]:
    """The position of each box: share of the width, row from below."""
    rows = [box for box in boxes if box != _DELIVER]
    return {
        box: (_COLUMNS.get(box, _COLUMN), (len(rows) - 1) / 2 if box == _DELIVER else len(rows) - 1.0 - rows.index(box))
        for box in boxes
    }


def _walked(advice: Advice) -> list[str]:
    """The boxes of the path in order, with the end if it has one."""
    ends = {Ending.DELIVER: [_DELIVER], Ending.HARDWARE: [_HARDWARE]}
    return [step.approach.id for step in advice.steps] + ends.get(advice.ending, [])


def _box(axes: Axes, advice: Advice, box: str, place: Place, on_path: bool) -> Annotation:
    title = _NAMES.get(box)
    if title is None:
        answer = advice.ratings.get(box, NOT_MEASURED).grade
        title = f"{APPROACHES[box].title}\n{answer}"
    colour = _ON_PATH if on_path else _OFF_PATH
    return axes.annotate(
        title,
        place,
        ha="center",
        va="center",
        fontsize=10,
        color="#000000",
        fontweight="bold" if on_path else "normal",
        zorder=3,
        bbox={
            "boxstyle": "round,pad=0.5",
            "facecolor": "#ffffff",
            "edgecolor": colour,
            "linewidth": 2.5 if on_path else 1.0,
        },
    )


def _edge(axes: Axes, begin: Annotation, end: Annotation, label: str, on_path: bool) -> None:
    """An arrow from border to border; the boxes must be drawn before."""
    (x, y), (to_x, to_y) = begin.xy, end.xy
    axes.annotate(
        "",
        (to_x, to_y),
        (x, y),
        zorder=4,
        arrowprops={
            "arrowstyle": "-|>",
            "color": _ON_PATH if on_path else _OFF_PATH,
            "linewidth": 2.5 if on_path else 1.0,
            "patchA": begin.get_bbox_patch(),
            "patchB": end.get_bbox_patch(),
            "shrinkA": 1,
            "shrinkB": 1,
        },
    )
    axes.annotate(
        label,
        (x + 0.55 * (to_x - x), y + 0.55 * (to_y - y)),
        fontsize=9,
        ha="center",
        va="center",
        color="#000000",
        zorder=5,
        bbox={"boxstyle": "square,pad=0.15", "facecolor": "#ffffff", "edgecolor": "none"},
    )


def _straight_to_hardware(axes: Axes, begin: Annotation, end: Annotation, on_path: bool) -> None:
    """An arrow along the margin to the last box."""
    (x, y), (to_x, to_y) = begin.xy, end.xy
    colour, width, above = (_ON_PATH, 2.5, 2.5) if on_path else (_OFF_PATH, 1.0, 1.5)
    axes.plot([x, _MARGIN, _MARGIN], [y, y, to_y], color=colour, linewidth=width, zorder=above)
    axes.annotate(
        "",
        (to_x, to_y),
        (_MARGIN, to_y),
        zorder=above,
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": width,
            "patchB": end.get_bbox_patch(),
            "shrinkA": 0,
            "shrinkB": 1,
        },
    )
    axes.annotate(_OFF_THE_MAP, (_MARGIN, y + 0.32), fontsize=9, ha="left", va="center", color="#000000", zorder=5)


def _chart(advice: Advice) -> Picture:
    walked, edges = _walked(advice), _edges(advice.chart)
    taken = set(itertools.pairwise(walked))
    places = _places([*advice.chart, _HARDWARE, _DELIVER])
    figure, axes = plot.new_figure("", (plot.WIDE_IN[0], _ROW_IN * (len(places) - 1)))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.4, len(places) - 1.6)
    boxes = {name: _box(axes, advice, name, place, name in walked) for name, place in places.items()}
    for begin, end, label in edges:
        if label == _OFF_THE_MAP:
            _straight_to_hardware(axes, boxes[begin], boxes[end], (begin, end) in taken)
        else:
            _edge(axes, boxes[begin], boxes[end], label, (begin, end) in taken)
    rows = [
        (begin, end, label, advice.ratings.get(begin, NOT_MEASURED).grade, "yes" if (begin, end) in taken else "no")
        for begin, end, label in edges
    ]
    caption = (
        f"Bold: the path taken: {' → '.join(_spoken(walked))}. Each box states whether the approach is good at "
        f"{words.exact_time(advice.requirement.limit_ns)}? After Brown and Martin, figure 6, branch "
        f"{advice.side.partition(':')[0]}."
    )
    return plot.picture(figure, "advice", caption, (("from", "to", "if", "answer", "taken"), rows), wide=True)


def _spoken(walked: list[str]) -> list[str]:
    return [APPROACHES[name].title if name in APPROACHES else _NAMES[name].replace("\n", " ") for name in walked]


def _table(advice: Advice) -> ReportTable:
    columns = tuple(Column(title, numeric=False) for title in ("approach", "answer", "reason", "maintenance cost"))
    rows = [
        (step.approach.title, str(step.rating.grade), " · ".join(step.rating.reasons) or "–", step.approach.cost)
        for step in advice.steps
    ]
    return ReportTable(
        "advice-path",
        "The approaches of the path, in order",
        columns,
        rows,
        note=(
            f"Good: meets the limit of {words.exact_time(advice.requirement.limit_ns)}. Marginal: misses it, but meets "
            f"{words.exact_time(advice.marginal_ns)}. Awful: misses that too. Off the map: misses "
            f"{words.exact_time(round(advice.requirement.limit_ns * OFF_THE_MAP_TIMES))} as well. Each answer is a "
            f"verdict with its bounds; a case between two answers is undecided. "
            f"{advice.basis[0].upper()}{advice.basis[1:]}."
        ),
    )


def _off_path(advice: Advice) -> list[ReportTable]:
    rows = [
        (name, str(rating.grade), " · ".join(rating.reasons) or "–")
        for name, rating in advice.off_path
        if rating.grade is not Grade.NO_DATA
    ]
    columns = tuple(Column(title, numeric=False) for title in ("approach", "answer", "reason"))
    return [ReportTable("advice-aside", "Measured approaches that are not on the path", columns, rows)] if rows else []


def section(context: Context) -> Section | None:
    advice = context.advice
    if advice is None:
        return None
    required = advice.requirement
    return Section(
        "advice",
        "Recommended approach",
        f"{advice.text}. {advice.side} (limit {words.exact_time(required.limit_ns)}, "
        f"{words.percent(required.confidence)} confidence). Maintenance cost: {advice.cost}.",
        [_chart(advice), _table(advice), *_off_path(advice)],
    )
