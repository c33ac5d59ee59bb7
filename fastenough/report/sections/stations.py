# SPDX-License-Identifier: GPL-2.0-or-later
"""Monitor results: latency by kernel stage, worst wake-ups, latency stages, and causes."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fastenough.analysis import words
from fastenough.analysis.stations import BlamedTask, StationTail, blamed_tasks, tail_of, worst_wakeups
from fastenough.recording.wakeups import STATIONS, Wakeup, is_noise, is_station, noise_source, station_place
from fastenough.report import plot
from fastenough.report.context import Context, RunGroup, SeriesKind
from fastenough.report.document import Column, Data, Picture, ReportTable, Section, Text

MOST_DRAWN = 10
_MOST_LOADS = 12
_SAID_CHARS = 150
_LEAST_SHARE = 1e-5
_HATCHES = ("", "///", "\\\\\\", "...", "xxx", "++", "oo")


def named(name: str) -> str:
    """A station for people: its two events."""
    return name.replace("-", " ")


def _worst_cpu(kind: SeriesKind) -> int | None:
    worst = max(kind.per_cpu, key=lambda values: values.maximum_ns or 0.0)
    return worst.cpus[0] if worst.cpus else None


def kinds_of(group: RunGroup, names: tuple[str, ...]) -> list[SeriesKind]:
    """The kinds with these names that have values, in this order."""
    present = [kind for kind in group.kinds if kind.series.name in names and kind.all_cpus.n]
    return sorted(present, key=lambda kind: names.index(kind.series.name))


def station_kinds(group: RunGroup, *, noise: bool = False) -> list[SeriesKind]:
    """The kinds of all stations with values, or those of noise, in the order of a wake-up."""
    present = [
        kind
        for kind in group.kinds
        if is_station(kind.series) and is_noise(kind.series.name) == noise and kind.all_cpus.n
    ]
    return sorted(present, key=lambda kind: station_place(kind.series.name))


def tail_sentence(group: RunGroup, tail: StationTail | None) -> str:
    """One sentence: the station that causes the tail of a load."""
    if tail is not None:
        cause, times = tail.causes[0]
        n = len(tail.worst)
        of_them = f"of the {n} worst recorded wake-ups" if n > 1 else "of 1 recorded wake-up"
        return (
            f"{group.title}: the tail comes from {named(tail.station)} ({STATIONS[tail.station]}). It is the longest "
            f"station in {tail.longest_in} {of_them} and takes {words.percent(float(f'{tail.share:.2g}'))} of their "
            f"time. Most frequent cause: {cause}, in {times} of {n}."
        )
    kinds = kinds_of(group, tuple(STATIONS))
    if not kinds:
        return f"{group.title}: no wake-up of a monitored task was recorded."
    worst = max(kinds, key=lambda kind: kind.all_cpus.maximum_ns or 0.0)
    return (
        f"{group.title}: no wake-up was recorded station by station. The station with the greatest maximum is "
        f"{named(worst.series.name)}, {words.latency(worst.all_cpus.maximum_ns)}."
    )


def _table(groups: tuple[RunGroup, ...]) -> ReportTable:
    us = words.microseconds
    columns = (
        Column("load", numeric=False),
        Column("station", numeric=False),
        Column("n"),
        Column("median [µs]", us),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("on CPU", lambda cpu: "–" if cpu is None else str(cpu)),
    )
    rows = [
        (
            group.title.removeprefix("load "),
            named(kind.series.name),
            kind.measures.n,
            kind.measures.quantile(0.5).value_ns,
            kind.measures.quantile(0.999).value_ns,
            kind.measures.maximum_ns,
            _worst_cpu(kind),
        )
        for group in groups
        for kind in station_kinds(group)
    ]
    return ReportTable(
        "stations",
        "Each station, all CPUs combined",
        columns,
        rows,
        note="The maxima of the stations belong to different wake-ups and do not add up.",
    )


def summary(context: Context) -> ReportTable | None:
    """A row per monitored load, for the summary of runs with monitor data only."""
    rows = []
    for entry in context.ways:
        tail, measures = tail_of(worst_wakeups(entry.group.recordings)), entry.kind.measures
        rows.append(
            (
                entry.name.removeprefix("load "),
                measures.n,
                measures.quantile(0.999).value_ns,
                measures.maximum_ns,
                "–" if tail is None else named(tail.station),
                "–" if tail is None else tail.causes[0][0],
            )
        )
    if not rows:
        return None
    us = words.microseconds
    columns = (
        Column("load", numeric=False),
        Column("wake-ups"),
        Column("99.9 % [µs]", us),
        Column("maximum [µs]", us),
        Column("tail from station", numeric=False),
        Column("most frequent cause", numeric=False),
    )
    ways = ", ".join(dict.fromkeys(named(entry.kind.series.name) for entry in context.ways))
    return ReportTable("overview", f"Monitored wake-ups ({ways}), all CPUs combined", columns, rows)


def _share(share: float) -> str:
    return words.percent(float(f"{share:.2g}")) if share >= _LEAST_SHARE else f"below {words.percent(_LEAST_SHARE)}"


def _noise(groups: tuple[RunGroup, ...]) -> ReportTable | None:
    """CPU time taken from tasks, by its source."""
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        for kind in station_kinds(group, noise=True):
            values = kind.all_cpus
            cpu_s = values.duration_ns / 1e9 * max(1, len(values.cpus))
            rows.append(
                (
                    group.title.removeprefix("load "),
                    noise_source(kind.series.name),
                    values.n / cpu_s,
                    values.histogram.sum * values.unit_ns / 1e9 / cpu_s,
                    values.maximum_ns,
                    _worst_cpu(kind),
                )
            )
    if not rows:
        return None
    columns = (
        Column("load", numeric=False),
        Column("taken by", numeric=False),
        Column("times per second per CPU", lambda rate: f"{rate:,.3g}"),
        Column("share of CPU time", _share),
        Column("longest [µs]", words.microseconds),
        Column("on CPU", lambda cpu: "–" if cpu is None else str(cpu)),
    )
    return ReportTable("noise", "CPU time taken from tasks", columns, rows)


def _place(wakeup: Wakeup, group: RunGroup) -> str:
    """CPU and time of a wake-up; for several runs the wall-clock time."""
    cpu = "" if wakeup.cpu is None else f"CPU {wakeup.cpu}, "
    alone = len(group.recordings) == 1
    return f"{cpu}after {words.since_begin(wakeup.after_ns)}" if alone else f"{cpu}{words.minute(wakeup.at.wall_ns)}"


def _cut(text: str) -> str:
    return text if len(text) <= _SAID_CHARS else f"{text[: _SAID_CHARS - 2]} …"


def _draw(group: RunGroup, worst: list[Wakeup]) -> Figure:
    """One bar per wake-up with its stations in order, and the cause above."""
    figure, axes = plot.new_figure(
        f"Worst wake-ups by station: {group.title}", (plot.WIDE_IN[0], 1.4 + 0.44 * len(worst))
    )
    used = [name for name in STATIONS if any(name in wakeup.parts for wakeup in worst)]
    look = {name: (plot.COLOURS[place], _HATCHES[place]) for place, name in enumerate(used)}
    for row, wakeup in enumerate(worst):
        left_us = 0.0
        for name, ns in wakeup.parts.items():
            colour, hatch = look[name]
            axes.barh(
                row + 0.18,
                ns / 1000,
                left=left_us,
                height=0.42,
                color=colour,
                hatch=hatch,
                edgecolor="#ffffff",
                linewidth=0.6,
            )
            left_us += ns / 1000
        label = _cut(
            f"{_place(wakeup, group)}: {words.latency(wakeup.delay_ns)}; {wakeup.culprit_text or 'cause unknown'}"
        )
        axes.annotate(
            label.replace("$", r"\$"), (0.0, row - 0.05), xycoords=("axes fraction", "data"), fontsize=9, va="bottom"
        )
    axes.set_yticks([])
    axes.set_ylim(len(worst) - 0.45, -0.6)
    axes.set_xlim(0, max(wakeup.delay_ns for wakeup in worst) / 1000 * 1.02)
    axes.xaxis.set_major_formatter(plot.plain)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time since the wake-up was due [µs]")
    plot.legend_below(
        figure,
        [Patch(facecolor=look[name][0], hatch=look[name][1], edgecolor="#ffffff", label=named(name)) for name in used],
        columns=3,
    )
    return figure


def _data(worst: list[Wakeup]) -> Data:
    """One row per wake-up."""
    header = ["run", "after_s", "cpu", "delay_ns", *(f"{name} [ns]" for name in STATIONS), "blamed", "said"]
    return header, [
        [
            wakeup.run_id,
            wakeup.after_ns / 1e9,
            wakeup.cpu,
            wakeup.delay_ns,
            *(wakeup.parts.get(name) for name in STATIONS),
            wakeup.cause,
            wakeup.culprit_text,
        ]
        for wakeup in worst
    ]


def breakdown(group: RunGroup, name: str, most: int = MOST_DRAWN) -> Picture | None:
    """The worst wake-ups of one load as stacked bars; None if none was recorded station by station."""
    complete = [wakeup for wakeup in worst_wakeups(group.recordings) if wakeup.longest]
    if not complete:
        return None
    worst = complete[:most]
    return plot.picture(
        _draw(group, worst),
        name,
        f"The {len(worst)} worst of {words.counted(len(complete), 'wake-up')} "
        f"recorded station by station, {group.title}, {group.instrument}.",
        _data(worst),
        wide=True,
    )


def kernel_stages(context: Context) -> Section | None:
    groups = context.watched
    if not groups:
        return None
    sentences = [tail_sentence(group, tail_of(worst_wakeups(group.recordings))) for group in groups]
    pictures = [
        picture
        for number, group in enumerate(groups[:_MOST_LOADS], start=1)
        if (picture := breakdown(group, f"stations-{number}")) is not None
    ]
    noise, table = _noise(groups), _table(groups)
    parts: list[Text | Picture | ReportTable] = [Text("Source of the tail", sentences), *pictures]
    parts += [part for part in (table if table.rows else None, noise) if part is not None]
    return Section(
        "stations",
        "Latency by kernel stage",
        "The monitor follows each wake-up of a real-time task through the kernel. It records new maxima, and "
        "wake-ups above the threshold if there is one, individually. It explains latency; the verdict does not "
        "use it.",
        parts,
    )


WAYS = (
    ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running", "running-to-return"),
    ("device-to-runnable", "runnable-to-running", "running-to-return"),
)
"""The stations of a wake-up by a timer, and by a device, in order."""
_STAGE_NAMES = {
    "expiry-to-interrupt": "interrupt latency",
    "interrupt-to-runnable": "interrupt handler",
    "device-to-runnable": "interrupt and handler",
    "runnable-to-running": "scheduler latency",
    "running-to-return": "return to user space",
}
_MOST_STAGE_LOADS = 6


def _stages(group: RunGroup) -> list[SeriesKind]:
    """The first way whose stations all have values; else empty."""
    return next((kinds for way in WAYS if len(kinds := kinds_of(group, way)) == len(way)), [])


def _draw_stages(group: RunGroup, kinds: list[SeriesKind]) -> Figure:
    """One box per stage, all of one width, with the events at the borders."""
    figure, axes = plot.new_figure(f"Stages of the wake-up latency: {group.title}", (plot.WIDE_IN[0], 2.2))
    axes.set_axis_off()
    axes.set_xlim(-0.2, len(kinds) + 0.2)
    axes.set_ylim(-1.6, 1.6)
    for place, kind in enumerate(kinds):
        name, measures = kind.series.name, kind.measures
        axes.barh(0, 1, left=place, height=1.0, color=plot.COLOURS[place], alpha=0.25, edgecolor="#000000")
        axes.annotate(_STAGE_NAMES[name], (place + 0.5, 0.0), ha="center", va="center", fontsize=10)
        axes.annotate(
            f"median {words.latency(measures.quantile(0.5).value_ns)}\nmaximum {words.latency(measures.maximum_ns)}",
            (place + 0.5, -0.65),
            ha="center",
            va="top",
            fontsize=9,
        )
    events = [kind.series.name.split("-to-")[0] for kind in kinds] + [kinds[-1].series.name.split("-to-")[1]]
    for place, event in enumerate(events):
        axes.plot([place, place], [-0.5, 0.75], color="#000000", linewidth=1.0)
        axes.annotate(event, (place, 0.8), ha="center", va="bottom", fontsize=10, fontweight="bold")
    return figure


def _stages_data(kinds: list[SeriesKind]) -> Data:
    return ["part", "station", "n", "median_ns", "p999_ns", "maximum_ns"], [
        [
            _STAGE_NAMES[kind.series.name],
            kind.series.name,
            kind.measures.n,
            kind.measures.quantile(0.5).value_ns,
            kind.measures.quantile(0.999).value_ns,
            kind.measures.maximum_ns,
        ]
        for kind in kinds
    ]


def _stages_picture(group: RunGroup, number: int) -> Picture | None:
    kinds = _stages(group)
    if not kinds:
        return None
    return plot.picture(
        _draw_stages(group, kinds),
        f"latency-parts-{number}",
        f"From event to event, not to scale; "
        f"n = {kinds[0].measures.n:,}, {group.title}, {group.instrument}. The maxima belong to different "
        "wake-ups and do not add up.",
        _stages_data(kinds),
        wide=True,
    )


def latency_stages(context: Context) -> Section | None:
    pictures = [
        picture
        for number, group in enumerate(context.watched[:_MOST_STAGE_LOADS], start=1)
        if (picture := _stages_picture(group, number)) is not None
    ]
    if not pictures:
        return None
    return Section(
        "latency-parts",
        "Latency stages",
        "A wake-up latency is the sum of four stages: until the interrupt, in its handler, until the scheduler "
        "runs the task, and until the return to user space.",
        pictures,
    )


_MOST_CAUSES = 15
_CAUSE_RULE = (
    "The cause is the longest interrupt or soft-IRQ, if all interrupts, or all soft-IRQs, of the wake-up together took "
    "at least half of the time of the longest station; else the timer "
    "interrupt, if interrupt-to-runnable is the longest station; else the task itself, "
    "if it was still busy when its next timer was due; else the task that had the CPU; else the idle state that was "
    "left. The time of hypervisor and system management interrupts is known for whole intervals only: it is reported, "
    "but never named as the cause."
)
_LOST = {
    "monitor_unmatched": "were not followed to their end",
    "monitor_dropped": "were lost because a buffer was full",
    "monitor_suppressed": "were lost because the kernel suppressed tracing",
    "monitor_no_return": "have no traced return to user space; they count in the earlier stations only",
}


def _cause_row(group: RunGroup, cause: BlamedTask) -> tuple[object, ...]:
    task = cause.worst.culprit.get("task")
    return (
        group.title.removeprefix("load "),
        cause.who,
        named(cause.station) or "–",
        cause.times,
        cause.worst.delay_ns,
        "–" if task is None else str(task),
        cause.worst.culprit_text or "–",
    )


def _losses(groups: tuple[RunGroup, ...]) -> list[str]:
    """The losses that the monitor counted."""
    ends = [recording.end.counters for group in groups for recording in group.recordings if recording.end]
    counts = {name: sum(counters.get(name) or 0 for counters in ends) for name in _LOST}
    return [f"{words.counted(count, 'event')} {_LOST[name]}" for name, count in counts.items() if count]


def causes(context: Context) -> Section | None:
    if not context.watched:
        return None
    rows = [
        _cause_row(group, task) for group in context.watched for task in blamed_tasks(worst_wakeups(group.recordings))
    ]
    lost = _losses(context.watched)
    parts: list[ReportTable | Text] = []
    if rows:
        columns = (
            Column("load", numeric=False),
            Column("cause", numeric=False),
            Column("station", numeric=False),
            Column("wake-ups"),
            Column("longest [µs]", words.microseconds),
            Column("delayed task", numeric=False),
            Column("worst case", numeric=False),
        )
        remainder = f" {len(rows) - _MOST_CAUSES} more are not shown." if len(rows) > _MOST_CAUSES else ""
        parts.append(
            ReportTable(
                "culprits",
                "Causes of the individually recorded wake-ups",
                columns,
                rows[:_MOST_CAUSES],
                note=f"{_CAUSE_RULE}{remainder}",
            )
        )
    else:
        parts.append(Text("No cause identified: no wake-up was recorded individually."))
    if lost:
        parts.append(Text("Events that the monitor missed", lost))
    return Section("culprits", "Causes", "", parts)
