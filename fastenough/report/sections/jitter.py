# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling jitter over time: figures 1 and 4 of the RTLinux case study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastenough.analysis import words
from fastenough.model import Series
from fastenough.recording import Recording
from fastenough.report import plot
from fastenough.report.context import Context, RunGroup, distinctions, numbered
from fastenough.report.document import Column, Picture, ReportTable, Section

_NS_PER_S = 1e9
_CASE_STUDY_LOADS = ("rtlinux-io", "rtlinux-memory")
_PERIOD_NS = 1_000_000


def _latency_over_time(recording: Recording, series: Sequence[Series]) -> Iterator[tuple[float, float, float]]:
    """Per interval its end in s, and in µs median and maximum of these series together."""
    begin_ns = recording.intervals[0].begin_mono_ns
    for interval in recording.intervals:
        histograms = [interval.histograms[part.id] for part in series if part.id in interval.histograms]
        histograms = [values for values in histograms if values.total]
        if histograms:
            middle = max(values.value_at_rank((values.total + 1) // 2) for values in histograms)
            highest = max(values.maximum or 0 for values in histograms)
            yield (interval.end_mono_ns - begin_ns) / _NS_PER_S, middle / 1000, highest / 1000


_HEADER = ("line", "end_s", "median_us", "maximum_us")


def _draw(
    axes: Axes, recording: Recording, series: Sequence[Series], colour: str, label: str
) -> list[tuple[str, float, float, float]]:
    """Returns the drawn rows, with the columns of ``_HEADER``."""
    points = list(_latency_over_time(recording, series))
    times_s = [time for time, _, _ in points]
    axes.plot(times_s, [highest for _, _, highest in points], "o-", markersize=3, color=colour, label=label)
    axes.plot(times_s, [middle for _, middle, _ in points], "--", color=colour, linewidth=1)
    return [(label, *point) for point in points]


def _finish(figure: Figure, axes: Axes) -> None:
    axes.set_yscale("log")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("latency [µs]\nmaximum; median dashed")
    plot.plain_log_axis(axes.yaxis)
    plot.legend_below(figure, axes.get_legend_handles_labels()[0], columns=4)


def _corrected(recording: Recording, **labels: str) -> list[Series]:
    """The corrected series, which include missed periods."""
    return [
        series
        for series in recording.series
        if series.corrected and all(series.labels.get(name) == value for name, value in labels.items())
    ]


def _under_loads(groups: Sequence[RunGroup]) -> Picture:
    figure, axes = plot.new_figure("Jitter at 1 kHz under three conditions", plot.WIDE_IN)
    loads = ["idle" if group.load == "none" else group.load for group in groups]
    titles = distinctions(list(zip(groups, loads, strict=True)))
    lines = [" · ".join(filter(None, texts)) for texts in zip(loads, titles, strict=True)]
    rows = [
        row
        for colour, group, line in zip(plot.COLOURS, groups, lines, strict=False)
        for row in _draw(axes, group.recordings[0], _corrected(group.recordings[0]), colour, line)
    ]
    _finish(figure, axes)
    counts = ", ".join(
        f"{line} {sum(kind.all_cpus.n for kind in group.judged_kinds):,}"
        for line, group in zip(lines, groups, strict=True)
    )
    return plot.picture(
        figure,
        "jitter-loads",
        "Maximum and median of each interval, all CPUs combined, missed periods "
        f"charged; first run of each load. n: {counts}; {groups[0].instrument}.",
        (_HEADER, rows),
        wide=True,
    )


def _traffic_pictures(groups: Sequence[RunGroup]) -> list[Picture]:
    tasks = [str(group.recordings[0].head.parameters["task"]) for group in groups]
    names = numbered([f"jitter-{task}" for task in tasks])
    titles = distinctions(list(zip(groups, tasks, strict=True)))
    return [_beside_traffic(group, *texts) for group, *texts in zip(groups, names, titles, strict=True)]


def _beside_traffic(group: RunGroup, name: str, distinction: str) -> Picture:
    recording = group.recordings[0]
    parameters = recording.head.parameters
    break_s = parameters["break_after_ns"] / _NS_PER_S
    task = {"ordinary": "an ordinary", "real-time": "a real-time"}[parameters["task"]]
    title = ", ".join(filter(None, (f"Jitter of {task} task during shared-memory traffic", distinction)))
    figure, axes = plot.new_figure(title, plot.WIDE_IN)
    rows = [
        row
        for colour, traffic in zip(plot.COLOURS, ("on", "off"), strict=False)
        for row in _draw(axes, recording, _corrected(recording, traffic=traffic), colour, f"traffic {traffic}")
    ]
    axes.axvline(break_s, color="#444444", linestyle=":", linewidth=1.2)
    axes.annotate(
        "traffic switched off",
        (break_s, 1.0),
        xytext=(0, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=9,
    )
    _finish(figure, axes)
    values = [kind.all_cpus for kind in group.judged_kinds]
    return plot.picture(
        figure,
        name,
        f"{title}, missed periods charged; traffic ends at "
        f"{break_s:g} s. n = {sum(merged.n for merged in values):,}, {group.title}, {group.instrument}.",
        (_HEADER, rows),
        wide=True,
    )


def _table(groups: Sequence[RunGroup]) -> ReportTable:
    rows = []
    tasks = [str(group.recordings[0].head.parameters.get("task", "real-time")) for group in groups]
    titles = distinctions(
        [(group, (group.recordings[0].head.probe, task, group.load)) for group, task in zip(groups, tasks, strict=True)]
    )
    for group, *texts in zip(groups, tasks, titles, strict=True):
        for kind in group.judged_kinds:
            m = kind.measures
            rows.append(
                [
                    ", ".join(filter(None, texts)),
                    group.load,
                    kind.series.labels.get("traffic", "none"),
                    m.n,
                    m.missed,
                    m.minimum_ns,
                    m.mean_ns,
                    m.quantile(0.5).value_ns,
                    m.quantile(0.999).value_ns,
                    m.maximum_ns,
                ]
            )
    us = words.microseconds
    times = ("average", "median", "99.9 %", "max")
    columns = (
        *(Column(title, numeric=False) for title in ("task", "load", "traffic")),
        Column("n"),
        Column("missed"),
        Column("min", words.microseconds_down),
        *(Column(title, us) for title in times),
    )
    return ReportTable("jitter", "Latency in µs at 1 kHz, missed periods charged", columns, rows)


def section(context: Context) -> Section | None:
    measured = [group for group in context.groups if group.recordings[0].aggregate.intervals]
    timers = [
        group
        for group in measured
        if group.recordings[0].head.probe == "timer"
        and group.recordings[0].head.parameters.get("interval_ns") == _PERIOD_NS
        and group.load in ("none", *_CASE_STUDY_LOADS)
    ]
    if not any(group.load in _CASE_STUDY_LOADS for group in timers):
        timers = []
    beside = [group for group in measured if group.recordings[0].head.probe == "jitter"]
    if not timers and not beside:
        return None
    pictures = [_under_loads(timers)] if timers else []
    pictures += _traffic_pictures(beside)
    return Section(
        "jitter",
        "Jitter at 1 kHz",
        "Start latency of a 1 kHz task over time: without load, during directory reads, during memory traffic, and "
        "while a real-time thread sends data to a normal process through shared memory. That traffic stops "
        "half-way.",
        [*pictures, _table([*timers, *beside])],
    )
