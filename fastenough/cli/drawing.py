# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminal pictures: progress bars, and a run in progress."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fastenough import words
from fastenough.cli.output import clean, leave_out, readable
from fastenough.cli.progress_words import age, heading, how_far, losses, place
from fastenough.cli.station_drawing import station_lines
from fastenough.jobs.following import Following, Standing
from fastenough.recording.wakeups import is_monitor

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


def picture(following: Following, state: str, width: int, height: int) -> Group:
    """The picture of a run for a terminal of that size; ``state`` is an additional line, or empty."""
    if following.head is None:
        return Group(Text(state or "waiting for the first line of the recording"))
    lines: list[RenderableType] = [Text(clean(heading(following.head))), Text(how_far(following))]
    planned = following.planned_ns
    if planned is not None:
        lines.append(bar(following.measured_ns, planned, width=min(width, _LONG_BAR)))
    standings = following.standings()
    shown, others = _highest(standings, height - _OTHER_LINES)
    if is_monitor(following.head):
        lines += station_lines(following, width, height - _OTHER_LINES)
        others = ""
    else:
        lines.append(_table(shown, width))
    lines += [Text(clean(line)) for line in (others, losses(standings), state) if line]
    return Group(*lines)


def _highest(standings: Sequence[Standing], most: int) -> tuple[list[Standing], str]:
    """The series with the highest maxima, as many as fit, in their order; and a line on the others."""
    if len(standings) <= most:
        return list(standings), ""
    worst = sorted(standings, key=lambda standing: -(standing.maximum_ns or 0))[: max(1, most)]
    kept = [standing for standing in standings if standing in worst]
    return kept, f"and {len(standings) - len(kept)} more with lower maxima"


def _row(standing: Standing, alone: bool) -> tuple[str, ...]:
    return (
        place(standing.series, alone),
        words.number(standing.n),
        words.number(standing.missed),
        readable(standing.tail_ns),
        readable(standing.maximum_ns),
        age(standing.since_maximum_ns),
        readable(standing.latest_ns),
    )


def _table(standings: Sequence[Standing], width: int) -> RenderableType:
    alone = len({standing.series.name for standing in standings}) == 1
    first = clean(standings[0].series.name) if alone else ""
    rows = [tuple(map(clean, _row(standing, alone))) for standing in standings]
    columns, rows_left = leave_out((first, *_COLUMNS[1:]), rows, _SPARE, width)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if position else "left", overflow="fold")
    for row in rows_left:
        table.add_row(*map(Text, row))
    return table
