# SPDX-License-Identifier: GPL-2.0-or-later
"""Add five-minute rows to the tables, with their hourly, cycle and monthly sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def add_cells(
    connection: Connection, board: int, run: int, cells: Mapping[Key, IntervalRow], pile: HistogramSet
) -> None:
    """Sums of intervals, each counted once; keys are (series, begin, CPU)."""
    if not cells:
        return
    _add_intervals(connection, board, run, cells, pile)
    _add_hours(connection, board, cells)
    worst = {key: cell.max_ns for key, cell in cells.items()}
    for table, window_of in ((CYCLE, cycle_begin_s), (MONTH, month_begin_s)):  # no cycle lies in two months
        windows = {key: (key[0], window_of(key[1]), key[2]) for key in worst}
        pile, worst = pile.by(windows), _worst(worst, windows)
        _add_histograms(connection, table, board, pile, worst)


def _add_intervals(
    connection: Connection, board: int, run: int, cells: Mapping[Key, IntervalRow], pile: HistogramSet
) -> None:
    begins = [begin_s for _, begin_s, _ in cells]
    question = select(INTERVAL).where(
        INTERVAL.c.board == board,
        INTERVAL.c.series.in_({series for series, _, _ in cells}),
        INTERVAL.c.begin_s.between(min(begins), max(begins)),
        INTERVAL.c.run == run,
    )
    here = {(row["series"], row["begin_s"], row["cpu"]): row for row in connection.execute(question).mappings()}
    here = {key: row for key, row in here.items() if key in cells}
    packed = pile.plus(HistogramSet.unpacked((key, row["histogram"]) for key, row in here.items())).packed()
    put(
        connection,
        INTERVAL,
        [
            {"board": board, "run": run, "series": key[0], "begin_s": key[1], "cpu": key[2], "histogram": packed[key]}
            | interval_columns(with_row(cell, here[key]) if key in here else cell)
            for key, cell in cells.items()
        ],
    )


def _add_hours(connection: Connection, board: int, cells: Mapping[Key, IntervalRow]) -> None:
    keys = {(series, begin_s - begin_s % HOUR_S) for series, begin_s, _ in cells}
    hour_rows = connection.execute(
        select(HOUR).where(
            HOUR.c.board == board,
            HOUR.c.series.in_({series for series, _ in keys}),
            HOUR.c.begin_s.in_({begin_s for _, begin_s in keys}),
        )
    )
    hours = {key: HourMaxima() for key in keys}
    counts = {key: [0, 0] for key in keys}
    for row in hour_rows.mappings():
        key = row["series"], row["begin_s"]
        if key in keys:
            hours[key], counts[key] = HourMaxima.of(row["maxima"]), [row["count"], row["lost"]]
    for (series, begin_s, cpu), cell in cells.items():
        key = series, begin_s - begin_s % HOUR_S
        hours[key].lay(cpu, begin_s - key[1], cell.max_ns)
        counts[key][0] += cell.count
        counts[key][1] += cell.lost
    put(
        connection,
        HOUR,
        [
            {
                "board": board,
                "series": key[0],
                "begin_s": key[1],
                "max_ns": hour.worst_ns,
                "count": counts[key][0],
                "lost": counts[key][1],
                "maxima": hour.data,
            }
            for key, hour in hours.items()
        ],
    )


def _of_all(key: Key) -> Key:
    return key[0], key[1], ALL_CPUS


def _worst(maxima: Mapping[Key, int], windows: Mapping[Key, Key]) -> dict[Key, int]:
    """The maximum of each window."""
    worst: dict[Key, int] = {}
    for key, max_ns in maxima.items():
        window = windows[key]
        if max_ns > worst.setdefault(window, NOTHING):
            worst[window] = max_ns
    return worst


def _add_histograms(
    connection: Connection, table: Table, board: int, of_cpus: HistogramSet, maxima: Mapping[Key, int]
) -> None:
    """Of each CPU, and of all together."""
    together = {key: _of_all(key) for key in of_cpus.keys}
    more, worst = of_cpus.plus(of_cpus.by(together)), {**maxima, **_worst(maxima, together)}
    rows = connection.execute(
        select(table).where(
            table.c.board == board,
            table.c.series.in_({key[0] for key in worst}),
            table.c.begin_s.in_({key[1] for key in worst}),
        )
    )
    here: list[tuple[Key, bytes]] = []
    for row in rows.mappings():
        key = (row["series"], row["begin_s"], row["cpu"])
        if key in worst:
            here.append((key, row["histogram"]))
            worst[key] = max(worst[key], row["max_ns"])
    whole = more.plus(HistogramSet.unpacked(here))
    packed, counts = whole.packed(), whole.counts()
    put(
        connection,
        table,
        [
            {
                "board": board,
                "series": key[0],
                "begin_s": key[1],
                "cpu": key[2],
                "count": counts[key],
                "max_ns": most,
                "histogram": packed[key],
            }
            for key, most in worst.items()
        ],
    )


def note_newest(connection: Connection, board: int, cells: Mapping[Key, IntervalRow], seen_s: int, step_s: int) -> None:
    """The row of ``now`` of each series; ``seen_s``: the end of the newest interval."""
    maxima: dict[int, list[tuple[int, int]]] = {}
    for (series, begin_s, _), cell in cells.items():
        maxima.setdefault(series, []).append((begin_s, cell.max_ns))
    rows = connection.execute(select(NOW).where(NOW.c.board == board, NOW.c.series.in_(maxima))).mappings()
    here = {row["series"]: row for row in rows}
    put(
        connection,
        NOW,
        [
            _joined(
                here.get(series),
                {"board": board, "series": series, "seen_s": seen_s, "step_s": step_s, **_newest(those)},
            )
            for series, those in maxima.items()
        ],
    )


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


def _joined(before: RowMapping | None, new: _NowRow) -> _NowRow:
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
