# SPDX-License-Identifier: GPL-2.0-or-later
"""Queries about a board: runs, events, changes, maxima over time and histograms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, and_, func, select

from fastenough.history.access import board_view, seen_by, series_number
from fastenough.history.archive import archived_rows
from fastenough.history.board_status import main_series
from fastenough.history.database import History
from fastenough.history.histograms import added, unpacked_histograms
from fastenough.history.packed_maxima import STEPS, HourMaxima
from fastenough.history.results import (
    NOTHING,
    BoardChange,
    Buckets,
    Distribution,
    Heat,
    LatencyEvent,
    MaximaSeries,
    MissingSpan,
    Ridge,
    RidgeRow,
    RunSpan,
    Viewer,
    Worst,
)
from fastenough.history.rollups import DAY_S, cycle_begin_s, month_begin_s, next_month_s
from fastenough.history.schema import (
    ALL_CPUS,
    BOARD,
    CHANGE,
    CYCLE,
    CYCLE_S,
    EVENT,
    HOUR,
    HOUR_S,
    INTERVAL,
    MONTH,
    RUN,
    SERIES,
    STEP_S,
    K,
)
from fastenough.recording.histogram import bucket_highest, bucket_lowest

MOST_EVENTS = 200
NEW_FOR_S = 30 * DAY_S
"""A new maximum exceeds everything measured within this time before it."""


def bands(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[RunSpan]:
    """The runs in a range, oldest first, with their full length; raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, board):
        rows = connection.execute(_runs_query(board, begin_s, end_s)).mappings().all()
    return [RunSpan(row["begin_s"], row["end_s"], row["load"], row["configuration"], row["name"]) for row in rows]


def runs(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[str]:
    """Ids of the runs in a range, oldest first; raises UnknownBoard."""
    return [band.run for band in bands(history, viewer, name, begin_s, end_s)]


def _runs_query(board: int, begin_s: int, end_s: int) -> Select[Any]:
    return (
        select(RUN)
        .where(RUN.c.board == board, RUN.c.begin_s < end_s, RUN.c.end_s >= begin_s)
        .order_by(RUN.c.begin_s, RUN.c.name)
    )


def events(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, begin_s: int, end_s: int, most: int = MOST_EVENTS
) -> list[LatencyEvent]:
    """The greatest events in a range, the greatest first; raises UnknownBoard."""
    return _events(history, viewer, name, (begin_s, end_s), (EVENT.c.value_ns.desc(), EVENT.c.at_s), most)


def newest_events(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, begin_s: int, end_s: int, most: int = MOST_EVENTS, first: int = 0
) -> list[LatencyEvent]:
    """The newest events in a range, newest first, from a position on; raises UnknownBoard."""
    order = (EVENT.c.at_s.desc(), EVENT.c.value_ns.desc(), *EVENT.primary_key)
    return _events(history, viewer, name, (begin_s, end_s), order, most, first)


def new_maxima(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> list[LatencyEvent]:
    """All new maxima of a series in a range, oldest first; raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, board):
        question = _events_query(board, (begin_s, end_s)).where(SERIES.c.name == series)
        rows = connection.execute(question.order_by(EVENT.c.at_s, EVENT.c.value_ns)).mappings()
        greatest_ns, new = NOTHING, []
        for row in rows.all():
            if row["value_ns"] >= greatest_ns:  # others do not exceed what was measured before them
                greatest_ns = row["value_ns"]
                new += [_event(row, is_new=True)] if _is_new(connection, row) else []
    return new


def _events(  # noqa: PLR0917 - as above
    history: History,
    viewer: Viewer,
    name: str,
    span: tuple[int, int],
    order: Sequence[ColumnElement[Any]],
    most: int,
    first: int = 0,
) -> list[LatencyEvent]:
    with board_view(history, viewer, name) as (connection, board):
        question = _events_query(board, span).order_by(*order).offset(first).limit(most)
        rows = connection.execute(question).mappings().all()
        return [_event(row, is_new=_is_new(connection, row)) for row in rows]


def _events_query(board: int, span: tuple[int, int]) -> Select[Any]:
    return (
        select(EVENT, RUN.c.name.label("run_name"), SERIES.c.name.label("series_name"))
        .join(RUN, EVENT.c.run == RUN.c.id)
        .join(SERIES, EVENT.c.series == SERIES.c.id)
        .where(EVENT.c.board == board, EVENT.c.at_s >= span[0], EVENT.c.at_s < span[1])
    )


def _event(row: RowMapping, *, is_new: bool) -> LatencyEvent:
    return LatencyEvent(
        row["at_s"],
        row["kind"],
        row["series_name"],
        None if row["cpu"] < 0 else row["cpu"],
        row["value_ns"],
        row["culprit"],
        row["run_name"],
        is_new,
    )


def _is_new(connection: Connection, row: RowMapping) -> bool:
    """Whether the 30 days before its five minutes had been measured, and nothing as great was among them.

    The first hour of a board has no new maxima.  Values are stored where their interval began.  An equal value in an
    earlier five minutes of the same hour, or else in the newest five minutes measured before that hour, may therefore
    be the same one.
    """
    value_ns, hour_s = int(row["value_ns"]), row["slot_s"] // HOUR_S * HOUR_S
    mine = (HOUR.c.board == row["board"], HOUR.c.series == row["series"])
    before = (*mine, HOUR.c.begin_s < hour_s, HOUR.c.begin_s > hour_s - NEW_FOR_S)
    whole_ns = _max_ns(connection, before)
    if value_ns < whole_ns:
        return False
    edges = select(HOUR.c.begin_s, HOUR.c.maxima).where(*mine, HOUR.c.begin_s.in_((hour_s - NEW_FOR_S, hour_s)))
    hours = {begin_s: HourMaxima.of(data) for begin_s, data in connection.execute(edges)}
    place, none = (row["slot_s"] - hour_s) // STEP_S, HourMaxima()
    oldest_ns = hours.get(hour_s - NEW_FOR_S, none).worst_within(place, STEPS)
    newest_ns = hours.get(hour_s, none).worst_within(0, place)
    if value_ns == whole_ns and newest_ns == NOTHING:
        whole_ns = _max_without_newest_ns(connection, before)
    measured_ns = max(whole_ns, oldest_ns)
    return value_ns > measured_ns > NOTHING and value_ns >= newest_ns


def _max_ns(connection: Connection, hours: Sequence[ColumnElement[bool]]) -> int:
    found = connection.execute(select(func.max(HOUR.c.max_ns)).where(*hours)).scalar()
    return NOTHING if found is None else int(found)


def _max_without_newest_ns(connection: Connection, hours: Sequence[ColumnElement[bool]]) -> int:
    """Maximum of hours without the newest five minutes that were measured in them."""
    question = select(HOUR.c.begin_s, HOUR.c.maxima).where(*hours, HOUR.c.max_ns > NOTHING)
    begin_s, data = connection.execute(question.order_by(HOUR.c.begin_s.desc()).limit(1)).one()
    hour = HourMaxima.of(data)
    newest = max(place for place in range(STEPS) if hour.worst_within(place, place + 1) > NOTHING)
    return max(hour.worst_within(0, newest), _max_ns(connection, (*hours, HOUR.c.begin_s < begin_s)))


def changes(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[BoardChange]:
    """Changes in a range, newest first, of one instant first those that affect latencies; raises UnknownBoard.

    A trend belongs to each range that it touches.
    """
    last_s = func.coalesce(CHANGE.c.until_s, CHANGE.c.at_s)
    return _changes(history, viewer, name, and_(CHANGE.c.at_s < end_s, last_s >= begin_s))


def noted_changes(history: History, viewer: Viewer, name: str, begin_s: int, end_s: int) -> list[BoardChange]:
    """Changes of the tail that were noted in a range, whenever they were, in the same order; raises UnknownBoard."""
    return _changes(history, viewer, name, CHANGE.c.noted_s.between(begin_s, end_s - 1))


def _changes(history: History, viewer: Viewer, name: str, within: ColumnElement[bool]) -> list[BoardChange]:
    before, after = RUN.alias("before"), RUN.alias("after")
    with board_view(history, viewer, name) as (connection, board):
        rows = (
            connection.execute(
                select(CHANGE, before.c.name.label("before"), after.c.name.label("after"))
                .outerjoin(before, CHANGE.c.last_run == before.c.id)
                .outerjoin(after, CHANGE.c.run == after.c.id)
                .where(CHANGE.c.board == board, within)
                .order_by(CHANGE.c.at_s.desc(), CHANGE.c.latency.desc(), CHANGE.c.id)
            )
            .mappings()
            .all()
        )
    return [
        BoardChange(
            row["at_s"],
            row["kind"],
            row["key"],
            row["was"],
            row["now"],
            row["latency"],
            row["before"] or "",
            row["after"] or "",
            row["noted_s"],
            row["until_s"],
            row["withdrawn_s"],
        )
        for row in rows
    ]


def last_changes(history: History, viewer: Viewer, kinds: Collection[str], begin_s: int, end_s: int) -> dict[str, int]:
    """Time of the last change of these kinds in a range, by board; withdrawn changes do not count."""
    return _newest_change(
        history, viewer, CHANGE.c.at_s, (CHANGE.c.kind.in_(kinds), CHANGE.c.withdrawn_s.is_(None)), (begin_s, end_s)
    )


def last_noted(history: History, viewer: Viewer, begin_s: int, end_s: int) -> dict[str, int]:
    """Time at which the newest tail change in a range was noted, by board."""
    return _newest_change(history, viewer, CHANGE.c.noted_s, (), (begin_s, end_s))


def _newest_change(
    history: History,
    viewer: Viewer,
    time: ColumnElement[Any],
    where: Sequence[ColumnElement[bool]],
    span: tuple[int, int],
) -> dict[str, int]:
    with history.reading() as connection:
        rows = connection.execute(
            seen_by(
                select(BOARD.c.name, func.max(time))
                .join(CHANGE, CHANGE.c.board == BOARD.c.id)
                .where(time >= span[0], time < span[1], *where)
                .group_by(BOARD.c.name),
                viewer,
            )
        )
        return {name: at_s for name, at_s in rows}


FINE_S = 31 * 86400
"""Longest range that is answered in steps of five minutes; longer ones are answered in hours."""


def maxima(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> MaximaSeries:
    """Five-minute maxima, or hourly ones of more than 31 days; raises UnknownBoard."""
    step_s = STEP_S if end_s - begin_s <= FINE_S else HOUR_S
    first, last = begin_s // HOUR_S * HOUR_S, -(-end_s // HOUR_S) * HOUR_S
    with board_view(history, viewer, name) as (connection, board):
        rows = connection.execute(
            select(HOUR.c.begin_s, HOUR.c.maxima).where(
                HOUR.c.board == board,
                HOUR.c.series == series_number(connection, series),
                HOUR.c.begin_s >= first,
                HOUR.c.begin_s < last,
            )
        ).all()
    per_hour = HOUR_S // STEP_S
    fine: dict[int, NDArray[np.int64]] = {}
    which, cpus, values = HourMaxima.unpacked([data for _, data in rows])
    places = np.array([(at_s - first) // HOUR_S for at_s, _ in rows], dtype=np.int64)
    for cpu in np.unique(cpus).tolist():
        fine[cpu] = np.full(((last - first) // HOUR_S, per_hour), NOTHING, dtype=np.int64)
        fine[cpu][places[which[cpus == cpu]]] = values[cpus == cpu]
    by_cpu = {cpu: hours.ravel() if step_s == STEP_S else hours.max(axis=1) for cpu, hours in fine.items()}
    times = np.arange(first, last, step_s, dtype=np.int64)
    within = (times + step_s > begin_s) & (times < end_s)
    return MaximaSeries(times[within], step_s, {cpu: values[within] for cpu, values in by_cpu.items()})


def cycle_maxima(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> list[int]:
    """The greatest value of each cycle measured in a range of whole hours, oldest first; raises UnknownBoard."""
    cycle = HOUR.c.begin_s - HOUR.c.begin_s % CYCLE_S
    with board_view(history, viewer, name) as (connection, board):
        rows = connection.execute(
            select(cycle, func.max(HOUR.c.max_ns))
            .where(
                HOUR.c.board == board,
                HOUR.c.series == series_number(connection, series),
                HOUR.c.begin_s >= begin_s,
                HOUR.c.begin_s < end_s,
                HOUR.c.max_ns > NOTHING,
            )
            .group_by(cycle)
            .order_by(cycle)
        ).all()
    return [int(max_ns) for _, max_ns in rows]


def worst(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History,
    viewer: Viewer,
    begin_s: int,
    end_s: int,
    step_s: int = HOUR_S,
    boards: Collection[str] | None = None,
) -> Worst:
    """Maxima of the main series of boards (None: of all) in steps of whole hours; boards without data in the range are
    included.

    The database computes the maximum of each step: a year of all boards has millions of hours.
    """
    first = begin_s // HOUR_S * HOUR_S
    steps = -(-(end_s - first) // step_s)
    place = (HOUR.c.begin_s - first) // step_s
    with history.reading() as connection:
        names = _names(connection, viewer, boards)
        main = main_series(connection, None if boards is None else names)
        rows = connection.execute(
            select(HOUR.c.board, HOUR.c.series, place, func.max(HOUR.c.max_ns))
            .where(
                HOUR.c.begin_s >= first,
                HOUR.c.begin_s < first + steps * step_s,
                HOUR.c.series.in_(set(main.values())),
                *_only(names, boards),
            )
            .group_by(HOUR.c.board, HOUR.c.series, place)
        ).all()
    maxima_of = {name: np.full(steps, NOTHING, dtype=np.int64) for name in sorted(names.values())}
    for board, series, at, max_ns in rows:
        if board in names and main.get(board) == series:
            maxima_of[names[board]][at] = max_ns
    return Worst(first + step_s * np.arange(steps, dtype=np.int64), maxima_of)


def _names(connection: Connection, viewer: Viewer, boards: Collection[str] | None) -> dict[int, str]:
    """Names by number of the boards that the viewer may see; ``boards`` None: of all."""
    question = seen_by(select(BOARD.c.id, BOARD.c.name), viewer)
    rows = connection.execute(question if boards is None else question.where(BOARD.c.name.in_(boards)))
    return {number: name for number, name in rows}


def _only(numbers: Collection[int], boards: Collection[str] | None) -> list[ColumnElement[bool]]:
    """Condition for these boards; none for all boards."""
    return [] if boards is None else [HOUR.c.board.in_(numbers)]


def latest(
    history: History, viewer: Viewer, end_s: int, steps: int, boards: Collection[str] | None = None
) -> dict[str, list[int | None]]:
    """The newest five-minute maxima of boards over all CPUs of the main series, oldest first; None without data.
    ``boards`` None: of all."""
    first = (end_s - steps * STEP_S) // STEP_S * STEP_S + STEP_S
    with history.reading() as connection:
        names = _names(connection, viewer, boards)
        main = main_series(connection, None if boards is None else names)
        rows = connection.execute(
            select(HOUR.c.board, HOUR.c.series, HOUR.c.begin_s, HOUR.c.maxima).where(
                HOUR.c.begin_s > first - HOUR_S,
                HOUR.c.begin_s <= end_s,
                HOUR.c.series.in_(set(main.values())),
                *_only(names, boards),
            )
        ).all()
    maxima_of: dict[str, list[int | None]] = {name: [None] * steps for name in names.values()}
    for board, series, begin_s, data in rows:
        if board in names and main.get(board) == series:
            hour = np.max(list(HourMaxima.of(data).of_cpu.values()), axis=0).tolist()
            for place, value in enumerate(hour, (begin_s - first) // STEP_S):
                if 0 <= place < steps and value != NOTHING:
                    maxima_of[names[board]][place] = value
    return maxima_of


Integers = NDArray[np.int64]
Span = tuple[int, int]

MOST_STEPS = 400
"""Maximum number of steps of a heat map: no screen shows more."""


def distribution(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> Distribution:
    """Histograms by CPU of all five-minute windows that begin in the range; raises UnknownBoard.

    Whole months and cycles come from their own rows, the rest from five-minute rows.
    """
    with board_view(history, viewer, name) as (connection, board):
        series_rows = _SeriesRows(history, connection, board, series)
        rows = [
            row
            for table, spans in _tables_of(begin_s, end_s)
            for span in spans
            for row in series_rows.rows(table, span)
        ]
        lost = series_rows.lost((begin_s, end_s))
    by_cpu: dict[int, list[tuple[int, bytes]]] = {}
    for row in rows:
        if row["cpu"] != ALL_CPUS:
            by_cpu.setdefault(row["cpu"], []).append((row["max_ns"], row["histogram"]))
    return Distribution(
        begin_s,
        end_s,
        {cpu: _added_up(held) for cpu, held in sorted(by_cpu.items())},
        tuple(sorted(series_rows.missing)),
        lost,
    )


def ridge(history: History, viewer: Viewer, name: str, series: str, months: int) -> Ridge:
    """The cycles of this number of months up to the newest one, all CPUs combined; raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, board):
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
    """Counts over time in steps of five minutes, an hour, or a cycle: the shortest step with at most MOST_STEPS rows;
    raises UnknownBoard."""
    step_s = next((step for step in (STEP_S, HOUR_S) if (end_s - begin_s) / step <= MOST_STEPS), CYCLE_S)
    first = begin_s // step_s * step_s
    times = np.arange(first, max(end_s, first + 1), step_s, dtype=np.int64)
    table = CYCLE if step_s == CYCLE_S else INTERVAL
    with board_view(history, viewer, name) as (connection, board):
        series_rows = _SeriesRows(history, connection, board, series)
        rows = [row for row in series_rows.rows(table, (first, int(times[-1]) + step_s)) if row["cpu"] != ALL_CPUS]
    index, count, which = unpacked_histograms([row["histogram"] for row in rows])
    places = np.array([(row["begin_s"] - first) // step_s for row in rows], dtype=np.int64)
    low, high = (int(index.min()), int(index.max())) if index.size else (0, -1)
    counts = np.zeros((times.size, high - low + 1), dtype=np.int64)
    np.add.at(counts, (places[which] if which.size else which, index - low), count)
    buckets = np.arange(low, high + 1)
    return Heat(
        times,
        step_s,
        bucket_lowest(buckets, K),
        bucket_highest(buckets, K),
        counts,
        tuple(sorted(series_rows.missing)),
    )


def _tables_of(begin_s: int, end_s: int) -> Iterator[tuple[Table, list[Span]]]:
    """The tables and spans whose rows make up a range: every five minutes of it are in exactly one span."""
    months = _whole((begin_s, end_s), month_begin_s, next_month_s)
    yield MONTH, [months] if months else []
    rest = _left((begin_s, end_s), months)
    cycles = [_whole(span, cycle_begin_s, lambda at_s: at_s + CYCLE_S) for span in rest]
    yield CYCLE, [span for span in cycles if span]
    yield INTERVAL, [left for span, whole in zip(rest, cycles, strict=True) for left in _left(span, whole)]


def _whole(span: Span, begin_of: Callable[[int], int], next_of: Callable[[int], int]) -> Span | None:
    """The whole windows within a span."""
    first = begin_of(span[0])
    first = first if first == span[0] else next_of(first)
    last = begin_of(span[1])
    return (first, last) if first < last else None


def _left(span: Span, taken: Span | None) -> list[Span]:
    parts = [span] if taken is None else [(span[0], taken[0]), (taken[1], span[1])]
    return [part for part in parts if part[0] < part[1]]


@dataclass(frozen=True)
class _SeriesRows:
    """Rows of a board's series, from the database or the archive.  ``missing``: requested times with rows that
    are in neither."""

    history: History
    connection: Connection
    board: int
    series: str
    missing: set[MissingSpan] = field(default_factory=set)

    def rows(self, table: Table, span: Span) -> Sequence[Mapping[str, Any]]:
        """Begin, CPU, maximum and histogram of rows of a table; of five-minute rows also the archived ones."""
        mine = [
            table.c.board == self.board,
            table.c.series == series_number(self.connection, self.series),
            table.c.begin_s >= span[0],
            table.c.begin_s < span[1],
        ]
        columns = [table.c.begin_s, table.c.cpu, table.c.max_ns, table.c.histogram]
        if table is not INTERVAL:
            return self._rows_of(select(*columns).where(*mine))
        here = self._rows_of(select(*columns, RUN.c.name.label("run")).join(RUN, table.c.run == RUN.c.id).where(*mine))
        known = {(row["begin_s"], row["cpu"], row["run"]) for row in here}
        closed = archived_rows(self.history, self.connection, self.board, self.series, span)
        self.missing.update(closed.missing)
        return [*here, *(row for row in closed.rows if (row["begin_s"], row["cpu"], row["run"]) not in known)]

    def lost(self, span: Span) -> int:
        """Number of values lost in the hours of a span."""
        question = select(func.sum(HOUR.c.lost)).where(
            HOUR.c.board == self.board,
            HOUR.c.series == series_number(self.connection, self.series),
            HOUR.c.begin_s >= span[0] // HOUR_S * HOUR_S,
            HOUR.c.begin_s < span[1],
        )
        return int(self.connection.execute(question).scalar() or 0)

    def _rows_of(self, question: Select[Any]) -> list[Mapping[str, Any]]:
        return [dict(row) for row in self.connection.execute(question).mappings()]


def _added_up(held: list[tuple[int, bytes]]) -> Buckets:
    index, count, which = unpacked_histograms([blob for _, blob in held])
    _, index, count = added(np.zeros_like(which), index, count)
    return _buckets(index, count, max(most for most, _ in held))


def _buckets(index: Integers, count: Integers, max_ns: int) -> Buckets:
    return Buckets(bucket_lowest(index, K), bucket_highest(index, K), count, max_ns if index.size else None)
