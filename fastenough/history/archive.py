# SPDX-License-Identifier: GPL-2.0-or-later
"""Closed months as Parquet: one file per board and month, read when a query needs older rows.

A file is written under a temporary name, synced and renamed; then one transaction records it and deletes its rows.  If
the process is killed in between, file and rows are equal, and the next attempt writes the file again.

A row in the database replaces the same row of a file, so it always has all values of its five minutes: an archived row
is restored before values are added to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO, TypedDict

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    delete,
    false,
    func,
    not_,
    or_,
    select,
    true,
)

from fastenough.folder import Folder
from fastenough.history.boards import lock_boards
from fastenough.history.database import History, put
from fastenough.history.results import NOTHING, MissingSpan
from fastenough.history.rollups import DAY_S, month_begin_s, next_month_s
from fastenough.history.schema import ARCHIVE, BOARD, CHANGE, EVENT, HOUR, HOUR_S, INTERVAL, RUN, SERIES
from fastenough.model import BadInput, FastenoughError

KEPT_DAYS = 60
"""Time for which the rows of a month stay in the database after its end."""
EVENTS_KEPT_DAYS = 365
"""The same for its events, which pages list for a year."""
_NOT_HERE = "not in this history"
"""Name of a file that does not exist, for months whose values are in the archive of takers."""
_NEW_FOR_S = 30 * DAY_S
_AROUND_S = HOUR_S
_COLUMNS = (
    "series",
    "begin_s",
    "cpu",
    "run",
    "intervals",
    "count",
    "lost",
    "missed",
    "min_ns",
    "max_ns",
    "sum_ns",
    "sum_sq",
    "histogram",
)
Span = tuple[int, int]


def close_months(history: History, now_s: int, of_boards: Collection[str] | None = None) -> list[str]:
    """Archive the five-minute rows of months that ended 60 days ago or earlier, and delete the events of months that
    ended a year ago or earlier, except those around a new maximum or a change; returns the names of the written files.

    ``of_boards``: only these, None: all.  Racks that share a database archive their own boards, each in its store.
    Raises FastenoughError if a file cannot be written; its rows stay.
    """
    if history.archive is None:
        return []
    boards = select(BOARD.c.id).where(true() if of_boards is None else BOARD.c.name.in_(of_boards))
    due, with_events = _due_of_boards(history, boards, now_s)
    try:
        with Folder.at(history.archive, make=True) as folder:
            written = [_close(history, folder, board, begin_s) for board, begin_s in due]
    except OSError as error:
        raise FastenoughError(
            f"cannot write closed months to {history.archive}: {error.strerror}; their rows "
            "stay in the database, and the next attempt repeats it"
        ) from error
    for board, begin_s in with_events:
        _delete_events(history, board, begin_s)
    return [name for name in written if name is not None]


def drop_months(history: History, now_s: int, farm: str) -> None:
    """Delete the rows that `close_months` would archive or delete, of the boards of a farm whose values are in an
    archive that pages do not read.

    Pages report the five-minute rows as missing.  A month of which this history has a file is left as it is, and so are
    the rows of runs of which the archive of takers does not have all.
    """
    due, with_events = _due_of_boards(history, select(BOARD.c.id).where(BOARD.c.farm == farm), now_s)
    for board, begin_s in due:
        _drop(history, board, begin_s)
    for board, begin_s in with_events:
        _delete_events(history, board, begin_s)


def _due_of_boards(history: History, boards: Select[Any], now_s: int) -> tuple[list[Span], list[Span]]:
    """Board and begin of the months whose five-minute rows, and whose events, are no longer kept."""
    with history.reading() as connection:
        due = list(_due(connection, INTERVAL.c.begin_s, boards, now_s - KEPT_DAYS * DAY_S))
        return due, list(_due(connection, EVENT.c.at_s, boards, now_s - EVENTS_KEPT_DAYS * DAY_S))


def _due(connection: Connection, time: Column[Any], boards: Select[Any], before_s: int) -> Iterator[tuple[int, int]]:
    """Boards and months that have rows of a table and ended before a time; ``time``: the column of the rows' times."""
    its_board = time.table.c.board
    for board in connection.scalars(select(its_board).where(its_board.in_(boards)).distinct()).all():
        oldest = select(func.min(time)).where(its_board == board)
        at_s = connection.execute(oldest).scalar()
        while at_s is not None and next_month_s(at_s) <= before_s:
            yield board, month_begin_s(at_s)
            at_s = connection.execute(oldest.where(time >= next_month_s(at_s))).scalar()


def _delete_events(history: History, board: int, begin_s: int) -> None:
    """Delete the events of a month, except those around a new maximum or a change."""
    span = begin_s, next_month_s(begin_s)
    with history.writing() as connection:
        of_month = and_(EVENT.c.board == board, _within(EVENT.c.at_s, span))
        gone = _outside(of_month, EVENT.c.slot_s, span, kept_spans(connection, board, span))
        connection.execute(delete(EVENT).where(gone))


def _close(history: History, folder: Folder, board: int, begin_s: int) -> str | None:
    """Archive one month; returns None if it has no rows to move, or its values are in the archive of takers."""
    span = begin_s, next_month_s(begin_s)
    name = f"{board:06d}-{begin_s}.parquet"
    with history.writing() as connection:
        _lock(connection, board)
        known = _file_of(connection, board, begin_s)
        if known == _NOT_HERE:
            return None
        going = _going(connection, board, span)
        if connection.execute(select(INTERVAL.c.board).where(going).limit(1)).first() is None:
            return None
        rows = connection.execute(_named(board, span)).mappings().all()
        _write(folder, name, rows, known)
        put(connection, ARCHIVE, [{"board": board, "begin_s": begin_s, "file": name}])
        connection.execute(delete(INTERVAL).where(going))
    return name


def _drop(history: History, board: int, begin_s: int) -> None:
    """Delete the rows of one month that has no file, except those that only this history has, and note that they are
    missing."""
    span = begin_s, next_month_s(begin_s)
    with history.writing() as connection:
        _lock(connection, board)
        if _file_of(connection, board, begin_s) not in (None, _NOT_HERE):
            return
        going = and_(_going(connection, board, span), INTERVAL.c.run.not_in(_runs_of_several_series(board, span)))
        if connection.execute(delete(INTERVAL).where(going)).rowcount:
            put(connection, ARCHIVE, [{"board": board, "begin_s": begin_s, "file": _NOT_HERE}])


def _runs_of_several_series(board: int, span: Span) -> Select[Any]:
    """The runs with several series on a CPU: the archive of takers has only the main one of them."""
    return (
        select(INTERVAL.c.run)
        .where(INTERVAL.c.board == board, _within(INTERVAL.c.begin_s, span))
        .group_by(INTERVAL.c.run, INTERVAL.c.cpu)
        .having(func.count(INTERVAL.c.series.distinct()) > 1)
    )


def _file_of(connection: Connection, board: int, begin_s: int) -> str | None:
    """Name of the file of a month; None if it is not closed."""
    return connection.execute(
        select(ARCHIVE.c.file).where(ARCHIVE.c.board == board, ARCHIVE.c.begin_s == begin_s)
    ).scalar()


def _going(connection: Connection, board: int, span: Span) -> ColumnElement[bool]:
    """The rows of a month, except those that are never removed."""
    condition: ColumnElement[bool] = _outside(
        INTERVAL.c.board == board, INTERVAL.c.begin_s, span, kept_spans(connection, board, span)
    )
    return condition


def _lock(connection: Connection, board: int) -> None:
    """Lock a board, also under its former names, so that no run adds values between reading and deleting rows."""
    for name, former_names in connection.execute(select(BOARD.c.name, BOARD.c.former_names).where(BOARD.c.id == board)):
        lock_boards(connection, (name, *json.loads(former_names or "[]")))


def _outside(of_board: Any, column: Any, span: Span, excluded: Sequence[Span]) -> Any:
    """The rows of a span outside all excluded spans."""
    return and_(of_board, _within(column, span), not_(or_(false(), *(_within(column, moment) for moment in excluded))))


def _within(column: Any, span: Span) -> Any:
    return and_(column >= span[0], column < span[1])


def kept_spans(connection: Connection, board: int, span: Span) -> list[Span]:
    """The times within an hour of new maxima and changes, whose rows are never removed."""
    hours = connection.execute(
        select(HOUR.c.series, HOUR.c.begin_s, HOUR.c.max_ns)
        .where(
            HOUR.c.board == board,
            HOUR.c.begin_s >= span[0] - _NEW_FOR_S - _AROUND_S,
            HOUR.c.begin_s < span[1] + _AROUND_S,
        )
        .order_by(HOUR.c.series, HOUR.c.begin_s)
    ).all()
    changed = connection.execute(
        select(CHANGE.c.at_s).where(
            CHANGE.c.board == board, CHANGE.c.at_s >= span[0] - _AROUND_S, CHANGE.c.at_s < span[1] + _AROUND_S
        )
    ).scalars()
    moments = [(at_s - _AROUND_S, at_s + _AROUND_S) for at_s in set(changed)]
    moments += [(at_s - _AROUND_S, at_s + HOUR_S + _AROUND_S) for at_s in _new_maxima(hours)]
    return _joined(moment for moment in moments if moment[0] < span[1] and moment[1] > span[0])


def _new_maxima(hours: Sequence[Any]) -> Iterable[int]:
    """Hours whose maximum exceeds those of the 30 days before, if there are any."""
    by_series: dict[int, list[tuple[int, int]]] = {}
    for series, begin_s, max_ns in hours:
        earlier = by_series.setdefault(series, [])  # of falling maxima: the first is the greatest
        while earlier and earlier[0][0] < begin_s - _NEW_FOR_S:
            earlier.pop(0)
        if earlier and max_ns > earlier[0][1] > NOTHING:
            yield begin_s
        while earlier and earlier[-1][1] <= max_ns:
            earlier.pop()
        earlier.append((begin_s, max_ns))


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Without overlaps."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _named(board: int, span: Span) -> Select[Any]:
    """Rows with names for the numbers, which only one database knows."""
    own = [INTERVAL.c[name] for name in _COLUMNS if name not in ("series", "run")]
    return (
        select(SERIES.c.name.label("series"), RUN.c.name.label("run"), *own)
        .join(SERIES, INTERVAL.c.series == SERIES.c.id)
        .join(RUN, INTERVAL.c.run == RUN.c.id)
        .where(INTERVAL.c.board == board, _within(INTERVAL.c.begin_s, span))
        .order_by(SERIES.c.name, INTERVAL.c.cpu, INTERVAL.c.begin_s, RUN.c.name)
    )


def _key(row: Mapping[str, Any] | RowMapping) -> tuple[Any, ...]:
    return row["series"], row["cpu"], row["begin_s"], row["run"]


def _write(folder: Folder, name: str, rows: Sequence[RowMapping], known: str | None) -> None:
    """These rows and those already in the month's file."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    every: list[Mapping[str, Any]] = [dict(row) for row in rows]
    if known is not None:
        here = {_key(row) for row in rows}
        with folder.open_file(known) as stream:
            every += [row for row in parquet.read_table(stream).to_pylist() if _key(row) not in here]
        every.sort(key=_key)
    kinds = {
        "series": arrow.string(),
        "run": arrow.string(),
        "sum_sq": arrow.string(),
        "histogram": arrow.binary(),
        "cpu": arrow.int16(),
    }
    schema = arrow.schema([(column, kinds.get(column, arrow.int64())) for column in _COLUMNS])
    table = arrow.table({column: [row[column] for row in every] for column in _COLUMNS}, schema=schema)
    with folder.replacing(name, 0o644) as stream:
        parquet.write_table(
            table,
            stream,
            compression="zstd",
            row_group_size=16384,
            use_dictionary=["series", "run", "cpu", "lost", "missed", "intervals"],
            column_encoding={column: "DELTA_BINARY_PACKED" for column in ("begin_s", "max_ns")},
        )


class ArchivedRow(TypedDict):
    """Five minutes of one CPU in a run; ``histogram`` is packed."""

    begin_s: int
    cpu: int
    run: str
    max_ns: int
    histogram: bytes


@dataclass(frozen=True)
class ArchivedRows:
    """Rows of closed months.

    ``missing``: times of the months whose files are not in this archive: each farm writes into its own store, and
    several may share a database.
    """

    rows: Sequence[ArchivedRow]
    missing: tuple[MissingSpan, ...]


def archived_rows(history: History, connection: Connection, board: int, series: str, span: Span) -> ArchivedRows:
    """Rows of a span from the files of its months; raises FastenoughError for a damaged file."""
    noted = connection.execute(
        select(ARCHIVE.c.begin_s, ARCHIVE.c.file)
        .where(
            ARCHIVE.c.board == board, ARCHIVE.c.begin_s >= month_begin_s(max(span[0], 0)), ARCHIVE.c.begin_s < span[1]
        )
        .order_by(ARCHIVE.c.begin_s)
    ).all()
    with ExitStack() as opened:
        months = dict(_opened(history, noted, opened))
        rows = _read([stream.fileno() for stream in months.values()], series, span) if months else []
    return ArchivedRows(
        rows,
        tuple(
            MissingSpan(max(begin_s, span[0]), min(next_month_s(begin_s), span[1]), name == _NOT_HERE)
            for begin_s, name in noted
            if begin_s not in months
        ),
    )


def _opened(history: History, noted: Sequence[Any], opened: ExitStack) -> Iterator[tuple[int, BinaryIO]]:
    """The begin of each month whose file is here, and the file; raises FastenoughError for one that is a link or
    another user's."""
    if history.archive is None or not noted:
        return
    with suppress(FileNotFoundError), Folder.at(history.archive) as folder:
        for begin_s, name in noted:
            with suppress(FileNotFoundError):
                yield begin_s, opened.enter_context(folder.open_file(name))


def restore_rows(history: History, connection: Connection, board: int, run: int, begins_s: Collection[int]) -> None:
    """Restore the archived rows of a run that begin at these times, so that values can be added to them.

    Raises BadInput if the file of their month is missing or damaged: it may have values that would be lost.
    """
    noted = connection.execute(
        select(ARCHIVE.c.begin_s, ARCHIVE.c.file).where(
            ARCHIVE.c.board == board, ARCHIVE.c.begin_s.in_({month_begin_s(begin_s) for begin_s in begins_s})
        )
    ).all()
    if not noted:
        return
    name = connection.execute(select(RUN.c.name).where(RUN.c.id == run)).scalar_one()
    with ExitStack() as opened:
        months = dict(_opened(history, noted, opened))
        missing = [file for begin_s, file in noted if begin_s not in months]
        if missing:
            raise BadInput(
                f"{name}: its new values are of a closed month whose file {missing[0]} is not in "
                f"{history.archive or 'an archive of this history'}; restore the file, or rebuild the history with: "
                "fastenough farm rebuild, or web --rebuild"
            )
        rows = _rows_of_run([stream.fileno() for stream in months.values()], name, begins_s)
    if not rows:
        return
    numbers = {name: number for number, name in connection.execute(select(SERIES.c.id, SERIES.c.name))}
    keyed = {(numbers[row["series"]], row["begin_s"], row["cpu"]): row for row in rows}
    for key in _stored_keys(connection, board, run, keyed):
        del keyed[key]
    put(connection, INTERVAL, [{**row, "board": board, "series": key[0], "run": run} for key, row in keyed.items()])


def _stored_keys(
    connection: Connection, board: int, run: int, keys: Collection[tuple[int, int, int]]
) -> set[tuple[int, int, int]]:
    """Those of the keys (series, begin, CPU) of which the database has rows."""
    stored = connection.execute(
        select(INTERVAL.c.series, INTERVAL.c.begin_s, INTERVAL.c.cpu).where(
            INTERVAL.c.board == board,
            INTERVAL.c.series.in_({series for series, _, _ in keys}),
            INTERVAL.c.begin_s.in_({begin_s for _, begin_s, _ in keys}),
            INTERVAL.c.run == run,
        )
    )
    return {(series, begin_s, cpu) for series, begin_s, cpu in stored} & set(keys)


def _rows_of_run(files: Sequence[int], run: str, begins_s: Collection[int]) -> list[dict[str, Any]]:
    """All columns of a run's rows that begin at these times; raises BadInput for a damaged file."""
    try:
        rows = _selected(files, _COLUMNS, "run = ? AND begin_s IN (SELECT unnest(?))", (run, sorted(begins_s)))
    except FastenoughError as error:
        raise BadInput(f"{run}: {error}") from error
    return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]


def _read(files: Sequence[int], series: str, span: Span) -> list[ArchivedRow]:
    rows = _selected(
        files, list(ArchivedRow.__annotations__), "series = ? AND begin_s >= ? AND begin_s < ?", (series, *span)
    )
    return [
        ArchivedRow(begin_s=begin_s, cpu=cpu, run=run, max_ns=max_ns, histogram=histogram)
        for begin_s, cpu, run, max_ns, histogram in rows
    ]


def _selected(files: Sequence[int], columns: Sequence[str], condition: str, values: Sequence[Any]) -> list[Any]:
    """Rows of open files: DuckDB treats ``*`` and ``[`` in paths as patterns.  Raises FastenoughError for a damaged
    file."""
    duckdb = import_module("duckdb")
    names = ", ".join(f'"{column}"' for column in columns)
    paths = [f"/proc/self/fd/{file}" for file in files]
    try:
        with duckdb.connect() as duck:
            rows: list[Any] = duck.execute(
                f"SELECT {names} FROM read_parquet(?) WHERE {condition}", [paths, *values]
            ).fetchall()
    except duckdb.Error as error:
        raise FastenoughError(
            f"cannot read a closed month of the history ({str(error).splitlines()[0]}); the runs "
            "are safe; rebuild the history with: fastenough farm rebuild, or web --rebuild"
        ) from error
    return rows
