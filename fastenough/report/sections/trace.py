# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel trace of the last milliseconds before the run stopped: tasks and interrupts of each CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fastenough.analysis import load_name, words
from fastenough.analysis.trace import Share, Slice, Trace, TracedTask, TraceKind, read_trace, shares
from fastenough.model import FastenoughError
from fastenough.recording import Event, Recording
from fastenough.report import plot
from fastenough.report.context import Context
from fastenough.report.document import Column, Data, Part, Picture, ReportTable, Section, Text

MOST_TRACES = 8
_MOST_CPUS = 16
_MOST_SLICES = 3000
_MOST_ROWS = 60
_LEAST_NS = 1_000_000
_EXACT_NS = 1000
_US = 1000.0
_BAR, _THIN = 0.5, 0.22
_DELAYED, _REAL_TIME, _ORDINARY, _INTERRUPT, _SOFTIRQ = (plot.COLOURS[place] for place in (1, 0, 5, 3, 4))
_COLOUR = {
    "the delayed task": _DELAYED,
    "other real-time tasks": _REAL_TIME,
    "ordinary tasks": _ORDINARY,
    "interrupts and timers": _INTERRUPT,
    "soft-IRQs": _SOFTIRQ,
    "unknown": "#dddddd",
}
_KIND = {
    TraceKind.TASK: "task",
    TraceKind.SOFTIRQ: "soft-IRQ",
    TraceKind.INTERRUPT: "interrupt",
    TraceKind.TIMER: "timer",
    None: "–",
}


@dataclass(frozen=True)
class TracedDelay:
    """A run that stopped at a threshold, and its trace; ``delayed`` is None if the value belongs to no CPU."""

    recording: Recording
    event: Event
    trace: Trace
    series: str
    cpu: int | None
    delayed: TracedTask | None
    delay_ns: int

    @property
    def read_ns(self) -> int:
        """The end of the delay."""
        return self.event.at.mono_ns

    @property
    def due_ns(self) -> int:
        return self.read_ns - self.delay_ns

    @property
    def begin_ns(self) -> int:
        """Start of the figure: twice the delay, at least 1 ms before, fewer if there are too many slices."""
        begin_ns = self.due_ns - max(self.delay_ns, _LEAST_NS)
        begins = [part.begin_ns for part in self.trace.within(begin_ns, self.read_ns)]
        return begin_ns if len(begins) <= _MOST_SLICES else begins[-_MOST_SLICES]


def _case(recording: Recording) -> TracedDelay | None:
    """None if the trace does not cover the delay; raises FastenoughError."""
    events = [event for event in recording.events if event.kind == "threshold"]
    if recording.trace is None or not events:
        return None
    event = min(events, key=lambda event: event.at.mono_ns)
    series = next(series for series in recording.series if series.id == event.series)
    trace = read_trace(recording.trace(), event.at.mono_ns)
    cpu = series.cpu if event.cpu is None else event.cpu
    delay_ns = round((event.value or 0) * series.unit_ns)
    if not trace.within(event.at.mono_ns - max(delay_ns, _LEAST_NS), event.at.mono_ns):
        return None
    ran = None if cpu is None else trace.running(cpu, event.at.mono_ns)
    return TracedDelay(
        recording, event, trace, series.name, cpu, ran.task if ran and not ran.task.idle else None, delay_ns
    )


def _class(activity: Slice, delayed: TracedTask | None) -> str:
    if activity.kind is TraceKind.SOFTIRQ:
        return "soft-IRQs"
    if activity.kind is not TraceKind.TASK:
        return "interrupts and timers"
    if delayed is not None and activity.task.pid == delayed.pid:
        return "the delayed task"
    return "other real-time tasks" if activity.task.real_time else "ordinary tasks"


def _cpus(case: TracedDelay) -> list[int]:
    """The drawn CPUs from below: the delayed one and the first others."""
    others = [cpu for cpu in sorted(case.trace.known_ns) if cpu != case.cpu]
    return sorted([*([] if case.cpu is None else [case.cpu]), *others][:_MOST_CPUS], reverse=True)


def _bars(axes: Axes, case: TracedDelay, cpus: Sequence[int]) -> set[str]:
    """Draw the slices; returns their classes."""
    bars: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for activity in case.trace.within(case.begin_ns, case.read_ns):
        if activity.cpu in cpus and not (activity.kind is TraceKind.TASK and activity.task.idle):
            bars.setdefault((activity.cpu, _class(activity, case.delayed)), []).append(
                ((activity.begin_ns - case.read_ns) / _US, (activity.end_ns - activity.begin_ns) / _US)
            )
    for cpu in cpus:
        known_ns = case.trace.known_ns.get(cpu, case.read_ns)
        if known_ns > case.begin_ns:
            bars[(cpu, "unknown")] = [
                ((case.begin_ns - case.read_ns) / _US, (min(known_ns, case.read_ns) - case.begin_ns) / _US)
            ]
    for (cpu, kind), spans in bars.items():
        row = cpus.index(cpu)
        thin = kind in ("interrupts and timers", "soft-IRQs")
        axes.broken_barh(
            spans,
            (row + _BAR / 2 if thin else row - _BAR / 2, _THIN if thin else _BAR),
            facecolors=_COLOUR[kind],
            edgecolors=_COLOUR[kind],
            linewidth=0.4,
        )
    return {kind for _, kind in bars}


def _marks(axes: Axes, case: TracedDelay, cpus: Sequence[int]) -> None:
    """The times the task was due and made runnable."""
    axes.axvline(-case.delay_ns / _US, color=plot.LIMIT, linewidth=1.0, linestyle="--")
    axes.annotate(
        "due",
        (-case.delay_ns / _US, len(cpus) - 0.4),
        color=plot.LIMIT,
        fontsize=8,
        ha="right",
        xytext=(-3, 0),
        textcoords="offset points",
    )
    waking_ns = _woken_ns(case)
    if waking_ns is not None and waking_ns >= case.begin_ns and case.cpu in cpus:
        axes.plot(
            [(waking_ns - case.read_ns) / _US],
            [cpus.index(case.cpu) - _BAR / 2 - 0.06],
            marker="^",
            markersize=6,
            color=_DELAYED,
            linestyle="none",
        )


def _woken_ns(case: TracedDelay) -> int | None:
    """When the delayed task became runnable; None if unknown."""
    waking = None if case.delayed is None else case.trace.waking(case.delayed.pid, case.read_ns)
    return None if waking is None or waking.at_ns < case.due_ns - _EXACT_NS else waking.at_ns


def _figure(case: TracedDelay) -> Figure:
    cpus = _cpus(case)
    figure, axes = plot.new_figure(
        f"{case.series}: {words.latency(case.delay_ns)}, load {load_name(case.recording) or 'not stated'}",
        (plot.WIDE_IN[0], 1.6 + 0.45 * len(cpus)),
    )
    kinds = _bars(axes, case, cpus)
    _marks(axes, case, cpus)
    axes.set_xlim((case.begin_ns - case.read_ns) / _US, max(1.0, case.delay_ns / _US * 0.02))
    axes.set_ylim(-0.6, len(cpus) - 0.3)
    axes.set_yticks(range(len(cpus)), [f"CPU {cpu}" for cpu in cpus])
    axes.set_xlabel("time relative to the end of the delay [µs]")
    plot.legend_below(
        figure, [Patch(color=colour, label=kind) for kind, colour in _COLOUR.items() if kind in kinds], columns=3
    )
    return figure


def _data(case: TracedDelay) -> Data:
    rows = [
        (
            activity.cpu,
            _KIND[activity.kind],
            activity.name,
            activity.task.name,
            activity.task.priority,
            (activity.begin_ns - case.read_ns) / _US,
            (activity.end_ns - activity.begin_ns) / _US,
        )
        for activity in case.trace.within(case.begin_ns, case.read_ns)
    ]
    return ("CPU", "kind", "name", "task", "kernel priority", "begin [us]", "duration [us]"), rows


def _picture(case: TracedDelay, number: int) -> Picture:
    left_out = len(case.trace.known_ns) - len(_cpus(case))
    woken = "; triangle: runnable" if _woken_ns(case) is not None else ""
    caption = (
        f"Activity of each CPU until the delay of {words.latency(case.delay_ns)} that stopped run "
        f"{case.recording.run_id}. Dashed: due{woken}. Blank: idle. Accuracy 1 µs."
        + (f" {words.counted(left_out, 'CPU')} more are not drawn." if left_out > 0 else "")
    )
    return plot.picture(_figure(case), f"trace-{number}", caption, _data(case), wide=True)


def _shares(case: TracedDelay, cpu: int, number: int) -> ReportTable:
    cpu_shares: list[Share] = shares(case.trace, cpu, case.due_ns, case.read_ns)
    rows = [
        (
            share.name if case.delayed is None or share.name != case.delayed.name else f"{share.name} (delayed)",
            _KIND[share.kind],
            share.ns,
            share.ns / max(1, case.delay_ns),
            share.times,
        )
        for share in cpu_shares
    ]
    columns = (
        Column("running", numeric=False),
        Column("kind", numeric=False),
        Column("time [µs]", words.microseconds),
        Column("share of the delay", lambda share: f"{share * 100:.1f} %"),
        Column("times"),
    )
    return ReportTable(
        f"trace-{number}-shares",
        f"CPU time during the delay of {words.latency(case.delay_ns)}, CPU {cpu}",
        columns,
        rows,
        note=_stations(case),
    )


def _stations(case: TracedDelay) -> str:
    """The times until the task was runnable, running, and done."""
    woken_ns = _woken_ns(case)
    if case.delayed is None or case.cpu is None or woken_ns is None:
        return ""
    ran = case.trace.running(case.cpu, case.read_ns)
    ran_ns = woken_ns if ran is None else max(woken_ns, ran.begin_ns)
    return (
        f"{case.delayed.name} became runnable {words.latency(woken_ns - case.due_ns)} after it was due, ran "
        f"{words.latency(ran_ns - woken_ns)} later, and read the clock {words.latency(case.read_ns - ran_ns)} "
        "after that."
    )


def _course(case: TracedDelay, cpu: int, number: int) -> ReportTable:
    """The last slices of the CPU."""
    slices = [activity for activity in case.trace.within(case.begin_ns, case.read_ns) if activity.cpu == cpu]
    rows = [
        (
            (activity.begin_ns - case.read_ns) / _US,
            (activity.end_ns - activity.begin_ns) / _US,
            _KIND[activity.kind],
            activity.name,
            activity.task.priority if activity.kind is TraceKind.TASK else None,
        )
        for activity in slices[-_MOST_ROWS:]
    ]
    columns = (
        Column("begin [µs]", lambda us: f"{us:,.0f}"),
        Column("duration [µs]", lambda us: f"{us:,.0f}"),
        Column("kind", numeric=False),
        Column("name", numeric=False),
        Column("kernel priority"),
    )
    cut = f", the last {_MOST_ROWS} of {len(slices)} steps" if len(slices) > _MOST_ROWS else ""
    return ReportTable(
        f"trace-{number}-course", f"Timeline of CPU {cpu} until the end of the delay{cut}", columns, rows
    )


def _parts(recording: Recording, number: int) -> list[Part]:
    try:
        case = _case(recording)
    except FastenoughError as error:
        return [Text(f"The trace of run {recording.run_id} is not valid: {error}.")]
    if case is None:
        return [Text(f"The trace of run {recording.run_id} does not cover the delay that stopped the run.")]
    parts: list[Part] = [_picture(case, number)]
    if case.cpu is not None:
        parts += [_shares(case, case.cpu, number), _course(case, case.cpu, number)]
    return parts


def section(context: Context) -> Section | None:
    traced = [recording for recording in context.recordings if recording.trace is not None]
    if not traced:
        return None
    parts = [
        part for number, recording in enumerate(traced[:MOST_TRACES], start=1) for part in _parts(recording, number)
    ]
    if len(traced) > MOST_TRACES:
        parts.append(Text(f"{len(traced) - MOST_TRACES} more runs have a trace; report them separately."))
    return Section(
        "trace",
        "Kernel trace before the run stopped",
        "The run stopped at the first latency above its threshold, and its trace of scheduling and interrupts "
        "stopped with it. Tracing adds a few µs to each wake-up, so traced runs are not compared with others.",
        parts,
    )
