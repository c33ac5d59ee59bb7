# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of single boards in the archive of a fleet, read in groups of boards that fit into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as arrow
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow.dataset import Dataset, field

from fastenough.fleet.archive import (
    EVENTS,
    INTERVALS,
    MOST_NAME,
    ArchiveTable,
    FleetArchive,
    archived_text,
    safe_type,
    series_of,
)
from fastenough.history.intervals import MOST_VALUES
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.lines import printable

KEY = INTERVALS.key
"""Columns of the key, which each job gets."""
_ROWS_AT_ONCE = 200_000
"""Rows of a group of boards, unless a single board has more."""
_OPTIONAL = ("min_ns", "max_ns", "station", "task", "cause", "threshold_ns", "culprit")
_TEXTS = ("series", "station", "task", "cause")
_NAMES = ("run", *_TEXTS)
_COUNTS = ("count", "lost", "missed", "begin_ns", "end_ns", "latency_ns", "threshold_ns")
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class BoardRows:
    """The intervals of a board, in the order of run, CPU and number.  ``type``: that of its newest month.

    ``events``: those of the archive, in the same order, if the job reads columns of them.
    """

    board: str
    type: str
    rows: arrow.Table
    events: arrow.Table | None = None

    def numbers(self, column: str) -> IntArray:
        """A column of integers; null is 0."""
        return integers(self.rows.column(column))

    def by_series(self) -> dict[str, BoolArray]:
        """By series, in the order of names, which rows are of it; values of different series are not comparable."""
        names = self.rows.column("series")
        archived: dict[str, list[str]] = {}
        for name in compute.unique(names).to_pylist():
            archived.setdefault(series_of(name), []).append(name)
        return {
            series: np.asarray(compute.is_in(names, arrow.array(same, arrow.string())), dtype=bool)
            for series, same in sorted(archived.items())
        }


def integers(column: arrow.Array | arrow.ChunkedArray) -> IntArray:
    """Integers of the archive; null is 0."""
    return np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64)


def sums_and_maxima(keys: IntArray, count: IntArray, maximum: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct keys in order, and of each the sum of its counts and its maximum; a key may be a column of rows."""
    distinct, place = np.unique(keys, axis=-1, return_inverse=True)
    counts, maxima = np.zeros((2, distinct.shape[-1]), dtype=np.int64)
    np.add.at(counts, place.ravel(), count)
    np.maximum.at(maxima, place.ravel(), maximum)
    return distinct, counts, maxima


@dataclass(frozen=True)
class ShardFiles:
    """The files of a shard, each with type and month, in the order of month and type.  ``events``: those of events."""

    archive: str
    files: tuple[tuple[str, str, str], ...]
    events: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [path for _, _, path in self.files]


BoardGroup = tuple[tuple[str, str], ...]
"""Boards of one shard, each with its type."""


def shard_files(location: str, kind: str | None = None) -> list[ShardFiles]:
    """The files of each shard, as they are now.  ``kind``: of this type of board only.

    Raises BadInput for an archive, or a type, without files.
    """
    archive = FleetArchive(location)
    shards: dict[int, list[tuple[str, str, str]]] = {}
    events: dict[int, list[str]] = {}
    files = archive.readable()
    for partition, path in files:
        if kind is not None and partition.type != safe_type(kind):
            continue
        if partition.table is EVENTS:
            events.setdefault(partition.shard, []).append(path)
        else:
            shards.setdefault(partition.shard, []).append((partition.month, partition.type, path))
    if not shards:
        types = ", ".join(sorted({partition.type for partition, _ in files}))
        what = (
            f"no boards of the type {kind}; it has {types}"
            if files
            else "no files of an archive; farm take writes them"
        )
        raise BadInput(f"archive {location}: {what}")
    return [
        ShardFiles(location, tuple(sorted(shards[shard])), tuple(sorted(events.get(shard, ()))))
        for shard in sorted(shards)
    ]


def board_groups(files: ShardFiles) -> list[BoardGroup]:
    """The boards of a shard in groups of at most `_ROWS_AT_ONCE` rows, or of one board; the files determine them."""
    rows: Counter[str] = Counter()
    types: dict[str, str] = {}
    for _, kind, path in files.files:
        for board, count in _boards_in(files.archive, path):
            rows[board] += count
            types[board] = kind
    groups: list[list[str]] = []
    size = _ROWS_AT_ONCE
    for board in sorted(rows):
        if size + rows[board] > _ROWS_AT_ONCE:
            groups.append([])
            size = 0
        groups[-1].append(board)
        size += rows[board]
    return [tuple((board, types[board]) for board in group) for group in groups]


def _boards_in(location: str, path: str) -> Iterator[tuple[str, int]]:
    """Boards of a file with the number of their rows."""
    counts: Counter[str] = Counter()
    with _reading(location, [path]) as data:
        for batch in data.to_batches(columns=["board"]):
            counts.update(_counts_of(batch.column(0)))
    if not all(map(_is_name, counts)):
        raise FastenoughError(f"archive {location}: {path} has an invalid name of a board; remove the file")
    yield from counts.items()


def _is_name(text: str | None) -> bool:
    """Whether a text can be printed as a name in one line."""
    return text is not None and 0 < len(text) <= MOST_NAME and text.isprintable()


def _counts_of(boards: arrow.Array | arrow.ChunkedArray) -> dict[str, int]:
    return {entry["values"]: entry["counts"] for entry in compute.value_counts(boards).to_pylist()}


def rows_of(
    files: ShardFiles, group: BoardGroup, columns: Iterable[str], event_columns: Sequence[str] = ()
) -> Iterator[BoardRows]:
    """The rows of each board of a group in the files of its shard: the key and these columns.

    ``event_columns``: of events; without any, events are not read.  Raises FastenoughError if an interval is in the
    archive twice or contradicts itself, or if a file cannot be read.
    """
    table = _table_of(INTERVALS, files.archive, files.paths, group, columns)
    events = _table_of(EVENTS, files.archive, files.events, group, event_columns) if event_columns else None
    counts = _counts_of(table.column("board"))
    of_events = {} if events is None else _counts_of(events.column("board"))
    begin = first = 0
    for board, kind in group:
        many = of_events.get(board, 0)
        yield BoardRows(
            board, kind, table.slice(begin, counts[board]), None if events is None else events.slice(first, many)
        )
        begin, first = begin + counts[board], first + many


def _table_of(
    table: ArchiveTable, location: str, paths: Sequence[str], group: BoardGroup, columns: Iterable[str]
) -> arrow.Table:
    """Key and columns of the rows of a group of boards, in the order of the key."""
    names = list(dict.fromkeys((*table.key, *columns)))
    if not paths:
        return table.table_of(()).select(names)
    with _reading(location, paths, table) as data:
        rows = data.to_table(names, filter=field("board").isin([board for board, _ in group]))
    for name in set(_TEXTS) & set(names):
        rows = _with_printable(rows, name)
    rows = rows.sort_by([(name, "ascending") for name in table.key])
    _require_each_once(rows, table)
    _require_consistent(rows)
    return rows


def _with_printable(rows: arrow.Table, name: str) -> arrow.Table:
    """The rows with a column of printable texts: takers of earlier versions stored those of boards as they were."""
    texts = [text for text in compute.unique(rows.column(name)).to_pylist() if text and not _is_name(text)]
    if not texts:
        return rows
    printable_texts = {text: archived_text(text) for text in texts}
    column = [printable_texts.get(text, text) for text in rows.column(name).to_pylist()]
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), arrow.array(column, rows.schema.field(place).type))


def _require_each_once(rows: arrow.Table, table: ArchiveTable) -> None:
    if rows.num_rows < 2:
        return
    same = [compute.equal(rows.column(name)[1:], rows.column(name)[:-1]) for name in table.key]
    place = compute.index(reduce(compute.and_, same), True).as_py()
    if place >= 0:
        what = "" if table is INTERVALS else f"one of the {table.name} of "
        raise FastenoughError(
            f"the archive contains {what}{_interval(rows, place)} twice; remove the file that repeats {table.name} of "
            "another one"
        )


def _interval(table: arrow.Table, place: int) -> str:
    """The interval of a row, for a message; the name of its run may contain anything."""
    board, run, cpu, interval = (table.column(name)[place].as_py() for name in KEY)
    run = printable(str(run))[:MOST_NAME]
    return f"interval {interval} of CPU {cpu} of run {run} of board {board}"


def _require_consistent(table: arrow.Table) -> None:
    """Raise FastenoughError for a row that contradicts itself, from which a limit could seem to be kept."""
    for wrong, what in _contradictions(table):
        if wrong.any():
            raise FastenoughError(
                f"the archive is damaged: {_interval(table, int(wrong.argmax()))} has {what}; remove its file"
            )


def _contradictions(table: arrow.Table) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """What is wrong with which rows, in the columns that were read."""
    for name in table.column_names:
        if name not in _OPTIONAL:
            yield np.asarray(table.column(name).is_null()), f"no {name}"
    for name in set(_NAMES) & set(table.column_names):
        texts = compute.unique(table.column(name)).to_pylist()
        invalid = [text for text in texts if not _is_name(text) and (text is not None or name not in _OPTIONAL)]
        yield np.asarray(compute.is_in(table.column(name), arrow.array(invalid, arrow.string()))), f"an invalid {name}"
    for name in set(_COUNTS) & set(table.column_names):
        values = integers(table.column(name))
        yield values < 0, f"a negative {name}"
        if not name.endswith("_ns"):
            yield values > MOST_VALUES, f"too great a number in {name}"
    if "max_ns" in table.column_names and "count" in table.column_names:
        counted = integers(table.column("count")) > 0
        yield counted & np.asarray(table.column("max_ns").is_null()), "values but no max_ns"
    if "bucket_ns" in table.column_names:
        yield from _bucket_contradictions(table)


def _bucket_contradictions(table: arrow.Table) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Of columns without null: buckets must contain ``count`` values from ``min_ns`` to ``max_ns``."""
    lowest, counts = (table.column(name).combine_chunks() for name in ("bucket_ns", "bucket_count"))
    sizes = integers(lowest.value_lengths())
    yield sizes != integers(counts.value_lengths()), "buckets without counts"
    row = np.repeat(np.arange(sizes.size), sizes)
    edge, values = lowest.flatten(), counts.flatten()
    wrong = np.asarray(edge.is_null()) | np.asarray(values.is_null())
    edges, held = integers(edge), integers(values)
    least, greatest = (integers(table.column(name)) for name in ("min_ns", "max_ns"))
    wrong |= (held <= 0) | (held > MOST_VALUES) | (edges > greatest[row])
    total, top = np.zeros((2, sizes.size), dtype=np.int64)
    top -= np.iinfo(np.int64).max
    np.add.at(total, row, held)
    np.maximum.at(top, row, edges)
    yield np.bincount(row[wrong], minlength=sizes.size) > 0, "buckets without values, or above max_ns"
    yield total != integers(table.column("count")), "buckets that do not add up to count"
    # the highest bucket ends below twice its least value, whatever the width of buckets
    yield (sizes > 0) & (greatest // 2 > np.maximum(top, 0)), "a max_ns above its buckets"
    yield (sizes > 0) & (least > greatest), "a min_ns above max_ns"


@contextmanager
def _reading(location: str, paths: Sequence[str], table: ArchiveTable = INTERVALS) -> Iterator[Dataset]:
    """The rows of files; an error of the files is raised as FastenoughError."""
    try:
        data = FleetArchive(location).dataset(paths)
        version = (data.schema.metadata or {}).get(table.version_key.encode(), b"none").decode(errors="replace")
        if version != str(table.version):
            raise FastenoughError(
                f"archive {location}: the columns of {table.name} have version {version}, expected {table.version}"
            )
        for column in table.schema():
            place = data.schema.get_field_index(column.name)
            if place < 0 or data.schema.field(place).type != column.type:
                raise FastenoughError(f"archive {location}: {paths[0]} has no column {column.name} of {column.type}")
        yield data
    except (OSError, ValueError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise FastenoughError(
            f"archive {location}: {what}; if farm compact changed the archive meanwhile, run the command again"
        ) from None
