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
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from fastenough.model import BadInput, FastenoughError

RUN_FILE = "run.json"
LIVE_FILE = "recording.jsonl"
SEALED_FILE = "recording.jsonl.zst"
RUN_VERSION = 1
_SYNC_EVERY_S = 60.0
"""How much a power cut may take; more often would put the bench's own disk writes among what is measured."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class RunSummary:
    """What ``run.json`` and the index say of a run; the recording remains the truth.

    ``state`` is ``running``, ``ended``, ``cut-off`` (its bench died) or ``damaged`` (``reason`` says how);
    ``outcome`` is None unless ended.  ``samples``, ``worst_ns`` and ``duration_ns`` are those of the first series'
    name over all CPUs, None where the recording has no end.
    """

    id: str
    state: str
    outcome: str | None = None
    reason: str | None = None
    board: str | None = None
    configuration: str | None = None
    probe: str | None = None
    implementation: str | None = None
    load: str | None = None
    begin_wall_ns: int | None = None
    duration_ns: int | None = None
    samples: int | None = None
    worst_ns: int | None = None
    campaign: str | None = None
    plan_sha256: str | None = None
    position: int | None = None
    positions: int | None = None
    sha256: str | None = None
    bytes: int | None = None


@contextmanager
def mendable(what: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one line a person can act on."""
    try:
        yield
    except OSError as error:
        raise FastenoughError(f"{what}: {error.strerror}; what was recorded before stays") from error


def sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by a whole new one, on disk when this returns."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _write_summary(directory: Path, summary: RunSummary) -> None:
    entry = {"format": "fastenough-run", "version": RUN_VERSION} | asdict(summary)
    write_whole(directory / RUN_FILE, json.dumps(entry, indent=1).encode() + b"\n")


def _read_summary(directory: Path) -> RunSummary:
    """Raises ValueError for what is no summary of this directory's run."""
    entry = json.loads((directory / RUN_FILE).read_bytes())
    if not isinstance(entry, dict) or entry.pop("format", None) != "fastenough-run":
        raise ValueError("it is not the summary of a run")
    if entry.pop("version", None) != RUN_VERSION:
        raise ValueError("it is of another version")
    try:
        summary = RunSummary(**entry)
    except TypeError as error:
        raise ValueError("it has other fields than the summary of a run") from error
    if summary.id != directory.name:
        raise ValueError(f"it is the summary of another run, {summary.id}")
    return summary


class RunWriter:
    """A run being recorded.  Lines are handed to the operating system one by one: kill -9 tears at most one."""

    def __init__(self, directory: Path, summary: RunSummary) -> None:
        self.id = summary.id
        self.path = directory
        self._summary = summary
        with mendable(directory):
            directory.mkdir(parents=True)
            try:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._file = os.open(directory / LIVE_FILE, flags, 0o644)
                fcntl.flock(self._file, fcntl.LOCK_EX)
                _write_summary(directory, summary)
            except BaseException:
                shutil.rmtree(directory, ignore_errors=True)
                raise
            sync_directory(directory.parent)
        self._size = 0
        self._synced_mono_s = time.monotonic()

    def line(self, raw: bytes) -> None:
        """Append one whole line; raises FastenoughError when the disk takes no more, after removing a torn rest."""
        with mendable(self.path / LIVE_FILE):
            try:
                written = os.write(self._file, raw)
                while written < len(raw):
                    written += os.write(self._file, raw[written:])
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
            self._size += len(raw)
            if self._size == len(raw) or time.monotonic() - self._synced_mono_s > _SYNC_EVERY_S:
                os.fdatasync(self._file)
                self._synced_mono_s = time.monotonic()

    def end(self) -> RunSummary:
        """Seal the run and give up the lock."""
        with mendable(self.path / LIVE_FILE):
            os.fsync(self._file)
        try:
            return seal(self.path, self._summary)
        finally:
            self.close()

    def discard(self) -> None:
        """Remove a run of which nothing was recorded."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        """Give up the lock without sealing: the run then counts as cut off."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def seal(directory: Path, summary: RunSummary) -> RunSummary:
    """Compress, hash, describe and make immutable; the caller holds the lock or knows that nobody does."""
    live, sealed = directory / LIVE_FILE, directory / SEALED_FILE
    described = describe(live, summary)
    digest = hashlib.sha256()
    beside = sealed.with_name(sealed.name + ".new")
    with mendable(sealed):
        try:
            with live.open("rb") as source, beside.open("wb") as target:
                with zstandard.ZstdCompressor(level=9).stream_writer(target, closefd=False) as compressor:
                    while chunk := source.read(_CHUNK):
                        digest.update(chunk)
                        compressor.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            beside.rename(sealed)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        ended = replace(described, sha256=digest.hexdigest(), bytes=live.stat().st_size)
        _write_summary(directory, ended)
        for name in (RUN_FILE, SEALED_FILE):
            (directory / name).chmod(0o444)
        live.unlink()
        sync_directory(directory)
    return ended


def describe(recording: Path, summary: RunSummary) -> RunSummary:
    """Complete a summary from the first and the last whole line of an uncompressed recording."""
    first, last = _first_and_last(recording)
    try:
        head = json.loads(first) if first else {}
        end = json.loads(last) if last else {}
    except ValueError:
        return replace(summary, state="damaged", reason="its head or its last line is not JSON")
    return _describe(summary, head, end if end.get("type") == "end" else None)


def _describe(summary: RunSummary, head: dict[str, Any], end: dict[str, Any] | None) -> RunSummary:
    known = replace(
        summary, state="cut-off", board=head.get("board"), configuration=head.get("configuration"),
        probe=head.get("probe"), implementation=head.get("implementation"),
        load=head.get("load", {}).get("name"), begin_wall_ns=head.get("begin", {}).get("wall_ns"),
    )
    if end is None:
        return known
    series = head["series"]
    shown = {entry["id"]: entry.get("tick_ps", 1000) for entry in series if entry["name"] == series[0]["name"]}
    ends = [entry for entry in end["series"] if entry["id"] in shown]
    worst = [entry["max"] * shown[entry["id"]] // 1000 for entry in ends if "max" in entry]
    return replace(
        known, state="ended", outcome=end["outcome"], reason="; ".join(end["reasons"]) or None,
        duration_ns=end["at"]["mono_ns"] - head["begin"]["mono_ns"],
        samples=sum(entry["taken"] for entry in ends), worst_ns=max(worst, default=None),
    )


def _first_and_last(path: Path) -> tuple[bytes, bytes]:
    """First and last whole line of a file, empty where there is none; reads no more than it must."""
    with path.open("rb") as stream:
        first = stream.readline()
        if not first.endswith(b"\n"):
            return b"", b""
        size = stream.seek(0, os.SEEK_END)
        tail = b""
        while tail.count(b"\n") < 2 and len(tail) < size:
            stream.seek(size - min(size, len(tail) + _CHUNK))
            tail = stream.read(size - stream.tell())
    return first, tail[:tail.rindex(b"\n")].rpartition(b"\n")[2]


def recording_path(directory: Path) -> Path:
    """The recording, sealed or not; raises BadInput where there is none."""
    for name in (SEALED_FILE, LIVE_FILE):
        if (directory / name).is_file():
            return directory / name
    raise BadInput(f"{directory}: the run has no recording any more")


def is_live(directory: Path) -> bool:
    """Whether a bench is still writing this run."""
    try:
        file = os.open(directory / LIVE_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def read_summary(directory: Path) -> RunSummary:
    """What is known of a run, whatever state its directory is in; never raises for a damaged one."""
    try:
        summary = _read_summary(directory)
        if summary.state != "running" or is_live(directory):
            return summary
        return describe(directory / LIVE_FILE, summary)
    except OSError as error:
        return RunSummary(directory.name, "damaged", reason=f"{error.filename}: {error.strerror}")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return RunSummary(directory.name, "damaged", reason=f"{RUN_FILE}: {error}")


def settle(directory: Path) -> bool:
    """Seal what a dead bench left, and say so; what cannot be sealed stays as it is, readable."""
    with suppress(OSError, FastenoughError, ValueError):
        summary = _read_summary(directory)
        if summary.state == "running" and not is_live(directory):
            seal(directory, summary)
            return True
        if summary.state != "running":
            (directory / LIVE_FILE).unlink(missing_ok=True)
    return False


def check(directory: Path) -> str | None:
    """What is wrong with a sealed run, None when its content still has its hash."""
    summary = read_summary(directory)
    if summary.state == "damaged":
        return summary.reason
    if summary.sha256 is None:
        return None
    digest = hashlib.sha256()
    try:
        with (directory / SEALED_FILE).open("rb") as stream:
            reader = zstandard.ZstdDecompressor().stream_reader(stream)
            while chunk := reader.read(_CHUNK):
                digest.update(chunk)
    except (OSError, zstandard.ZstdError) as error:
        return f"{SEALED_FILE}: {error}"
    return None if digest.hexdigest() == summary.sha256 else f"{SEALED_FILE}: the content is not what was recorded"
