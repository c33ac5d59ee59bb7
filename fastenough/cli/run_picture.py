# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminal pictures: progress bars, a run in progress, the stations of a monitor recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fastenough import words
from fastenough.cli.output import clean, leave_out, readable
from fastenough.cli.progress_wording import age, heading, how_far, losses, newest_wakeups, place, wakeup_line
from fastenough.jobs.live import LiveRecording, SeriesStatus
from fastenough.recording.wakeups import is_monitor, station_place

_COLUMNS = ("", "samples", "missed", "99.9 %", "maximum", "age", "last interval")
_SPARE = ("samples", "99.9 %", "last interval", "missed")
"""Columns that a narrow terminal omits, in this order."""
_OTHER_LINES = 7
"""Lines of the picture besides the rows."""
_BAR, _LONG_BAR = 24, 60


def bar(done: float, total: float, *texts: str, width: int = _BAR) -> RenderableType:
    """A progress bar followed by text, on one line."""
    whole = max(total, 0.1)
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(whole, min(max(done, 0.0), whole), width=width, complete_style="green", finished_style="green"),
        Text(", ".join(text for text in texts if text)),
    )
    return line


def picture(following: LiveRecording, state: str, width: int, height: int) -> Group:
    """The picture of a run for a terminal of that size; ``state`` is an additional line, or empty."""
    if following.head is None:
        return Group(Text(state or "waiting for the first line of the recording"))
    lines: list[RenderableType] = [Text(clean(heading(following.head))), Text(how_far(following))]
    planned = following.planned_ns
    if planned is not None:
        lines.append(bar(following.measured_ns, planned, width=min(width, _LONG_BAR)))
    statuses = following.statuses()
    highest, others = _highest(statuses, height - _OTHER_LINES)
    if is_monitor(following.head):
        lines += station_lines(following, width, height - _OTHER_LINES)
        others = ""
    else:
        lines.append(_table(highest, width))
    lines += [Text(clean(line)) for line in (others, losses(statuses), state) if line]
    return Group(*lines)


def _highest(statuses: Sequence[SeriesStatus], most: int) -> tuple[list[SeriesStatus], str]:
    """The series with the highest maxima, as many as fit, in their order; and a line on the others."""
    if len(statuses) <= most:
        return list(statuses), ""
    worst = sorted(statuses, key=lambda status: -(status.maximum_ns or 0))[: max(1, most)]
    highest = [status for status in statuses if status in worst]
    return highest, f"and {len(statuses) - len(highest)} more with lower maxima"


def _row(status: SeriesStatus, alone: bool) -> tuple[str, ...]:
    return (
        place(status.series, alone),
        words.number(status.n),
        words.number(status.missed),
        readable(status.tail_ns),
        readable(status.maximum_ns),
        age(status.since_maximum_ns),
        readable(status.latest_ns),
    )


def _table(statuses: Sequence[SeriesStatus], width: int) -> RenderableType:
    alone = len({status.series.name for status in statuses}) == 1
    first = clean(statuses[0].series.name) if alone else ""
    rows = [tuple(map(clean, _row(status, alone))) for status in statuses]
    columns, rows_left = leave_out((first, *_COLUMNS[1:]), rows, _SPARE, width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if position else "left", overflow="fold")
    for row in rows_left:
        table.add_row(*map(Text, row))
    return table


_STATION_COLUMNS = ("station", "wake-ups", "last interval", "maximum", "on CPU", "age")
_SPARE_STATION = ("wake-ups", "on CPU", "age", "last interval")
"""Columns that a narrow terminal omits, in this order."""
_MOST_WAKEUPS, _MOST_LINES = 5, 4
_FOLDED = 6
"""Characters that a folded line loses on average."""
_CULPRITS = "causes of the longest and the latest wake-ups"
_NOTHING = "no wake-up of a watched task yet"


def _by_station(statuses: Iterable[SeriesStatus]) -> Iterator[tuple[str, list[SeriesStatus]]]:
    """Stations with values, in the order of a wake-up; then series with other names."""
    by_name: dict[str, list[SeriesStatus]] = {}
    for status in statuses:
        if status.n:
            by_name.setdefault(status.series.name, []).append(status)
    for name in sorted(by_name, key=station_place):
        yield name, by_name[name]


def _station_row(name: str, statuses: Sequence[SeriesStatus], cpus: Sequence[int]) -> tuple[str, ...]:
    worst = max(statuses, key=lambda status: status.maximum_ns or 0)
    latest = [status.latest_ns for status in statuses if status.latest_ns is not None]
    by_cpu = {status.series.cpu: status for status in statuses}
    cells = [readable(by_cpu[cpu].maximum_ns) if cpu in by_cpu else "–" for cpu in cpus]
    return (
        name,
        words.number(sum(status.n for status in statuses)),
        readable(max(latest, default=None)),
        readable(worst.maximum_ns),
        "–" if worst.series.cpu is None else str(worst.series.cpu),
        age(worst.since_maximum_ns),
        *cells,
    )


def _station_table(stations: Sequence[tuple[str, list[SeriesStatus]]], width: int) -> RenderableType:
    """All CPUs combined, then each CPU by itself, as many as fit."""
    if not stations:
        return Text(_NOTHING)
    cpus = sorted(
        {status.series.cpu for _, statuses in stations for status in statuses if status.series.cpu is not None}
    )
    by_cpu = [f"CPU {cpu}" for cpu in cpus] if len(cpus) > 1 else []
    rows = [tuple(map(clean, _station_row(name, statuses, cpus if by_cpu else ()))) for name, statuses in stations]
    columns, rows_left = leave_out((*_STATION_COLUMNS, *by_cpu), rows, (*reversed(by_cpu), *_SPARE_STATION), width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if position else "left", overflow="fold")
    for row in rows_left:
        table.add_row(*map(Text, row))
    return table


def _culprits(following: LiveRecording, width: int, room: int) -> Iterator[Text]:
    """The longest wake-up and the newest, as many as fit."""
    worst_of_all = () if following.worst_culprit is None else (following.worst_culprit,)
    newest = newest_wakeups(following.head, (*worst_of_all, *following.culprits))
    worst = max(newest, key=lambda wakeup: wakeup.delay_ns or 0, default=None)
    listed = sorted(newest, key=lambda wakeup: wakeup is not worst)[:_MOST_WAKEUPS]
    for number, line in enumerate(clean(wakeup_line(wakeup)) for wakeup in listed):
        room -= -(-len(line) // max(1, width - _FOLDED))
        if number and room < 0:
            return
        yield Text(line, overflow="fold")


def station_lines(following: LiveRecording, width: int, height: int) -> list[RenderableType]:
    """The lines between the heading and the last line."""
    stations = list(_by_station(following.statuses()))
    listed = stations[: max(3, height - _MOST_LINES)]
    culprits = list(_culprits(following, width, max(_MOST_LINES, height - len(listed) - 2)))
    return [_station_table(listed, width), *([Text(_CULPRITS, style="bold"), *culprits] if culprits else [])]
