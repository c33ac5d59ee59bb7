# SPDX-License-Identifier: GPL-2.0-or-later
"""Compaction of a fleet's archive: merge the parts of a closed month and shard into one file, sorted by board.

Readers never see an interval twice: the file is written under a name that they skip, then its parts are removed, then
it gets its name.  In the meantime other readers miss intervals of the month and shard; object stores allow no better
order.  The commands of fastenough read the merged file instead.  A killed process leaves a file that lists its parts,
and the next call completes its work.

Takers continue meanwhile: they never change a part up to their committed position, and only such parts are merged.  One
process merges at a time, by a lock that no taker takes."""

from __future__ import annotations

import fcntl
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
from sqlalchemy import Connection, text

from fastenough.fleet.archive import (
    PARTS_KEY,
    UNFINISHED,
    FleetArchive,
    Partition,
    PartPlace,
    month_of,
    part_place,
)
from fastenough.fleet.tables import stored_position
from fastenough.history import History
from fastenough.history.rollups import DAY_S
from fastenough.model import BadInput, FastenoughError

_CLOSED_AFTER_S = 2 * DAY_S
_NAME = re.compile(r"closed-(\d{4,})(\.[a-z]+)", re.ASCII)
_BLOCK = 1 << 20
_MEMORY = "1GB"


@dataclass(frozen=True)
class CompactedPartition:
    """Result for a month of one table, type and shard: ``files`` files were merged into one of ``rows`` rows."""

    table: str
    type: str
    month: str
    shard: int
    files: int
    rows: int


def is_closed(month: str, now_s: float) -> bool:
    """Whether a month, as in ``2026-11``, ended two days ago or earlier."""
    return month < month_of(now_s - _CLOSED_AFTER_S)


def closed_partitions(archive: FleetArchive, now_s: float) -> list[Partition]:
    """Partitions whose month is closed."""
    return [partition for partition in archive.partitions() if is_closed(partition.month, now_s)]


def compact(archive: FleetArchive, history: History, partition: Partition) -> CompactedPartition | None:
    """Merge the files of a closed month and shard; None if there is nothing to merge.

    Raises FastenoughError, and removes nothing, if rows would be lost, if the files contain a row twice or if one is
    damaged; BadInput if the archive is that of another database.
    """
    with _turn(history) as locked:
        with history.reading() as connection:
            stored = stored_position(connection, partition.shard)
        if stored is None:
            raise BadInput(
                f"archive {archive.location}: it has files of shard {partition.shard:x}, but the database has no "
                "position of this shard; pass --database of this archive"
            )
        return _merged(archive, partition, PartPlace(partition.shard, stored.epoch, stored.sequence), locked)


@contextmanager
def _turn(history: History) -> Iterator[Connection]:
    """Wait until no other process merges.  The lock ends with this process, or with the connection that holds it."""
    if history.engine.dialect.name == "postgresql":
        with history.reading() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(7702, 0)"))
            yield connection
        return
    with Path(f"{history.engine.url.database}-compaction").open("ab") as turn, history.reading() as connection:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield connection


def _merged(
    archive: FleetArchive, partition: Partition, position: PartPlace, locked: Connection
) -> CompactedPartition | None:
    _end_unfinished(archive, partition)
    names = archive.names(partition)
    parts = [name for name in names if _is_stored(partition, name, position)]
    if len(parts) < 2:
        return None
    number = 1 + max((_merge_number(partition, name) or 0 for name in names), default=0)
    goal = f"closed-{number:04}{partition.table.suffix}"
    with tempfile.TemporaryDirectory() as scratch:
        merged = Path(scratch) / "merged.parquet"
        try:
            rows = _merge(archive, partition, parts, merged)
        except (ValueError, duckdb.Error) as error:  # of pyarrow and DuckDB; some have several lines
            reason = str(error).partition("\n")[0][:200]
            raise FastenoughError(f"{partition.folder}: not merged, nothing was changed: {reason}") from error
        locked.execute(text("SELECT 1"))  # fails if the lock was lost with its connection
        with merged.open("rb") as stream:
            blocks = iter(lambda: stream.read(_BLOCK), b"")
            archive.put(f"{partition.folder}/{UNFINISHED[0]}{goal}{UNFINISHED[1]}", blocks)
    _end_unfinished(archive, partition)
    return CompactedPartition(partition.table.name, partition.type, partition.month, partition.shard, len(parts), rows)


def _merge_number(partition: Partition, name: str) -> int | None:
    """Number of a merged file, from its name; None for any other file."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and match[2] == partition.table.suffix else None


def _is_stored(partition: Partition, name: str, position: PartPlace) -> bool:
    """Whether a file is committed; a part ahead of the position belongs to a transaction that may fail."""
    place = part_place(partition, name)
    return _merge_number(partition, name) is not None if place is None else place <= position


def _merge(archive: FleetArchive, partition: Partition, parts: Sequence[str], goal: Path) -> int:
    paths = [f"{partition.folder}/{name}" for name in parts]
    expected = sum(archive.metadata(path).num_rows for path in paths)
    table, key = partition.table, ", ".join(partition.table.key)
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(goal.parent)}) as engine:
        engine.register("parts", archive.dataset(paths))
        engine.execute(
            f"COPY (SELECT * FROM parts ORDER BY {key}) TO '{goal}' (FORMAT parquet, COMPRESSION zstd, KV_METADATA "
            f"{{'{table.version_key}': '{table.version}', '{PARTS_KEY}': '{json.dumps(parts)}'}})"
        )
        engine.execute(f"SELECT count(*), count(DISTINCT ({key})) FROM '{goal}'")
        rows, different = engine.fetchone() or (0, 0)
    if not rows == different == expected:
        raise FastenoughError(
            f"{partition.folder}: {len(parts)} files hold {expected} rows, but only {different} different "
            f"{table.name}; nothing was changed; remove the file that repeats {table.name} of another one"
        )
    return int(rows)


def _end_unfinished(archive: FleetArchive, partition: Partition) -> None:
    """Remove the parts of each merged file, then give it its name; remove a merged file that is incomplete."""
    for name in archive.names(partition):
        if name.startswith(UNFINISHED[0]) and name.endswith(UNFINISHED[1]):
            path = f"{partition.folder}/{name}"
            parts = archive.merged_parts(path)
            if parts is None:
                archive.remove(path)
                continue
            for part in parts:
                archive.remove(f"{partition.folder}/{part}")
            archive.move(path, f"{partition.folder}/{name[len(UNFINISHED[0]) : -len(UNFINISHED[1])]}")
