# SPDX-License-Identifier: GPL-2.0-or-later
"""The archive of a fleet: Parquet in Hive partitions, ``type=/month=/shard=``, which any engine can read.

A part holds what one transaction of a taker stored.  Its name follows from the shard's position in the stream, so that
a repetition after a failure replaces it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as arrow
from pyarrow import parquet

from fastenough.files import replacing

VERSION = 1
"""Of the columns; in each file's metadata as ``fastenough-archive``."""
_NAME = re.compile(r"(\d+)-(\d+)\.parquet")
_UNNAMED = "unknown"


@dataclass(frozen=True)
class ArchiveRow:
    """One interval of one CPU (-2: of no CPU), in the order of the columns.

    ``type``: of board, from its machine's description.  Times are of the board's wall clock, latencies of ``series``.
    ``bucket_ns``: the lowest value of each bucket that has values, ``bucket_count``: their number.  ``min_ns`` and
    ``max_ns`` are None where nothing was counted.
    """

    board: str
    run: str
    cpu: int
    interval: int
    begin_ns: int
    end_ns: int
    series: str
    count: int
    lost: int
    missed: int
    min_ns: int | None
    max_ns: int | None
    sum_ns: int
    bucket_ns: list[int]
    bucket_count: list[int]


@dataclass(frozen=True)
class PartPlace:
    """Where a shard's next part begins: how often its stream began anew, and the first message's sequence number."""

    shard: int
    epoch: int
    sequence: int


def _schema() -> arrow.Schema:
    integer, text = arrow.int64(), arrow.string()
    kinds = {
        "board": text,
        "run": text,
        "cpu": arrow.int16(),
        "series": text,
        "bucket_ns": arrow.list_(integer),
        "bucket_count": arrow.list_(integer),
    }
    names = ArchiveRow.__dataclass_fields__
    return arrow.schema(
        [(name, kinds.get(name, integer)) for name in names], metadata={"fastenough-archive": str(VERSION)}
    )


def _month(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns // 10**9, UTC).strftime("%Y-%m")


def safe_type(name: str) -> str:
    """A type of board as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or _UNNAMED


class FleetArchive:
    """A folder with the parts of all shards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, place: PartPlace, rows: Iterable[tuple[str, ArchiveRow]]) -> None:
        """The rows of one transaction, each with its type of board; what an earlier attempt left is replaced."""
        parts: dict[tuple[str, str], list[ArchiveRow]] = defaultdict(list)
        for kind, row in rows:
            parts[safe_type(kind), _month(row.begin_ns)].append(row)
        for (kind, month), those in parts.items():
            folder = self.folder / f"type={kind}" / f"month={month}" / f"shard={place.shard:x}"
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / f"{place.epoch:04}-{place.sequence:012}.parquet", those)

    def drop_from(self, place: PartPlace) -> None:
        """Remove parts of a shard from a position on: they belong to a transaction that failed."""
        for path in self.folder.glob(f"type=*/month=*/shard={place.shard:x}/*.parquet"):
            name = _NAME.fullmatch(path.name)
            if name and (int(name[1]), int(name[2])) >= (place.epoch, place.sequence):
                path.unlink(missing_ok=True)

    def count(self) -> int:
        """Rows in all parts."""
        return sum(parquet.read_metadata(path).num_rows for path in self.folder.glob("type=*/*/*/*.parquet"))


def _write(path: Path, rows: list[ArchiveRow]) -> None:
    table = arrow.Table.from_pylist([asdict(row) for row in rows], schema=_schema())
    with replacing(path) as stream:
        parquet.write_table(table, stream, compression="zstd", use_dictionary=["board", "run", "series"])
