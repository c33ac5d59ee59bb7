# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs as they lie on disk: read whole, with their hash checked, or replaced by the reason not to believe them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace

from fastenough.folder import Folder
from fastenough.model import BadInput, Configuration, FastenoughError
from fastenough.recording import Head, Instant, LoadStated, Recording, read_from, unbelievable
from fastenough.recording.building import Added, made_head
from fastenough.recording.head import Tool
from fastenough.store.directory import (
    LIVE_FILE,
    RUN_FILE,
    SEALED_FILE,
    check,
    read_summary,
    recording_name,
    unsealed,
)
from fastenough.store.summary import RunSummary, damaged

_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*\Z")


def run_id_of(name: str) -> str:
    """The id of the run in a folder of that name; bytes that no id has are written as numbers."""
    if _RUN_ID.match(name):
        return name
    return "".join(chr(byte) if 0x20 < byte < 0x7F else f"\\x{byte:02x}" for byte in os.fsencode(name))


def run_folders(runs: Folder) -> Iterator[tuple[str, str]]:
    """Id and name of every run, oldest first; files that lie beside them are none."""
    for name in runs.names():
        try:
            if not stat.S_ISREG(runs.status(name).st_mode):
                yield run_id_of(name), name
        except OSError:
            continue


def stamp(runs: Folder, name: str) -> tuple[str, bool]:
    """What changes whenever a run's files do, and whether its recording is newer than its summary."""
    try:
        with runs.below(name) as folder:
            found = {file: folder.status(file) for file in (".", *folder.names())
                     if file in (".", RUN_FILE, LIVE_FILE, SEALED_FILE)}
    except (OSError, FastenoughError):
        return "", False
    text = " ".join(f"{entry.st_ino}:{entry.st_size}:{entry.st_mtime_ns}:{entry.st_ctime_ns}"
                    for entry in found.values())
    newer = (SEALED_FILE in found and RUN_FILE in found
             and found[SEALED_FILE].st_mtime_ns > found[RUN_FILE].st_mtime_ns)
    return text, newer


def summary_of(runs: Folder, name: str, *, suspicious: bool) -> RunSummary:
    """What is known of a run; where there is reason to suspect it, its content must have its hash."""
    run_id = run_id_of(name)
    try:
        with runs.below(name) as folder:
            summary = read_summary(folder, run_id)
            fault = check(folder, run_id) if suspicious and summary.state in ("ended", "cut-off") else None
            return summary if fault is None else replace(summary, state="damaged", reason=fault)
    except OSError as error:
        return damaged(run_id, f"its folder cannot be read: {error.strerror}")
    except FastenoughError as error:
        return damaged(run_id, str(error))


def fault_of(runs: Folder, name: str) -> str | None:
    """What is wrong with a run, None when its content still has its hash."""
    try:
        with runs.below(name) as folder:
            return check(folder, run_id_of(name))
    except OSError as error:
        return f"its folder cannot be read: {error.strerror}"
    except FastenoughError as error:
        return str(error)


def _known_head(summary: RunSummary) -> Head:
    """What a summary says of the head, for a run whose recording is not believed."""
    known = Added(summary.board, None if summary.configuration is None else Configuration(summary.configuration),
                  None if summary.load is None else LoadStated(summary.load))
    head = made_head(summary.probe or "unknown", summary.implementation or "unknown", {}, known, summary.id)
    return replace(head, tool=Tool("unknown", ""), begin=Instant(0, summary.begin_wall_ns or 0))


def _read(folder: Folder, summary: RunSummary) -> Recording:
    """Raises BadInput, Untrusted or OSError for a recording that is not believed."""
    fault = (summary.reason or "damaged") if summary.state == "damaged" else None
    if summary.sha256 is None:
        fault = fault or unsealed(summary)
    if fault is not None:
        raise BadInput(fault)
    name = recording_name(folder)
    with folder.open_file(name) as stream:
        recording = read_from(stream, name, summary.sha256)
    if recording.run_id != summary.id:
        raise BadInput(f"{name}: it is the recording of another run, {recording.run_id[:80]}")
    if summary.sha256 is None and recording.end is not None:
        raise BadInput(unsealed(replace(summary, state="ended")) or "")
    return recording


def read_run(runs: Folder, name: str) -> Recording:
    """The recording of a run; where it is not what was recorded, one that holds nothing but the reason."""
    summary = summary_of(runs, name, suspicious=False)
    try:
        with runs.below(name) as folder:
            return _read(folder, summary)
    except OSError as error:
        return unbelievable(f"it cannot be read: {error.strerror}", _known_head(summary))
    except FastenoughError as error:
        return unbelievable(str(error), _known_head(summary))
