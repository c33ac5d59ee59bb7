# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording from its text in one pass; its intervals and events are read again on demand, not held in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypedDict

from fastenough.recording import columns
from fastenough.recording.content import LazySequence, Recording
from fastenough.recording.head import Event
from fastenough.recording.interval import Interval
from fastenough.recording.interval_rows import timeline_of
from fastenough.recording.reader import Reading
from fastenough.recording.timeline import Timeline

OpenText = Callable[[], AbstractContextManager[Reading]]
"""Begins a pass over the text."""


class LazyParts(TypedDict):
    """Intervals and events; those read from the text are read when they are used."""

    intervals: Sequence[Interval]
    events: Sequence[Event]


def lazy_parts(text: OpenText) -> LazyParts:
    """Intervals and events, each read from the text on demand."""

    def intervals() -> list[Interval]:
        with text() as lines:
            return [part for part in lines if isinstance(part, Interval)]

    def events() -> list[Event]:
        with text() as lines:
            return list(lines.events())

    return {"intervals": LazySequence(intervals), "events": LazySequence(events)}


def timeline_of_text(text: OpenText) -> Timeline:
    """The intervals as arrays, from a pass over the text."""
    with text() as lines:
        return timeline_of(list(columns.rows_of(lines)), lines.series)


def recording_of_text(lines: Reading, text: OpenText) -> Recording:
    """The recording of a pass that has not begun; raises as the pass does.  ``text`` begins further ones."""
    for _ in lines:
        pass
    return lines.recording(over_time=lambda: timeline_of_text(text), **lazy_parts(text))
