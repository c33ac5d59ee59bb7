# SPDX-License-Identifier: GPL-2.0-or-later
"""One directory per run: written line by line while it runs, sealed when it ends, never changed after that.

While running: ``run.json`` (state running) and ``recording.jsonl``, locked by its writer.  Sealed: ``run.json``
(state ended or cut-off, SHA-256 of the uncompressed recording) and ``recording.jsonl.zst``.  Every file is written
beside its place, synced and renamed, so that a reader finds the old or the new one and never half of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import zstandard

from fastenough.files import write_all
from fastenough.folder import Folder
from fastenough.model import IMPORTED, BadInput, FastenoughError
from fastenough.recording.lines import MOST_END_BYTES, MOST_LINE_BYTES, Content, content_of
from fastenough.store.summary import MOST_SUMMARY_BYTES, RunSummary, damaged, parse_summary, summary_entry

if TYPE_CHECKING:
    from fastenough.recording import End, Head

RUN_FILE = "run.json"
LIVE_FILE = "recording.jsonl"
SEALED_FILE = "recording.jsonl.zst"
_SYNC_EVERY_S = 60.0
"""Maximum loss at a power failure; more frequent syncs would disturb the measurement by disk writes."""
_CHUNK = 1 << 20
_MOST_ATTACHED = 1 << 25
"""Maximum size of an attached file in bytes, compressed or not."""
_RECORDED = (
    *("state", "outcome", "reason", "board", "configuration", "probe", "implementation", "load"),
    *("begin_wall_ns", "duration_ns", "samples", "worst_ns"),
)
"""Fields of a summary that the recording determines."""
_IMPORTED_ANEW = ("samples", "worst_ns")
"""Fields that earlier versions took from another series of an import; those of the recording count."""


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert errors of the operating system into a one-line FastenoughError."""
    try:
        yield
    except OSError as error:
        raise FastenoughError(f"{path}: {error.strerror}; the data recorded so far is safe") from error


def _write_summary(folder: Folder, summary: RunSummary, mode: int) -> None:
    folder.replace(RUN_FILE, json.dumps(summary_entry(summary), indent=1).encode() + b"\n", mode)


class RunWriter:
    """Writer of a run.  Each line is one write to the operating system: kill -9 truncates at most one."""

    def __init__(self, runs: Folder, summary: RunSummary) -> None:
        self.id = summary.id
        self.path = runs.path / summary.id
        self._runs = runs
        self._summary = summary
        with storage_errors(self.path):
            self._folder = runs.make_new(summary.id)
            try:
                self._file = self._folder.create(LIVE_FILE)
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _write_summary(self._folder, summary, 0o644)
            except BaseException:
                runs.remove_tree(summary.id)
                raise
            runs.sync()
        self._size = 0
        self._synced_mono_s = time.monotonic()

    def line(self, raw: bytes) -> None:
        """Append one whole line; raises FastenoughError if the disk is full, after removing the partial line."""
        with storage_errors(self.path / LIVE_FILE):
            try:
                write_all(self._file, raw)
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
            self._size += len(raw)
            if self._size == len(raw) or time.monotonic() - self._synced_mono_s > _SYNC_EVERY_S:
                os.fdatasync(self._file)
                self._synced_mono_s = time.monotonic()

    def attach(self, name: str, content: bytes) -> None:
        """Attach a file to the run, compressed and listed with its hash."""
        packed = zstandard.ZstdCompressor(level=9).compress(content)
        listed = f"{hashlib.sha256(packed).hexdigest()} {name}"
        with storage_errors(self.path / name):
            self._folder.replace(name, packed, 0o444)
            self._summary = replace(self._summary, files=(*(self._summary.files or ()), listed))
            _write_summary(self._folder, self._summary, 0o644)

    def end(self) -> RunSummary:
        """Seal the run and release the lock."""
        with storage_errors(self.path / LIVE_FILE):
            os.fsync(self._file)
        try:
            return seal(self._folder, self._summary)
        finally:
            self.close()

    def discard(self) -> None:
        """Remove a run of which nothing was recorded."""
        self.close()
        self._runs.remove_tree(self.id)

    def close(self) -> None:
        """Release the lock without sealing: the run then counts as cut off."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def seal(folder: Folder, summary: RunSummary) -> RunSummary:
    """Compress, hash, summarize and make immutable; the caller holds the lock or knows that it is free."""
    digest = hashlib.sha256()
    with storage_errors(folder.path / SEALED_FILE), folder.open_file(LIVE_FILE) as source:
        described = _described(*_first_and_last(source), summary)
        source.seek(0)
        with (
            folder.replacing(SEALED_FILE, 0o444) as target,
            zstandard.ZstdCompressor(level=9).stream_writer(target, closefd=False) as compressor,
        ):
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                compressor.write(chunk)
        ended = replace(described, sha256=digest.hexdigest(), bytes=source.tell())
        _write_summary(folder, ended, 0o444)
        folder.remove(LIVE_FILE)
        folder.sync()
    return ended


def _described(first: bytes, last: bytes, summary: RunSummary) -> RunSummary:
    """Complete a summary from the first and the last whole line of a recording."""
    try:
        if not first:
            return replace(summary, state="cut-off")
        reader = import_module("fastenough.recording.reader")  # which loads numpy, of no use to who lists runs
        head, end = reader.ends_of(first, last, LIVE_FILE)
        return _describe(summary, head, end)
    except BadInput:
        return replace(summary, state="damaged", reason="its first or last line is not a line of a recording")


def _describe(summary: RunSummary, head: Head, end: End | None) -> RunSummary:
    """Raises BadInput for times out of range."""
    known = replace(
        summary,
        state="cut-off",
        board=head.board,
        probe=head.probe,
        implementation=head.implementation,
        configuration=head.configuration.name if head.configuration else None,
        load=head.load.name if head.load else None,
        begin_wall_ns=head.begin.wall_ns or None,
    )
    if end is None:
        return known
    wakeups = import_module("fastenough.recording.wakeups")
    way = wakeups.longest_way(head, {number: totals.taken for number, totals in end.series.items()})
    holding = [series.name for series in head.series if series.id in end.series and end.series[series.id].taken]
    of_series = [*(holding if IMPORTED in head.marks else []), *(series.name for series in head.series)]
    names = [way] if wakeups.is_monitor(head) else of_series
    name = next(iter(names), None)
    tick_ps = {series.id: series.tick_ps or 1000 for series in head.series if series.name == name}
    ends = {number: totals for number, totals in end.series.items() if number in tick_ps}
    worst = [totals.maximum * tick_ps[number] // 1000 for number, totals in ends.items() if totals.maximum is not None]
    duration_ns, worst_ns = end.at.mono_ns - head.begin.mono_ns, max(worst, default=None)
    if max(abs(duration_ns), abs(worst_ns or 0)) >= 2**63:
        raise BadInput("a time does not fit 64 bits")
    unknown_length = IMPORTED in head.marks and not duration_ns
    return replace(
        known,
        state="ended",
        outcome=end.outcome.value,
        reason="; ".join(end.reasons) or None,
        worst_ns=worst_ns,
        duration_ns=None if unknown_length else duration_ns,
        samples=sum(totals.taken for totals in ends.values()),
    )


def _first_and_last(stream: BinaryIO) -> tuple[bytes, bytes]:
    """First and last whole line of a file, empty if there is none; reads only the begin and the end."""
    first = stream.readline(MOST_LINE_BYTES)
    if not first.endswith(b"\n"):
        return b"", b""
    size = stream.seek(0, os.SEEK_END)
    tail, length = b"", _CHUNK
    while tail.count(b"\n") < 2 and len(tail) < min(size, MOST_END_BYTES):
        stream.seek(size - min(size, length))
        tail, length = stream.read(length), 2 * length
    return first, tail[: tail.rfind(b"\n") + 1].removesuffix(b"\n").rpartition(b"\n")[2]


def recording_name(folder: Folder) -> str:
    """Name of the recording file, sealed or not; raises BadInput if there is none."""
    for name in (SEALED_FILE, LIVE_FILE):
        with suppress(OSError):
            folder.status(name)
            return name
    raise BadInput("the recording of this run no longer exists")


def is_live(folder: Folder) -> bool:
    """Whether a bench is still writing this run."""
    try:
        stream = folder.open_file(LIVE_FILE)
    except (OSError, FastenoughError):
        return False
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _read_summary(folder: Folder, run_id: str) -> RunSummary:
    return parse_summary(folder.read(RUN_FILE, MOST_SUMMARY_BYTES), run_id)


def read_summary(folder: Folder, run_id: str) -> RunSummary:
    """The summary of a run in any state of its directory; a damaged one raises nothing."""
    try:
        summary = _read_summary(folder, run_id)
        if summary.state == "running" and not is_live(folder):
            with folder.open_file(LIVE_FILE) as stream:
                summary = _described(*_first_and_last(stream), summary)
        if summary.state in ("ended", "cut-off"):
            recording_name(folder)
        return summary
    except OSError as error:
        return damaged(run_id, f"{RUN_FILE} or {LIVE_FILE}: {error.strerror}")
    except (ValueError, FastenoughError) as error:
        return damaged(run_id, f"{RUN_FILE}: {error}" if isinstance(error, ValueError) else str(error))


def settle(folder: Folder, run_id: str) -> RunSummary | None:
    """Seal a run of a bench that died, and return its summary; one that cannot be sealed remains readable."""
    with suppress(OSError, FastenoughError, ValueError):
        summary = _read_summary(folder, run_id)
        if summary.state == "running" and not is_live(folder):
            return seal(folder, summary)
        if summary.sha256 is not None:
            folder.status(SEALED_FILE)
            folder.remove(LIVE_FILE)
    return None


def check(folder: Folder, run_id: str) -> tuple[RunSummary, str | None]:
    """The summary of a run and its fault, None if its content matches its hash, if it has one yet, and its summary.

    The recording takes precedence: an edited or unreadable summary does not change what the run counts as.
    """
    summary = read_summary(folder, run_id)
    if summary.state == "running":
        return summary, None
    fault = (summary.reason or "damaged") if summary.state == "damaged" else None
    if summary.sha256 is None:
        fault = fault or unsealed(summary)
    try:
        content = _content(folder)
    except FastenoughError as error:
        return summary, fault or str(error)
    if summary.sha256 not in (None, content.sha256):
        fault = fault or f"{recording_name(folder)}: SHA-256 mismatch: the content is not what was recorded"
        return summary, fault
    unknown: dict[str, Any] = dict.fromkeys(_RECORDED)
    recorded = _described(content.first, content.last, replace(summary, **unknown))
    return recorded, fault or _check_summary(summary, recorded, content.first) or _check_attached(folder, summary)


def _is_imported(first: bytes) -> bool:
    try:
        return IMPORTED in import_module("fastenough.recording.reader").head_of(first, LIVE_FILE).marks
    except BadInput:
        return False


def _check_summary(summary: RunSummary, recorded: RunSummary, first: bytes) -> str | None:
    """The first field in which a summary differs from the recording, whose ``first`` line this is."""
    for name in _RECORDED:
        stated, value = getattr(summary, name), getattr(recorded, name)
        if stated != value and not (name in _IMPORTED_ANEW and _is_imported(first)):
            difference = f"{name} is {stated!r:.80}, but the recording has {value!r:.80}"
            return f"{RUN_FILE}: {difference}; restore {RUN_FILE} from a backup"
    return None


def unsealed(summary: RunSummary) -> str | None:
    """The fault of a run without a hash: None while it is recorded, or if it was cut off."""
    if summary.state != "ended":
        return None
    return (
        "it ended but was never sealed, so its integrity cannot be checked; 'fastenough store rebuild' seals runs of "
        "a bench that died"
    )


def attached_file(folder: Folder, summary: RunSummary, name: str) -> bytes | None:
    """The content of an attached file, None if the run has none of that name.

    Raises BadInput, Untrusted or OSError for one that was changed after it was stored.
    """
    sha256 = summary.hashes().get(name)
    if sha256 is None:
        return None
    packed = folder.read(name, _MOST_ATTACHED)
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise BadInput(f"{name}: SHA-256 mismatch: the file was changed after it was stored")
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
            return stream.read(_MOST_ATTACHED)
    except zstandard.ZstdError as error:
        raise BadInput(f"{name}: not a file that is stored with a recording ({error})") from error


def _check_attached(folder: Folder, summary: RunSummary) -> str | None:
    """The first fault of the files attached to a run."""
    for name in summary.hashes():
        try:
            attached_file(folder, summary, name)
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
        except FastenoughError as error:
            return str(error)
    return None


def _content(folder: Folder) -> Content:
    """The content of a recording; raises BadInput or Untrusted if it cannot be read."""
    try:
        name = recording_name(folder)
        with folder.open_file(name) as stream:
            return content_of(stream, name)
    except OSError as error:
        raise BadInput(f"the recording cannot be read: {error.strerror}") from error
