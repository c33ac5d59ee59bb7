# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of single boards in the archive of a fleet, read in groups of boards that fit into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as arrow
from pyarrow import compute
from pyarrow.dataset import Dataset, field

from fastenough.fleet.archive import VERSION, VERSION_KEY, FleetArchive, safe_type
from fastenough.model import BadInput, FastenoughError

KEY = ("board", "run", "cpu", "interval")
"""Columns of the key, which each job gets."""
_ROWS_AT_ONCE = 200_000
"""Rows of a group of boards, unless a single board has more."""


@dataclass(frozen=True)
class BoardRows:
    """The intervals of a board, in the order of run, CPU and number.  ``type``: that of its newest month."""

    board: str
    type: str
    rows: arrow.Table


@dataclass(frozen=True)
class ShardFiles:
    """The files of a shard, each with type and month, in the order of month and type."""

    archive: str
    files: tuple[tuple[str, str, str], ...]

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
    files = archive.readable()
    for partition, path in files:
        if kind is None or partition.type == safe_type(kind):
            shards.setdefault(partition.shard, []).append((partition.month, partition.type, path))
    if not shards:
        types = ", ".join(sorted({partition.type for partition, _ in files}))
        what = (
            f"no boards of the type {kind}; it has {types}"
            if files
            else "no files of an archive; farm take writes them"
        )
        raise BadInput(f"archive {location}: {what}")
    return [ShardFiles(location, tuple(sorted(shards[shard]))) for shard in sorted(shards)]


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
    yield from counts.items()


def _counts_of(boards: arrow.Array | arrow.ChunkedArray) -> dict[str, int]:
    return {entry["values"]: entry["counts"] for entry in compute.value_counts(boards).to_pylist()}


def rows_of(files: ShardFiles, group: BoardGroup, columns: Iterable[str]) -> Iterator[BoardRows]:
    """The rows of each board of a group in the files of its shard: the key and these columns.

    Raises FastenoughError if an interval is in the archive twice, or if a file cannot be read.
    """
    names = [board for board, _ in group]
    wanted = list(dict.fromkeys((*KEY, *columns)))
    with _reading(files.archive, files.paths) as data:
        table = data.to_table(wanted, filter=field("board").isin(names))
    table = table.sort_by([(name, "ascending") for name in KEY])
    _require_each_once(table)
    counts = _counts_of(table.column("board"))
    begin = 0
    for board, kind in group:
        yield BoardRows(board, kind, table.slice(begin, counts[board]))
        begin += counts[board]


def _require_each_once(table: arrow.Table) -> None:
    if table.num_rows < 2:
        return
    same = [compute.equal(table.column(name)[1:], table.column(name)[:-1]) for name in KEY]
    repeated = compute.and_(compute.and_(same[0], same[1]), compute.and_(same[2], same[3]))
    place = compute.index(repeated, True).as_py()
    if place >= 0:
        board, run, cpu, interval = (table.column(name)[place].as_py() for name in KEY)
        raise FastenoughError(
            f"the archive contains interval {interval} of CPU {cpu} of run {run} of board {board} twice; remove the "
            "file that repeats intervals of another one"
        )


@contextmanager
def _reading(location: str, paths: Sequence[str]) -> Iterator[Dataset]:
    """The rows of files; an error of the files is raised as FastenoughError."""
    try:
        data = FleetArchive(location).dataset(paths)
        version = (data.schema.metadata or {}).get(VERSION_KEY.encode(), b"none").decode()
        if version != str(VERSION):
            raise FastenoughError(f"archive {location}: its columns have version {version}, expected {VERSION}")
        yield data
    except (OSError, ValueError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0][:300]
        raise FastenoughError(
            f"archive {location}: {what}; if farm compact changed the archive meanwhile, run the command again"
        ) from None
