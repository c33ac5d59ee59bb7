# SPDX-License-Identifier: GPL-2.0-or-later
"""Sealed columns: totals and intervals of a recording as Parquet files beside it (docs/format.md).

They are derived from the recording and used in its place only if they match it: ``columns.json``,
written last, has the hash of the recording's content, of the file that holds it, and of the column files, and all are
checked.  Columns that do not match are ignored and recreated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import pyarrow as pa

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError, Series
from fastenough.recording import interval_rows, parquet, totals
from fastenough.recording.aggregate import Aggregate
from fastenough.recording.interval import Interval
from fastenough.recording.interval_rows import Batching, timeline_of
from fastenough.recording.lines import JsonLine
from fastenough.recording.reader import Reading
from fastenough.recording.timeline import Timeline

MANIFEST_FILE = "columns.json"
TOTALS_FILE = "totals.parquet"
INTERVALS_FILE = "intervals.parquet"
FILES = (MANIFEST_FILE, TOTALS_FILE, INTERVALS_FILE)
_VERSION = 2
_MOST_MANIFEST = 4096
_LEAST_BUCKET_BYTES = 5
"""Minimum size of a bucket as text, so that the size of a recording bounds its columns."""
_ALWAYS_VALUES = 1 << 16


def _sha256(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


class ColumnsNotStored(FastenoughError):
    """The columns of a recording cannot be stored beside it; the recording remains readable."""


@dataclass(frozen=True)
class SealedRecording:
    """A sealed recording in a folder: its file, and the hash and the size of its content (None: not known)."""

    folder: Folder
    file: str
    sha256: str
    bytes: int | None

    def manifest(self, recording_file: str, totals_file: str, intervals_file: str) -> dict[str, str | int]:
        return {
            "format": "fastenough-columns",
            "version": _VERSION,
            "recording_sha256": self.sha256,
            "recording_file_sha256": recording_file,
            "totals_sha256": totals_file,
            "intervals_sha256": intervals_file,
        }

    @property
    def most_values(self) -> int:
        """Maximum number of values of a column for a recording of this size."""
        size = self.bytes if self.bytes is not None else self.folder.status(self.file).st_size * 256
        return _ALWAYS_VALUES + size // _LEAST_BUCKET_BYTES

    def file_sha256(self, name: str) -> str:
        with self.folder.open_file(name) as stream:
            return _sha256(stream)


@dataclass(frozen=True)
class Columns:
    """The content of verified columns."""

    head: JsonLine
    end: JsonLine | None
    aggregate: Aggregate
    intervals_sha256: str


def _most_bytes(source: SealedRecording) -> int:
    return (1 << 20) + 16 * source.most_values


def stored_columns(source: SealedRecording) -> Columns | None:
    """The columns beside a recording, None if there are none that match it.

    Columns in a folder of another user (except root) are ignored: that user could have changed them.
    """
    if source.folder.owner not in (0, os.geteuid()):
        return None
    try:
        manifest = json.loads(source.folder.read(MANIFEST_FILE, _MOST_MANIFEST))
        content = source.folder.read(TOTALS_FILE, _most_bytes(source))
        intervals_sha256 = source.file_sha256(INTERVALS_FILE)
        if manifest != source.manifest(
            source.file_sha256(source.file), hashlib.sha256(content).hexdigest(), intervals_sha256
        ):
            return None
        beside, added = totals.read(content, TOTALS_FILE, source.sha256, source.most_values)
        return Columns(beside["head"], beside["end"], added, intervals_sha256)
    except (OSError, Untrusted, BadInput, ValueError, RecursionError):
        return None


@contextmanager
def _exclusive(folder: Folder) -> Iterator[bool]:
    """Whether no other process creates columns in this folder; leftovers of killed ones are removed."""
    with folder.locked() as acquired:
        if acquired:
            folder.remove_unfinished(FILES)
        yield acquired


@contextmanager
def _storage_errors(folder: Folder) -> Iterator[None]:
    """Convert errors of storing columns into ColumnsNotStored: they are no fault of the recording."""
    try:
        yield
    except (pa.ArrowException, OverflowError, Untrusted) as error:
        raise ColumnsNotStored(f"{folder.path}: cannot store columns there: {str(error)[:200]}") from error


def make(source: SealedRecording) -> None:
    """Create the columns of a recording in one pass over its text; memory does not grow with its intervals.

    Does nothing if another process creates them.  Raises BadInput for an invalid recording, ColumnsNotStored
    or OSError if they cannot be written; the recording is only read.
    """
    folder = source.folder
    with _exclusive(folder) as acquired, folder.open_file(source.file) as stream, _storage_errors(folder):
        if not acquired:
            return
        recording_file = _sha256(stream)
        stream.seek(0)
        reading = Reading(stream, source.file, source.sha256)
        with folder.replacing(INTERVALS_FILE, 0o444) as target, parquet.writer(target, interval_rows.SCHEMA) as writer:
            for batch in rows_of(reading):
                writer.write_batch(batch)
        recording = reading.recording()
        folder.replace(
            TOTALS_FILE,
            totals.file_bytes(
                source.sha256, reading.head_line, reading.end_line, recording.series, recording.aggregate
            ),
            0o444,
        )
        manifest = source.manifest(recording_file, source.file_sha256(TOTALS_FILE), source.file_sha256(INTERVALS_FILE))
        folder.replace(MANIFEST_FILE, json.dumps(manifest, indent=1).encode() + b"\n", 0o444)


def rows_of(reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows of a recording, read to its end."""
    batching = Batching(reading.series)
    for part in reading:
        if isinstance(part, Interval):
            yield from batching.add(part)
    yield from batching.remainder()


def stored_rows(source: SealedRecording, sha256: str) -> Iterator[pa.RecordBatch]:
    """The rows in the columns, batch by batch as they were written; ``sha256`` is that of the file.

    Raises BadInput, Untrusted or OSError.
    """
    content = source.folder.read(INTERVALS_FILE, _most_bytes(source))
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BadInput(f"{INTERVALS_FILE}: changed while it was read")
    file = parquet.open_file(content, INTERVALS_FILE, interval_rows.SCHEMA, source.most_values)
    for rows in parquet.groups(file, INTERVALS_FILE):
        yield from rows.combine_chunks().to_batches()


def timeline(source: SealedRecording, sha256: str, series: tuple[Series, ...]) -> Timeline:
    """The recording over time, as `stored_rows` has it; raises BadInput, Untrusted or OSError."""
    try:
        return timeline_of(stored_rows(source, sha256), series)
    except (pa.ArrowException, ValueError, IndexError) as error:
        raise BadInput(f"{INTERVALS_FILE}: not valid columns: {str(error)[:200]}") from error


def differ(source: SealedRecording, columns: Columns) -> bool:
    """Whether verified columns contradict the recording; raises BadInput or OSError."""
    with source.folder.open_file(source.file) as stream:
        reading = Reading(stream, source.file, source.sha256)
        stored = stored_rows(source, columns.intervals_sha256)
        try:
            rows_agree = (
                all(batch.equals(next(stored, None)) for batch in rows_of(reading)) and next(stored, None) is None
            )
        except BadInput:
            return True
    recording = reading.recording()
    return (
        not rows_agree
        or (columns.head, columns.end) != (reading.head_line, reading.end_line)
        or (_plain(columns.aggregate) != _plain(recording.aggregate))
    )


def _plain(added: Aggregate) -> Any:
    """The sums as comparable values."""
    return (
        replace(added, totals={}, rises={}),
        {number: rises.entries() for number, rises in added.rises.items()},
        {
            number: (
                total.k,
                total.index.tolist(),
                total.count.tolist(),
                total.minimum,
                total.maximum,
                total.sum,
                total.sum_sq,
                total.wide,
            )
            for number, total in added.totals.items()
        },
    )
