# SPDX-License-Identifier: GPL-2.0-or-later
"""Add five-minute rows to the tables, with their hourly, cycle and monthly sums."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np
from sqlalchemy import Connection, RowMapping, Table, select

from fastenough.history.database import put
from fastenough.history.histograms import HistogramSet, Key
from fastenough.history.intervals import IntervalRow, interval_columns, with_row
from fastenough.history.packed_maxima import DAYS, HOURS, HourMaxima, MaximaRing
from fastenough.history.results import NOTHING
from fastenough.history.schema import ALL_CPUS, CYCLE, CYCLE_S, HOUR, HOUR_S, INTERVAL, MONTH, NOW

DAY_S = 86400


@lru_cache(maxsize=1 << 16)
def month_begin_s(at_s: int) -> int:
    """Begin of the calendar month (UTC) of an instant."""
    at = datetime.fromtimestamp(at_s, UTC)
    return int(datetime(at.year, at.month, 1, tzinfo=UTC).timestamp())


def next_month_s(at_s: int) -> int:
    """The begin of the month after that."""
    return month_begin_s(month_begin_s(at_s) + 32 * DAY_S)


def cycle_begin_s(at_s: int) -> int:
    """Begin of the 12-hour cycle (UTC) of an instant."""
    return at_s - at_s % CYCLE_S


@dataclass(frozen=True)
class RunCells:
    """New sums of a run, each interval counted once.

    ``cells`` and ``pile``: sums and histograms by (series, begin, CPU).  ``seen_s``: the end of the newest interval.
    ``step_s``: length of an interval.
    """

    board: int
    run: int
    cells: Mapping[Key, IntervalRow]
    pile: HistogramSet
    seen_s: int
    step_s: int


def add_cells(connection: Connection, runs: Sequence[RunCells]) -> None:
    """Add the sums of runs to all tables, with a few statements for all of them together."""
    cells = _by_run(runs)
    if not cells:
        return
    pile = HistogramSet.joined([each.pile.under((each.board, each.run)) for each in runs])
    _add_intervals(connection, cells, pile)
    of_boards = {key: (key[0], *key[2:]) for key in cells}
    _add_hours(connection, cells)
    worst = _worst({key: cell.max_ns for key, cell in cells.items()}, of_boards)
    pile = pile.by(of_boards)
    for table, window_of in ((CYCLE, cycle_begin_s), (MONTH, month_begin_s)):  # no cycle lies in two months
        windows = {key: (*key[:2], window_of(key[2]), key[3]) for key in worst}
        pile, worst = pile.by(windows), _worst(worst, windows)
        _add_histograms(connection, table, pile, worst)
    _note_newest(connection, runs)


def _by_run(runs: Iterable[RunCells]) -> dict[Key, IntervalRow]:
    """Cells by (board, run, series, begin, CPU)."""
    cells: dict[Key, IntervalRow] = {}
    for each in runs:
        for key, cell in each.cells.items():
            full = (each.board, each.run, *key)
            cells[full] = cells[full].plus(cell) if full in cells else cell
    return cells


def _stored(
    connection: Connection, table: Table, columns: Sequence[str], keys: Collection[Key]
) -> dict[Key, RowMapping]:
    """Stored rows of these keys.  Columns are searched one by one: the boards of one moment have the same windows."""
    question = select(table).where(*(table.c[name].in_({key[at] for key in keys}) for at, name in enumerate(columns)))
    rows = connection.execute(question).mappings()
    found = {tuple(row[name] for name in columns): row for row in rows}
    return {key: row for key, row in found.items() if key in keys}


def _add_intervals(connection: Connection, cells: Mapping[Key, IntervalRow], pile: HistogramSet) -> None:
    here = _stored(connection, INTERVAL, ("board", "run", "series", "begin_s", "cpu"), cells.keys())
    packed = pile.plus(HistogramSet.unpacked((key, row["histogram"]) for key, row in here.items())).packed()
    put(
        connection,
        INTERVAL,
        [
            {
                "board": key[0],
                "run": key[1],
                "series": key[2],
                "begin_s": key[3],
                "cpu": key[4],
                "histogram": packed[key],
            }
            | interval_columns(with_row(cell, here[key]) if key in here else cell)
            for key, cell in cells.items()
        ],
    )


def _add_hours(connection: Connection, cells: Mapping[Key, IntervalRow]) -> None:
    keys: set[Key] = {(board, series, begin_s - begin_s % HOUR_S) for board, _, series, begin_s, _ in cells}
    hours = {key: HourMaxima() for key in keys}
    counts = {key: [0, 0] for key in keys}
    for key, row in _stored(connection, HOUR, ("board", "series", "begin_s"), keys).items():
        hours[key], counts[key] = HourMaxima.of(row["maxima"]), [row["count"], row["lost"]]
    for (board, _, series, begin_s, cpu), cell in cells.items():
        key = board, series, begin_s - begin_s % HOUR_S
        hours[key].lay(cpu, begin_s - key[2], cell.max_ns)
        counts[key][0] += cell.count
        counts[key][1] += cell.lost
    put(
        connection,
        HOUR,
        [
            {
                "board": key[0],
                "series": key[1],
                "begin_s": key[2],
                "max_ns": hour.worst_ns,
                "count": counts[key][0],
                "lost": counts[key][1],
                "maxima": hour.data,
            }
            for key, hour in hours.items()
        ],
    )


def _of_all(key: Key) -> Key:
    return *key[:-1], ALL_CPUS


def _worst(maxima: Mapping[Key, int], windows: Mapping[Key, Key]) -> dict[Key, int]:
    """The maximum of each window."""
    worst: dict[Key, int] = {}
    for key, max_ns in maxima.items():
        window = windows[key]
        if max_ns > worst.setdefault(window, NOTHING):
            worst[window] = max_ns
    return worst


def _add_histograms(connection: Connection, table: Table, of_cpus: HistogramSet, maxima: Mapping[Key, int]) -> None:
    """Add histograms of each CPU, and of all together, to a table; keys are (board, series, begin, CPU)."""
    together = {key: _of_all(key) for key in maxima}
    more, worst = of_cpus.plus(of_cpus.by(together)), {**maxima, **_worst(maxima, together)}
    here = _stored(connection, table, ("board", "series", "begin_s", "cpu"), worst.keys())
    whole = more.plus(HistogramSet.unpacked((key, row["histogram"]) for key, row in here.items()))
    packed, counts = whole.packed(), whole.counts()
    put(
        connection,
        table,
        [
            {
                "board": key[0],
                "series": key[1],
                "begin_s": key[2],
                "cpu": key[3],
                "count": counts[key],
                "max_ns": max(most, here[key]["max_ns"]) if key in here else most,
                "histogram": packed[key],
            }
            for key, most in worst.items()
        ],
    )


def _note_newest(connection: Connection, runs: Iterable[RunCells]) -> None:
    """The row of ``now`` of each board and series."""
    news: dict[Key, _NowRow] = {}
    for each in runs:
        maxima: dict[int, list[tuple[int, int]]] = {}
        for (series, begin_s, _), cell in each.cells.items():
            maxima.setdefault(series, []).append((begin_s, cell.max_ns))
        for series, those in maxima.items():
            key = each.board, series
            row = _NowRow(board=each.board, series=series, seen_s=each.seen_s, step_s=each.step_s, **_newest(those))
            news[key] = _joined(news.get(key), row)
    here = _stored(connection, NOW, ("board", "series"), news.keys())
    put(connection, NOW, [_joined(here.get(key), row) for key, row in news.items()])


class _Maxima(TypedDict):
    """Newest five minutes, greatest values, and rings of maxima of a series."""

    newest_s: int
    max_5min_ns: int
    max_ever_ns: int
    max_ever_at_s: int
    hours: bytes
    days: bytes


class _NowRow(_Maxima):
    """A row of the table ``now``."""

    board: int
    series: int
    seen_s: int
    step_s: int


def _newest(maxima: Iterable[tuple[int, int]]) -> _Maxima:
    """The maxima of new rows alone; ``maxima``: begin of five minutes and greatest value of each."""
    begins, values = np.array(list(maxima), dtype=np.int64).T
    most, newest_s = int(values.max()), int(begins.max())
    return {
        "newest_s": newest_s,
        "max_5min_ns": int(values[begins == newest_s].max()),
        "max_ever_ns": most,
        "max_ever_at_s": int(begins[values == most].min()),
        "hours": MaximaRing.empty(HOURS).laid(begins // HOUR_S, values).data,
        "days": MaximaRing.empty(DAYS).laid(begins // DAY_S, values).data,
    }


def _joined(before: RowMapping | _NowRow | None, new: _NowRow) -> _NowRow:
    """The sum of a new and a stored row, in either order."""
    if before is None:
        return new
    newest_s = max(before["newest_s"], new["newest_s"])
    both = (before, new)
    seen_s, step_s = max((row["seen_s"], row["step_s"]) for row in both)
    most, earlier = max((row["max_ever_ns"], -row["max_ever_at_s"]) for row in both)
    return {
        "board": new["board"],
        "series": new["series"],
        "seen_s": seen_s,
        "step_s": step_s,
        "newest_s": newest_s,
        "max_5min_ns": max(row["max_5min_ns"] for row in both if row["newest_s"] == newest_s),
        "max_ever_ns": most,
        "max_ever_at_s": -earlier,
        "hours": _one_ring("hours", HOUR_S, both),
        "days": _one_ring("days", DAY_S, both),
    }


def _one_ring(name: str, unit_s: int, rows: Sequence[Mapping[str, Any] | RowMapping]) -> bytes:
    first, second = (MaximaRing.of(row[name], row["newest_s"] // unit_s) for row in rows)
    return first.laid(second.units, second.at(second.units)).data
