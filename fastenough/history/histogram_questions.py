# SPDX-License-Identifier: GPL-2.0-or-later
"""How often which latency was seen: of a range by CPU, of each cycle, and over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, Table, select

from fastenough.history.archive import archived_rows
from fastenough.history.asking import about, series_number
from fastenough.history.database import History
from fastenough.history.packed import added, unpacked_histograms
from fastenough.history.rollups import cycle_begin_s, month_begin_s, next_month_s
from fastenough.history.rows import NOTHING, Buckets, Distribution, Heat, Ridge, RidgeRow, Viewer
from fastenough.history.schema import ALL_CPUS, CYCLE, CYCLE_S, HOUR_S, INTERVAL, MONTH, RUN, STEP_S, K
from fastenough.recording.histogram import bucket_highest, bucket_lowest

Integers = NDArray[np.int64]
Span = tuple[int, int]

MOST_STEPS = 400
"""Of a heat map: no screen shows more."""


def distribution(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> Distribution:
    """By CPU, of all five minutes that begin in the range; raises UnknownBoard.

    Whole months and cycles are taken as they are kept, what is left at the ends from the five minutes themselves.
    """
    with about(history, viewer, name) as (connection, board):
        kept = _Kept(history, connection, board, series)
        rows = [row for table, spans in _tables_of(begin_s, end_s) for span in spans for row in kept.rows(table, span)]
    by_cpu: dict[int, list[tuple[int, bytes]]] = {}
    for row in rows:
        if row["cpu"] != ALL_CPUS:
            by_cpu.setdefault(row["cpu"], []).append((row["max_ns"], row["histogram"]))
    return Distribution(
        begin_s, end_s, {cpu: _added_up(held) for cpu, held in sorted(by_cpu.items())}, tuple(sorted(kept.elsewhere_s))
    )


def ridge(history: History, viewer: Viewer, name: str, series: str, months: int) -> Ridge:
    """The cycles of so many months up to the newest one, all CPUs together; raises UnknownBoard."""
    with about(history, viewer, name) as (connection, board):
        mine = select(CYCLE.c.begin_s, CYCLE.c.max_ns, CYCLE.c.histogram).where(
            CYCLE.c.board == board, CYCLE.c.series == series_number(connection, series), CYCLE.c.cpu == ALL_CPUS
        )
        newest = connection.execute(mine.order_by(CYCLE.c.begin_s.desc()).limit(1)).first()
        rows = (
            []
            if newest is None
            else connection.execute(
                mine.where(CYCLE.c.begin_s > newest.begin_s - months * 30.4375 * 86400).order_by(CYCLE.c.begin_s)
            ).all()
        )
    index, count, which = unpacked_histograms([row.histogram for row in rows])
    edges = np.searchsorted(which, np.arange(len(rows) + 1)).tolist()
    whole = _buckets(index, count, NOTHING)
    parts = (slice(low, high) for low, high in pairwise(edges))
    return Ridge(
        tuple(
            RidgeRow(
                row.begin_s,
                Buckets(
                    whole.lower_ns[part],
                    whole.upper_ns[part],
                    count[part],
                    row.max_ns if part.start < part.stop else None,
                ),
            )
            for row, part in zip(rows, parts, strict=True)
        ),
        CYCLE_S,
    )


def heat(  # noqa: PLR0917 - as above
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> Heat:
    """Counts over time in steps of five minutes, an hour, or a cycle, whichever gives no more than MOST_STEPS rows
    (of a cycle as many as there are); raises UnknownBoard."""
    step_s = next((step for step in (STEP_S, HOUR_S) if (end_s - begin_s) / step <= MOST_STEPS), CYCLE_S)
    first = begin_s // step_s * step_s
    times = np.arange(first, max(end_s, first + 1), step_s, dtype=np.int64)
    table = CYCLE if step_s == CYCLE_S else INTERVAL
    with about(history, viewer, name) as (connection, board):
        kept = _Kept(history, connection, board, series)
        rows = [row for row in kept.rows(table, (first, int(times[-1]) + step_s)) if row["cpu"] != ALL_CPUS]
    index, count, which = unpacked_histograms([row["histogram"] for row in rows])
    places = np.array([(row["begin_s"] - first) // step_s for row in rows], dtype=np.int64)
    low, high = (int(index.min()), int(index.max())) if index.size else (0, -1)
    counts = np.zeros((times.size, high - low + 1), dtype=np.int64)
    np.add.at(counts, (places[which] if which.size else which, index - low), count)
    buckets = np.arange(low, high + 1)
    return Heat(
        times, step_s, bucket_lowest(buckets, K), bucket_highest(buckets, K), counts, tuple(sorted(kept.elsewhere_s))
    )


def _tables_of(begin_s: int, end_s: int) -> Iterator[tuple[Table, list[Span]]]:
    """Which rows make up a range: every five minutes of it are in exactly one of these spans."""
    months = _whole((begin_s, end_s), month_begin_s, next_month_s)
    yield MONTH, [months] if months else []
    rest = _left((begin_s, end_s), months)
    cycles = [_whole(span, cycle_begin_s, lambda at_s: at_s + CYCLE_S) for span in rest]
    yield CYCLE, [span for span in cycles if span]
    yield INTERVAL, [left for span, whole in zip(rest, cycles, strict=True) for left in _left(span, whole)]


def _whole(span: Span, begin_of: Callable[[int], int], next_of: Callable[[int], int]) -> Span | None:
    """The part of a span that is made of whole windows."""
    first = begin_of(span[0])
    first = first if first == span[0] else next_of(first)
    last = begin_of(span[1])
    return (first, last) if first < last else None


def _left(span: Span, taken: Span | None) -> list[Span]:
    parts = [span] if taken is None else [(span[0], taken[0]), (taken[1], span[1])]
    return [part for part in parts if part[0] < part[1]]


@dataclass(frozen=True)
class _Kept:
    """A board's series, wherever its rows are kept.  ``elsewhere_s``: months that were asked for and are not here."""

    history: History
    connection: Connection
    board: int
    series: str
    elsewhere_s: set[int] = field(default_factory=set)

    def rows(self, table: Table, span: Span) -> Sequence[Mapping[str, Any]]:
        """begin_s, cpu, max_ns and histogram; of the five minutes also those that only the archive has any more."""
        mine = [
            table.c.board == self.board,
            table.c.series == series_number(self.connection, self.series),
            table.c.begin_s >= span[0],
            table.c.begin_s < span[1],
        ]
        columns = [table.c.begin_s, table.c.cpu, table.c.max_ns, table.c.histogram]
        if table is not INTERVAL:
            return self._found(select(*columns).where(*mine))
        here = self._found(select(*columns, RUN.c.name.label("run")).join(RUN, table.c.run == RUN.c.id).where(*mine))
        known = {(row["begin_s"], row["cpu"], row["run"]) for row in here}
        closed = archived_rows(self.history, self.connection, self.board, self.series, span)
        self.elsewhere_s.update(closed.elsewhere_s)
        return [*here, *(row for row in closed.rows if (row["begin_s"], row["cpu"], row["run"]) not in known)]

    def _found(self, question: Select[Any]) -> list[Mapping[str, Any]]:
        return [dict(row) for row in self.connection.execute(question).mappings()]


def _added_up(held: list[tuple[int, bytes]]) -> Buckets:
    index, count, which = unpacked_histograms([blob for _, blob in held])
    _, index, count = added(np.zeros_like(which), index, count)
    return _buckets(index, count, max(most for most, _ in held))


def _buckets(index: Integers, count: Integers, max_ns: int) -> Buckets:
    return Buckets(bucket_lowest(index, K), bucket_highest(index, K), count, max_ns if index.size else None)
