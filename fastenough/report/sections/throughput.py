# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput of pipes and shared memory, with tables 1 to 3 of the RTLinux case study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from fastenough.analysis import words
from fastenough.model import Series
from fastenough.reference import find_reference
from fastenough.report import plot
from fastenough.report.context import Context, RunGroup, distinctions
from fastenough.report.document import Column, Folded, Picture, ReportTable, Section

_SOURCE = "RTLinux 3.2-pre3, Celeron 300 MHz"
_MARKERS = "os^Dvph*"
"""One for each colour."""
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}


@dataclass(frozen=True)
class _View:
    """One figure: speed over one size.  ``label`` is that size's name in the series' labels."""

    id: str
    probe: str
    label: str
    title: str
    axis: str
    published: tuple[str, str]
    """Channel and transfer in the published tables."""


_VIEWS = (
    _View(
        "fifo-block",
        "fifo",
        "block",
        "Pipe and FIFO by size of the blocks, pipe of 1 MiB",
        "size of a block",
        ("rt-fifo", "1MB"),
    ),
    _View(
        "fifo-pipe",
        "fifo",
        "pipe",
        "Pipe and FIFO by size of the pipe, blocks of 8 KiB",
        "requested size of the pipe",
        ("rt-fifo", "10MB"),
    ),
    _View(
        "shm",
        "shm",
        "size",
        "Shared memory by size of the block, real-time to normal",
        "size of a block",
        ("mbuff", "4KB writes"),
    ),
)


@dataclass(frozen=True)
class _Point:
    line: str
    size: int
    series: Series
    n: int
    slowest_mb_s: float | None
    median_mb_s: float | None
    fastest_mb_s: float | None


def _bytes(text: str) -> int:
    """ "10KB" of the published tables."""
    digits = text.rstrip("BKM")
    return int(digits) * _UNITS[text[len(digits) :]]


def _published(channel: str, transfer: str) -> dict[int, str]:
    """MB/s by size as printed, including kernel panics."""
    return {
        _bytes(figure.size): figure.text or f"{figure.speed_mb_s:g}"
        for figure in find_reference("rtlinux").figures
        if (figure.variant, figure.transfer) == (channel, transfer)
    }


def _size(value: float, _: float) -> str:
    """Short enough for an axis."""
    for unit, length in (("MB", 1e6), ("kB", 1e3)):
        if value >= length:
            return f"{value / length:g} {unit}"
    return f"{value:g} B"


def _published_speed(view: _View, size: int, series: Series) -> str | None:
    """The published speed for a transfer of the same total; else None."""
    channel, transfer = view.published
    same = channel == "mbuff" or series.bytes == _bytes(transfer)
    return _published(channel, transfer).get(size) if same else None


def _mb_s(size: int, ns: float | None) -> float | None:
    return None if not ns else size / ns * 1000


def _lines(context: Context, view: _View) -> dict[tuple[str, str], str]:
    """The lines of the figure by the first run of their group and their channel: groups never share a line."""
    members = [
        (group, channel)
        for group in context.groups
        if group.recordings[0].head.probe == view.probe
        for channel in dict.fromkeys(
            _channel(group, series)
            for recording in group.recordings
            for series in recording.series
            if series.labels.get("by", view.label) == view.label
        )
    ]
    return {
        (group.recordings[0].run_id, channel): ", ".join(filter(None, (channel, distinction)))
        for (group, channel), distinction in zip(members, distinctions(members), strict=True)
    }


def _channel(group: RunGroup, series: Series) -> str:
    """The channel of a series and its placement."""
    where = group.recordings[0].head.parameters["placement"]
    placement = "same CPU" if where == "same" else f"other {where}"
    if "channel" not in series.labels:
        return placement
    return f"{series.labels['channel']}, total {(series.bytes or 0) >> 20} MiB, {placement}"


def _points(context: Context, view: _View) -> list[_Point]:
    """The points of one figure, without refused sizes."""
    points = []
    lines = _lines(context, view)
    for group in context.groups:
        if group.recordings[0].head.probe != view.probe:
            continue
        for kind in group.kinds:
            series = kind.series
            if series.bytes is None or series.labels.get("by", view.label) != view.label or not kind.all_cpus.n:
                continue
            m = kind.measures
            points.append(
                _Point(
                    lines[group.recordings[0].run_id, _channel(group, series)],
                    int(series.labels[view.label]),
                    series,
                    m.n,
                    _mb_s(series.bytes, m.maximum_ns),
                    _mb_s(series.bytes, m.quantile(0.5).value_ns),
                    _mb_s(series.bytes, m.minimum_ns),
                )
            )
    return points


def _refused(context: Context, view: _View) -> list[tuple[str, int, str | None, str]]:
    """Line, size, published speed and reason of each size that the kernel refused."""
    lines = _lines(context, view)
    return [
        (
            lines[group.recordings[0].run_id, _channel(group, series)],
            int(series.labels[view.label]),
            _published_speed(view, int(series.labels[view.label]), series),
            f"{series.refused}",
        )
        for group in context.groups
        for series in group.recordings[0].series
        if group.recordings[0].head.probe == view.probe
        and series.refused is not None
        and series.labels.get("by", view.label) == view.label
    ]


def _draw_published(axes: Axes, view: _View) -> None:
    with_speed = {size: float(speed) for size, speed in _published(*view.published).items() if speed[0].isdigit()}
    axes.plot(
        list(with_speed), list(with_speed.values()), "x--", color="#777777", linewidth=1, label=f"published: {_SOURCE}"
    )


def _picture(context: Context, view: _View, points: Sequence[_Point]) -> Picture:
    figure, axes = plot.new_figure(view.title, plot.WIDE_IN)
    lines = list(dict.fromkeys(point.line for point in points))
    for colour, marker, line in zip(plot.COLOURS, _MARKERS, lines, strict=False):
        known = [(point.size, point.median_mb_s) for point in points if point.line == line and point.median_mb_s]
        axes.plot(
            [size for size, _ in known],
            [speed for _, speed in known],
            f"{marker}-",
            markersize=5,
            color=colour,
            label=line,
        )
    _draw_published(axes, view)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(view.axis)
    axes.set_ylabel("speed [MB/s]")
    plot.plain_log_axis(axes.yaxis)
    axes.xaxis.set_major_formatter(_size)
    plot.legend_below(figure, axes.get_legend_handles_labels()[0])
    groups = [group for group in context.groups if group.recordings[0].head.probe == view.probe]
    n = sum(point.n for point in points)
    how = ", ".join(dict.fromkeys(f"load {group.load}, {group.instrument}" for group in groups))
    rest = f" {len(lines) - len(_MARKERS)} more lines are in the table only." if len(lines) > len(_MARKERS) else ""
    data = (
        ("line", "bytes", "n", "median_mb_s"),
        [(point.line, point.size, point.n, point.median_mb_s) for point in points],
    )
    return plot.picture(
        figure,
        f"throughput-{view.id}",
        f"{view.title}: n = {n:,} transfers, their median; {how}. 1 MB/s is 10⁶ bytes per second.{rest}",
        data,
        wide=True,
    )


def _speed(value: float | None) -> str:
    """A speed, rounded down."""
    return "–" if value is None else words.digits_down(value)


def _table(context: Context, view: _View, points: Sequence[_Point]) -> ReportTable:
    rows: list[list[object]] = [
        [
            point.line,
            point.size,
            point.n,
            point.slowest_mb_s,
            point.median_mb_s,
            point.fastest_mb_s,
            _published_speed(view, point.size, point.series),
            "",
        ]
        for point in points
    ]
    rows += [
        [line, size, 0, None, None, None, published, reason]
        for line, size, published, reason in _refused(context, view)
    ]
    speeds = (Column(f"{which} [MB/s]", _speed) for which in ("slowest", "median", "fastest"))
    columns = (
        Column("channel", numeric=False),
        Column(f"{view.axis} [B]"),
        Column("n"),
        *speeds,
        Column("published [MB/s]"),
        Column("refused", numeric=False),
    )
    return ReportTable(
        f"throughput-{view.id}",
        view.title,
        columns,
        rows,
        note=f"Published: {_SOURCE}, {view.published[0]}, {view.published[1]}.",
    )


def summary(context: Context) -> ReportTable | None:
    """A row per line of the figures, for the summary of runs without latencies."""
    rows = []
    for view in _VIEWS:
        lines: dict[str, list[_Point]] = {}
        for point in _points(context, view):
            lines.setdefault(point.line, []).append(point)
        for line, points in lines.items():
            best = max(points, key=lambda point: point.median_mb_s or 0.0)
            slowest = min((point.slowest_mb_s for point in points if point.slowest_mb_s is not None), default=None)
            rows.append(
                (f"{view.title}: {line}", sum(point.n for point in points), slowest, best.median_mb_s, best.size)
            )
    if not rows:
        return None
    columns = (
        Column("measured", numeric=False),
        Column("n"),
        Column("slowest [MB/s]", _speed),
        Column("best median [MB/s]", _speed),
        Column("at size [B]"),
    )
    return ReportTable("overview", "Speed of whole transfers, all sizes", columns, rows)


def section(context: Context) -> Section | None:
    parts: list[Picture | Folded] = []
    for view in _VIEWS:
        points = _points(context, view)
        if points:
            table = _table(context, view, points)
            parts += [_picture(context, view, points), Folded(f"{view.title}: table", [table])]
    if not parts:
        return None
    return Section(
        "throughput",
        "Throughput",
        "Bytes of a whole transfer divided by the time from before the first write until after the last read. "
        "Every block was verified. The published figures belong to another system and only show the shape of the "
        "curve.",
        parts,
    )
