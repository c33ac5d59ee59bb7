# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on disk: read after an integrity check, or replaced by the reason why the check failed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.lines import content_of
from fastenough.store.directory import (
    LIVE_FILE,
    RUN_FILE,
    SEALED_FILE,
    attached_file,
    check,
    read_summary,
    recording_name,
)
from fastenough.store.summary import RunSummary, damaged

if TYPE_CHECKING:
    from fastenough.recording import Recording
    from fastenough.store.sealed import FoldedRun

_MOST_SEALED_BYTES = 1 << 30
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*\Z")


def run_id_of(name: str) -> str:
    """The id of the run in a folder of that name; bytes not allowed in an id are escaped."""
    if _RUN_ID.match(name):
        return name
    return "".join(chr(byte) if 0x20 < byte < 0x7F else f"\\x{byte:02x}" for byte in os.fsencode(name))


def run_folders(runs: Folder) -> Iterator[tuple[str, str]]:
    """Id and folder name of every run, oldest first; plain files are skipped."""
    for name in runs.subfolders():
        yield run_id_of(name), name


def stamp(runs: Folder, name: str) -> tuple[str, bool]:
    """A string that changes with the files of a run, and whether its recording is newer than its summary."""
    status_of = {file: runs.status_below(name, file) for file in (RUN_FILE, SEALED_FILE)}
    if status_of[SEALED_FILE] is None:
        status_of[LIVE_FILE] = runs.status_below(name, LIVE_FILE)
    text = " ".join(
        f"{entry.st_ino}:{entry.st_size}:{entry.st_mtime_ns}:{entry.st_ctime_ns}"
        for entry in status_of.values()
        if entry is not None
    )
    summary, sealed = status_of[RUN_FILE], status_of[SEALED_FILE]
    return text, summary is not None and sealed is not None and sealed.st_mtime_ns > summary.st_mtime_ns


def summary_of(runs: Folder, name: str, *, suspicious: bool) -> RunSummary:
    """The summary of a run; if ``suspicious``, its recording must match its hash and its summary."""
    run_id = run_id_of(name)
    try:
        with runs.below(name) as folder:
            summary, fault = check(folder, run_id) if suspicious else (read_summary(folder, run_id), None)
            return summary if fault is None else replace(summary, state="damaged", reason=fault)
    except OSError as error:
        return damaged(run_id, f"its folder cannot be read: {error.strerror}")
    except FastenoughError as error:
        return damaged(run_id, str(error))


def fault_of(runs: Folder, name: str) -> str | None:
    """The fault of a run, None if its recording matches its hash and its summary."""
    summary = summary_of(runs, name, suspicious=True)
    return (summary.reason or "damaged") if summary.state == "damaged" else None


def _sealed() -> Any:
    """The module that reads recordings, imported on demand: it takes 0.3 s, and lists of runs do not need it."""
    return import_module("fastenough.store.sealed")


def attached_content(runs: Folder, name: str, file: str) -> bytes | None:
    """A file attached to a run, None if there is none; raises FastenoughError for a wrong one."""
    try:
        with runs.below(name) as folder:
            return attached_file(folder, read_summary(folder, run_id_of(name)), file)
    except OSError as error:
        raise FastenoughError(f"run {run_id_of(name)}: {file} cannot be read: {error.strerror}") from error


def open_recording(runs: Folder, name: str) -> BinaryIO:
    """The recording of a run, sealed or not, opened; raises BadInput if there is none."""
    try:
        with runs.below(name) as folder:
            return folder.open_file(recording_name(folder))
    except OSError as error:
        raise BadInput(f"run {run_id_of(name)}: its recording cannot be read: {error.strerror}") from error


def sealed_content(runs: Folder, name: str) -> bytes:
    """The file of a sealed recording after its hash was checked; raises BadInput for any other."""
    run_id = run_id_of(name)
    try:
        with runs.below(name) as folder:
            summary = read_summary(folder, run_id)
            content = folder.read(SEALED_FILE, _MOST_SEALED_BYTES)
    except OSError as error:
        raise BadInput(f"run {run_id}: its recording cannot be read: {error.strerror}") from error
    if summary.sha256 is None or content_of(BytesIO(content), run_id).sha256 != summary.sha256:
        raise BadInput(f"run {run_id}: SHA-256 mismatch: its recording is not what was sealed")
    return content


def make_columns(runs: Folder, name: str) -> None:
    """Create the columns of a newly sealed run, if possible."""
    _sealed().make_columns(lambda: runs.below(name), run_id_of(name))


def renew_columns(runs: Folder, name: str) -> None:
    """Recreate the columns of a run if they are missing or wrong; raises FastenoughError."""
    _sealed().renew_columns(lambda: runs.below(name), run_id_of(name))


def columns_fault_of(runs: Folder, name: str) -> str | None:
    """The fault of the columns of a run, None if they are right or would be ignored."""
    fault: str | None = _sealed().columns_fault(lambda: runs.below(name), run_id_of(name))
    return fault


def folded(runs: Folder, name: str) -> FoldedRun | None:
    """A sealed run from its columns, None if it has no valid ones; raises FastenoughError."""
    try:
        run: FoldedRun | None = _sealed().folded(lambda: runs.below(name), summary_of(runs, name, suspicious=False))
        return run
    except OSError as error:
        raise FastenoughError(f"run {run_id_of(name)}: its columns cannot be read: {error.strerror}") from error


def read_run(runs: Folder, name: str) -> Recording:
    """The recording of a run; if its integrity check fails, one that only has the reason."""
    recording: Recording = _sealed().read_run(lambda: runs.below(name), summary_of(runs, name, suspicious=False))
    return recording
