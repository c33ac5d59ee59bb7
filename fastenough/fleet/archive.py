# SPDX-License-Identifier: GPL-2.0-or-later
"""The archive of a fleet: Parquet in Hive partitions, ``type=/month=/shard=``, which any engine can read.

It has two tables: intervals, and the events of these intervals with their causes.  A part is the file of one
transaction of a taker.  Its name is the shard's position in the stream, so that a repetition after a failure replaces
it.  The parts of a closed month are merged into one file (compaction.py)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as arrow
from pyarrow import parquet
from pyarrow.dataset import Dataset, dataset
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from fastenough.files import replacing, sync_directory
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.wakeups import MONITOR

VERSION = 1
"""Version of the columns, in each file's metadata as ``fastenough-archive``."""
EVENTS_VERSION = 1
"""The same of events, as ``fastenough-archive-events``."""
VERSION_KEY = "fastenough-archive"
_NAME = re.compile(r"(\d+)-(\d+)(\.[a-z]+)", re.ASCII)
_PARTITION = re.compile(r"(_events/)?type=([^/]+)/month=(\d{4}-\d\d)/shard=([0-9a-f])", re.ASCII)
_ONE_OF_SEVERAL = re.compile(r" \(1 of \d{1,9}\)\Z", re.ASCII)
MOST_NAME = 200
"""Maximum length of a name or cause, in characters."""
_HIDDEN = "_"
UNFINISHED = (_HIDDEN, ".unfinished")
"""Begin and end of the name that a merged file has until its parts are removed."""
PARTS_KEY = "fastenough-parts"
"""Metadata of a merged file: the names of its parts, in JSON."""
_MERGED = re.compile(r"/_?closed-[^/]*\Z")
_MOST_LISTINGS = 10
_UNNAMED = "unknown"


@dataclass(frozen=True)
class ArchiveRow:
    """One interval of one CPU (-2: of no CPU), in the order of the columns.

    Times are those of the board's wall clock, latencies those of ``series``.  ``bucket_ns``: the lowest value of each
    non-empty bucket; ``bucket_count``: the number of its values.  ``min_ns`` and ``max_ns`` are None if nothing was
    counted.
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


def archived_name(name: str, several: int) -> str:
    """Name in the archive of the main one of ``several`` series of a CPU."""
    return archived_text(name if several == 1 else f"{name} (1 of {several})")


def archived_text(text: str) -> str:
    """The text as a name of at most `MOST_NAME` characters that can be printed in one line.

    Any process can put other characters into its name.  The number of series at the end stays.
    """
    found = _ONE_OF_SEVERAL.search(text)
    number = found.group() if found else ""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in text.removesuffix(number))
    return plain[: MOST_NAME - len(number)] + number


def series_of(name: str) -> str:
    """The series of an archived name, without the number of series: takers of earlier versions did not state it."""
    return _ONE_OF_SEVERAL.sub("", name)


def is_one_of_several(name: str) -> bool:
    """Whether a CPU had more series than the archived one.

    Rows of older takers name the first station of a monitor and do not say so.
    """
    return bool(_ONE_OF_SEVERAL.search(name)) or name.startswith(f"{MONITOR}/")


@dataclass(frozen=True)
class EventRow:
    """A new maximum or a value above the threshold, in the order of the columns.

    ``interval``: the one that follows the event in the recording.  ``number``: among the events of this interval, in
    the order of time.  ``at_ns``: by the board's wall clock; ``mono_ns``: by its CLOCK_MONOTONIC.  ``latency_ns``: of a
    wake-up, the sum of its stations, if known.  ``station``: the longest one.  ``task``: the late one.  ``cause``: None
    if unknown.  ``threshold_ns``: values above it are recorded; None: new maxima only.  ``culprit``: that of the
    recording, in JSON.
    """

    board: str
    run: str
    cpu: int
    interval: int
    number: int
    at_ns: int
    mono_ns: int
    series: str
    latency_ns: int
    station: str | None
    task: str | None
    cause: str | None
    threshold_ns: int | None
    culprit: str | None


@dataclass(frozen=True)
class ArchiveTable:
    """A table of the archive.

    ``folder``: below that of the archive, ending with a slash; empty: the archive's own.  ``suffix``: of its files;
    only those of intervals end with ``.parquet``, so that a reader of all such files gets one table.  ``key``: columns
    that identify a row.  ``version``: of its columns, in each file's metadata as ``version_key``.
    """

    name: str
    folder: str
    suffix: str
    key: tuple[str, ...]
    version_key: str
    version: int
    row: type[ArchiveRow] | type[EventRow]

    def schema(self) -> arrow.Schema:
        """The columns of each file, with their version."""
        names = self.row.__dataclass_fields__
        fields = [(name, _KINDS.get(name, arrow.int64())) for name in names]
        return arrow.schema(fields, metadata={self.version_key: str(self.version)})

    def table_of(self, rows: Iterable[ArchiveRow | EventRow]) -> arrow.Table:
        """The columns of rows."""
        return arrow.Table.from_pylist([vars(row) for row in rows], schema=self.schema())


_KINDS = {
    **{name: arrow.string() for name in ("board", "run", "series", "station", "task", "cause", "culprit")},
    **{name: arrow.list_(arrow.int64()) for name in ("bucket_ns", "bucket_count")},
    "cpu": arrow.int16(),
}
"""Types of columns that are not integers of 64 bits."""
_REPEATED = frozenset(("board", "run", "series", "station", "task", "cause"))
"""Columns with few different values."""
INTERVALS = ArchiveTable(
    "intervals", "", ".parquet", ("board", "run", "cpu", "interval"), VERSION_KEY, VERSION, ArchiveRow
)
EVENTS = ArchiveTable(
    "events",
    "_events/",
    ".events",
    ("board", "run", "cpu", "interval", "number"),
    f"{VERSION_KEY}-events",
    EVENTS_VERSION,
    EventRow,
)
TABLES = (INTERVALS, EVENTS)


@dataclass(frozen=True, order=True)
class PartPlace:
    """Position in the stream of a shard: ``epoch`` (how often the stream began anew) and number of a message."""

    shard: int
    epoch: int
    sequence: int


def month_of(wall_s: float) -> str:
    """The month of an instant, as in ``2026-11``."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m")


def safe_type(name: str) -> str:
    """The type of a board as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or _UNNAMED


@dataclass(frozen=True)
class Partition:
    """One folder of a table of the archive."""

    type: str
    month: str
    shard: int
    table: ArchiveTable = INTERVALS

    @property
    def folder(self) -> str:
        return f"{self.table.folder}type={self.type}/month={self.month}/shard={self.shard:x}"


class FleetArchive:
    """The parts of all shards below a local directory or in an object store.

    ``location``: a path, or a URL such as ``s3://BUCKET/FOLDER?region=REGION``.  Paths of files are relative to it.
    Methods raise OSError if the files cannot be used.
    """

    def __init__(self, location: str) -> None:
        """Raises BadInput for a URL that is not usable, or names no bucket or folder."""
        self.location = location
        if "://" not in location:
            self._files, self._root = LocalFileSystem(), str(Path(location).absolute())
            return
        try:
            self._files, self._root = FileSystem.from_uri(location)
        except (OSError, ValueError) as error:
            raise BadInput(f"archive {location}: {error}; write a path, or a URL such as s3://BUCKET/FOLDER") from error
        if not self._root.strip("/"):
            raise BadInput(f"archive {location}: names no bucket or folder; write it as s3://BUCKET/FOLDER")

    def write(
        self,
        place: PartPlace,
        rows: Iterable[tuple[str, ArchiveRow]],
        events: Iterable[tuple[str, EventRow]] = (),
    ) -> None:
        """Write the rows of one transaction, each with its type of board; replace the files of an earlier attempt."""
        parts: dict[Partition, list[ArchiveRow | EventRow]] = defaultdict(list)
        for kind, row in rows:
            parts[Partition(safe_type(kind), month_of(row.begin_ns // 10**9), place.shard)].append(row)
        for kind, event in events:
            parts[Partition(safe_type(kind), month_of(event.at_ns // 10**9), place.shard, EVENTS)].append(event)
        for partition, those in parts.items():
            table = partition.table.table_of(those)
            held = arrow.BufferOutputStream()
            repeated = [name for name in table.column_names if name in _REPEATED]
            parquet.write_table(table, held, compression="zstd", use_dictionary=repeated)
            name = f"{place.epoch:04}-{place.sequence:012}{partition.table.suffix}"
            self.put(f"{partition.folder}/{name}", (held.getvalue(),))

    def put(self, path: str, blocks: Iterable[bytes | arrow.Buffer]) -> None:
        """Write or replace a file: completely or not at all.  A large one in an object store may be incomplete."""
        full = f"{self._root}/{path}"
        if isinstance(self._files, LocalFileSystem):
            folder = Path(full).parent
            new = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for place in new:
                sync_directory(place.parent)
            with replacing(Path(full)) as stream:
                stream.writelines(blocks)
            return
        with self._files.open_output_stream(full) as stream:
            for block in blocks:
                stream.write(block)

    def drop_from(self, place: PartPlace) -> None:
        """Remove the parts of a shard from a position on, which are those of failed transactions.

        Lists the names of types and months, and the files of this shard only: takers call it at each start.
        """
        for path, _ in self.parts_from(place):
            self.remove(path)

    def parts_from(self, place: PartPlace) -> list[tuple[str, PartPlace]]:
        """The parts of a shard from a position on, with their positions."""
        files = self._files_of(place.shard)
        places = ((f"{partition.folder}/{name}", part_place(partition, name)) for partition, name in files)
        return [(path, part) for path, part in places if part is not None and part >= place]

    def has_files(self, shard: int) -> bool:
        """Whether a shard has files of any name, so that something was stored."""
        return bool(self._files_of(shard))

    def _files_of(self, shard: int) -> list[tuple[Partition, str]]:
        return [(partition, name) for partition in self._partitions_of(shard) for name in self.names(partition)]

    def _partitions_of(self, shard: int) -> list[Partition]:
        """The partitions of a shard that may exist: of every table, type and month."""
        tables = [table.folder.rstrip("/") for table in TABLES]
        months = [month for table in tables for kind in self._folders(table) for month in self._folders(kind)]
        named = (_partition_of(f"{month}/shard={shard:x}") for month in months)
        return [partition for partition in named if partition is not None]

    def partitions(self) -> list[Partition]:
        """All partitions that have files, in order."""
        folders = sorted({path.rpartition("/")[0] for path in self._paths("")})
        return [partition for partition in map(_partition_of, folders) if partition is not None]

    def readable(self) -> list[tuple[Partition, str]]:
        """The files of all tables that readers see, each with its partition.

        A complete merged file takes the place of its parts even before it has its name: some of them may be removed.
        Raises FastenoughError if it is removed meanwhile.
        """
        paths = self._consistent_paths()
        merged = {path: parts for path in paths if _is_unfinished(path) and (parts := self._parts_of(path)) is not None}
        replaced = {part for parts in merged.values() for part in parts}
        files = ((_partition_of(path.rpartition("/")[0]), path) for path in sorted(paths - replaced))
        return [
            (partition, path)
            for partition, path in files
            if partition is not None
            and (
                path in merged
                or (path.endswith(partition.table.suffix) and not path.rpartition("/")[2].startswith(_HIDDEN))
            )
        ]

    def _consistent_paths(self) -> set[str]:
        """Paths of all files.  No merged file is new in the next listing, which shows that this one has all parts."""
        paths = set(self._paths(""))
        for _ in range(_MOST_LISTINGS):
            later = set(self._paths(""))
            if set(filter(_MERGED.search, paths)) == set(filter(_MERGED.search, later)):
                return paths
            paths = later
        raise FastenoughError(f"archive {self.location}: farm compact is running; run the command again later")

    def _parts_of(self, path: str) -> list[str] | None:
        """Paths of the parts of an unfinished merged file; None if it is incomplete."""
        try:
            names = self.merged_parts(path)
        except FileNotFoundError:
            raise FastenoughError(
                f"archive {self.location}: farm compact changed it meanwhile; run the command again"
            ) from None
        return None if names is None else [f"{path.rpartition('/')[0]}/{name}" for name in names]

    def merged_parts(self, path: str) -> list[str] | None:
        """Names of the parts of an unfinished merged file; None if it is incomplete."""
        try:
            held = self.metadata(path).metadata or {}
        except ValueError:
            return None
        if PARTS_KEY.encode() not in held:
            raise FastenoughError(f"archive {self.location}: {path} is no file of fastenough; move it elsewhere")
        names: list[str] = json.loads(held[PARTS_KEY.encode()])
        return names

    def names(self, partition: Partition) -> list[str]:
        """Names of the files of a partition, in order."""
        return sorted(path.rpartition("/")[2] for path in self._paths(partition.folder))

    def metadata(self, path: str) -> parquet.FileMetaData:
        """Metadata of a file; raises ValueError if it is not a complete Parquet file."""
        with self._files.open_input_file(f"{self._root}/{path}") as stream:
            return parquet.read_metadata(stream)

    def dataset(self, paths: Sequence[str]) -> Dataset:
        """The rows of these files, without the columns that are in the names of folders."""
        return dataset([f"{self._root}/{path}" for path in paths], format="parquet", filesystem=self._files)

    def remove(self, path: str) -> None:
        """Remove a file that may be gone already."""
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{path}")

    def move(self, path: str, goal: str) -> None:
        """Give a file another name."""
        self._files.move(f"{self._root}/{path}", f"{self._root}/{goal}")

    def hide(self, path: str) -> None:
        """Give a file a name that merges and readers of Parquet files skip."""
        folder, _, name = path.rpartition("/")
        self.move(path, f"{folder}/{_HIDDEN}{name}.unused")

    def count(self) -> int:
        """Number of intervals in all files that readers see."""
        return sum(self.metadata(path).num_rows for path in self._paths("") if path.endswith(INTERVALS.suffix))

    def _paths(self, folder: str) -> list[str]:
        return self._listed(folder, FileType.File, recursive=True)

    def _folders(self, folder: str) -> list[str]:
        folders = self._listed(folder, FileType.Directory, recursive=False)
        return [path for path in folders if not path.rpartition("/")[2].startswith(_HIDDEN)]

    def _listed(self, folder: str, kind: FileType, *, recursive: bool) -> list[str]:
        """Paths of one kind below a folder, which may be missing."""
        base = f"{self._root}/{folder}".rstrip("/")
        files = self._files.get_file_info(FileSelector(base, allow_not_found=True, recursive=recursive))
        return [file.path[len(self._root) + 1 :] for file in files if file.type == kind]


def _partition_of(folder: str) -> Partition | None:
    match = _PARTITION.fullmatch(folder)
    if match is None:
        return None
    return Partition(match[2], match[3], int(match[4], 16), EVENTS if match[1] else INTERVALS)


def _is_unfinished(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(UNFINISHED[0]) and name.endswith(UNFINISHED[1])


def part_place(partition: Partition, name: str) -> PartPlace | None:
    """Position of the first message of a part, from its file name; None for any other file."""
    match = _NAME.fullmatch(name)
    if match is None or match[3] != partition.table.suffix:
        return None
    return PartPlace(partition.shard, int(match[1]), int(match[2]))
