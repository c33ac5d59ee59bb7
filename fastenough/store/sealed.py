# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of runs: read from the columns of sealed runs, and from the text only for data not in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import BadInput, Configuration, FastenoughError
from fastenough.recording import (
    Head,
    Instant,
    Interval,
    LoadStated,
    Recording,
    columns,
    damaged_recording,
    read_from,
)
from fastenough.recording.building import HeadAdditions, unmeasured_head
from fastenough.recording.columns import SealedRecording
from fastenough.recording.content import COSTS_FILE, TRACE_FILE
from fastenough.recording.head import Tool
from fastenough.recording.interval_rows import intervals_of
from fastenough.recording.lazy_text import lazy_parts, recording_of_text, timeline_of_text
from fastenough.recording.reader import Reading, assemble, ends_of_lines
from fastenough.recording.timeline import Timeline
from fastenough.store.directory import attached_file, read_summary, recording_name, storage_errors, unsealed
from fastenough.store.summary import RunSummary

Opening = Callable[[], Folder]
"""Opens the folder of a run; data read on demand opens it again."""


def _source(folder: Folder, summary: RunSummary) -> SealedRecording:
    if summary.sha256 is None:
        raise BadInput("it was never sealed")
    return SealedRecording(folder, recording_name(folder), summary.sha256, summary.bytes)


def read_sealed(opening: Opening, summary: RunSummary) -> Recording:
    """The recording of a sealed run; raises BadInput, Untrusted or OSError if its integrity check fails."""
    with opening() as folder:
        source = _source(folder, summary)
        recording = _of_columns(opening, summary, source)
        if recording is None:
            with suppress(columns.ColumnsNotStored, OSError):
                _make(source)
            recording = _of_columns(opening, summary, source)
        return _of_text(opening, summary, source) if recording is None else recording


def _make(source: SealedRecording) -> None:
    """Create columns, unless the folder belongs to another user: root creates no files there."""
    if source.folder.owner == os.geteuid():
        columns.make(source)


def make_columns(opening: Opening, run_id: str) -> None:
    """Create the columns of a newly sealed run, if possible: they can be recreated at any time."""
    with suppress(FastenoughError, OSError), opening() as folder:
        _make(_source(folder, read_summary(folder, run_id)))


def renew_columns(opening: Opening, run_id: str) -> None:
    """Recreate columns that are missing or contradict the recording; raises FastenoughError."""
    with storage_errors(opening().path), opening() as folder:
        summary = read_summary(folder, run_id)
        if summary.sha256 is None or summary.state == "damaged":
            return
        source = _source(folder, summary)
        stored = columns.stored_columns(source)
        with suppress(BadInput):
            if stored is None or columns.differ(source, stored):
                _make(source)


def columns_fault(opening: Opening, run_id: str) -> str | None:
    """A message if the columns of a run are accepted as valid but contradict its recording, else None."""
    with suppress(FastenoughError, OSError), opening() as folder:
        summary = read_summary(folder, run_id)
        source = _source(folder, summary)
        stored = columns.stored_columns(source)
        if stored is not None and columns.differ(source, stored):
            return "its columns contradict its recording; 'fastenough store rebuild' recreates them from the recording"
    return None


@contextmanager
def _text(opening: Opening, summary: RunSummary) -> Iterator[Reading]:
    """A later pass over the text; raises FastenoughError if the file has changed."""
    try:
        with opening() as folder:
            source = _source(folder, summary)
            with folder.open_file(source.file) as stream:
                yield Reading(stream, source.file, source.sha256)
    except OSError as error:
        raise FastenoughError(f"run {summary.id}: its recording can no longer be read: {error.strerror}") from error


@dataclass(frozen=True)
class FoldedRun:
    """A sealed run without its text: ``intervals`` as `intervals_of` makes them, and how many events the text has."""

    intervals: Iterator[Interval]
    events: int


def folded(opening: Opening, summary: RunSummary) -> FoldedRun | None:
    """A sealed run from its columns; None if there are none that belong to it.

    Raises BadInput if they are changed during reading.
    """
    if summary.sha256 is None:
        return None
    with opening() as folder:
        source = _source(folder, summary)
        stored = columns.stored_columns(source)
        if stored is None:
            return None
        head, _ = ends_of_lines(stored.head, None, source.file)
        batches = list(columns.stored_rows(source, stored.intervals_sha256))
        return FoldedRun(intervals_of(batches, head.series), sum(stored.aggregate.events.values()))


def _of_columns(opening: Opening, summary: RunSummary, source: SealedRecording) -> Recording | None:
    """The recording from its columns; None if there are none that belong to it, or if they contradict its end."""

    stored = columns.stored_columns(source)
    if stored is None:
        return None
    intervals_sha256 = stored.intervals_sha256  # and not all that it holds, for as long as the recording is there

    def over_time() -> Timeline:
        with suppress(BadInput, Untrusted, OSError), opening() as folder:
            return columns.timeline(_source(folder, summary), intervals_sha256, head.series)
        return timeline_of_text(text)

    text = partial(_text, opening, summary)
    parts = lazy_parts(text)
    if not stored.aggregate.events:
        parts["events"] = ()
    with suppress(BadInput):
        head, end = ends_of_lines(stored.head, stored.end, source.file)
        return assemble(source.file, head, end, stored.aggregate, over_time=over_time, **parts)
    return None


def _of_text(opening: Opening, summary: RunSummary, source: SealedRecording) -> Recording:
    """The recording from its text, if columns cannot be stored: one pass now, further ones on demand."""
    with source.folder.open_file(source.file) as stream:
        lines = Reading(stream, source.file, source.sha256)
        return recording_of_text(lines, partial(_text, opening, summary))


def _known_head(summary: RunSummary) -> Head:
    """The head as far as the summary has it, for a run whose integrity check failed."""
    known = HeadAdditions(
        summary.board,
        None if summary.configuration is None else Configuration(summary.configuration),
        None if summary.load is None else LoadStated(summary.load),
    )
    head = unmeasured_head(summary.probe or "unknown", summary.implementation or "unknown", {}, known, summary.id)
    return replace(head, tool=Tool("unknown", ""), begin=Instant(0, summary.begin_wall_ns or 0))


def _read(opening: Opening, summary: RunSummary) -> Recording:
    """Raises BadInput, Untrusted or OSError if the integrity check fails."""
    fault = (summary.reason or "damaged") if summary.state == "damaged" else None
    if summary.sha256 is None:
        fault = fault or unsealed(summary)
    if fault is not None:
        raise BadInput(fault)
    recording = _read_unsealed(opening) if summary.sha256 is None else read_sealed(opening, summary)
    if recording.run_id != summary.id:
        raise BadInput(f"it is the recording of another run, {recording.run_id[:80]}")
    if summary.sha256 is None and recording.end is not None:
        raise BadInput(unsealed(replace(summary, state="ended")) or "")
    trace, costs = (
        partial(_attached, opening, summary, name) if name in summary.hashes() else None
        for name in (TRACE_FILE, COSTS_FILE)
    )
    return replace(recording, trace=trace, costs=costs)


def _attached(opening: Opening, summary: RunSummary, name: str) -> bytes:
    try:
        with opening() as folder:
            return attached_file(folder, summary, name) or b""
    except OSError as error:
        raise FastenoughError(f"{name} cannot be read: {error.strerror}") from error


def _read_unsealed(opening: Opening) -> Recording:
    with opening() as folder:
        name = recording_name(folder)
        with folder.open_file(name) as stream:
            return read_from(stream, name)


def read_run(opening: Opening, summary: RunSummary) -> Recording:
    """The recording of a run; if its integrity check fails, one that only has the reason."""
    try:
        return _read(opening, summary)
    except OSError as error:
        return damaged_recording(f"it cannot be read: {error.strerror}", _known_head(summary))
    except FastenoughError as error:
        return damaged_recording(str(error), _known_head(summary))
