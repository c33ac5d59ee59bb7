# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings into the history, each interval exactly once, whatever ends a process and whenever.

A recording only grows.  How far it was read is written in the transaction that writes what was read: where anything
fails, neither is there, and the next take goes on from the same line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO

from sqlalchemy import Connection, select

from fastenough.history.boards import enter_run, series_numbers
from fastenough.history.cells import Standout, cells_of, require_possible, sources_of, standouts_of, told_by
from fastenough.history.database import History, put
from fastenough.history.rollups import add_cells, note_newest
from fastenough.history.schema import CURSOR, EVENT, RUN
from fastenough.model import BadInput
from fastenough.recording import Event, Head, Interval
from fastenough.recording.lines import MOST_LINE_BYTES, Lines, plain_content
from fastenough.recording.reader import event_of, head_of, part_of
from fastenough.store import Store

_BATCH_BYTES = 8 << 20
"""Of lines that are taken in one transaction."""
_BATCH = 1024
"""Intervals."""
_EVENT = re.compile(rb'\{"type": ?"event"')


@dataclass(frozen=True)
class Caught:
    """What `catch_up` took: how many intervals, and of which runs nothing, or no more, with the reason."""

    intervals: int = 0
    faults: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """How far a recording was read: the offset in bytes, and how many of its intervals lie before it.

    ``head``: SHA-256 of its first line.
    """

    offset: int
    intervals: int
    head: str


def take(history: History, store: Store, run_id: str) -> int:
    """Read what a run's recording has grown by; returns how many intervals were new.

    Raises BadInput for a recording that is damaged, and FastenoughError where store or database cannot be used:
    the next take goes on where this one stood.
    """
    with store.opened(run_id) as stream:
        first, place = _begin(history, run_id, stream)
        known = store.folded(run_id) if first and place.intervals == 0 else None
        if known is not None:
            taking = _Taking(history, run_id, head_of(first, run_id))
            events, size = _events_of(_lines(stream, run_id, 0), run_id)
            if len(events) == known.events:
                return _take_folded(taking, replace(place, offset=len(first)), size, known.intervals, events)
        return take_from(history, run_id, stream)


def take_from(history: History, run_id: str, stream: BinaryIO) -> int:
    """The same out of an open recording, such as one that is on its way into the store under this name."""
    first, place = _begin(history, run_id, stream)
    if not first:
        return 0
    taking = _Taking(history, run_id, head_of(first, run_id))
    try:
        after = _take_text(taking, place, stream)
    except BadInput:
        if place.offset == len(first):
            raise
        # it may have been written anew since, which moves all offsets; what is damaged is refused again
        after = _take_text(taking, replace(_begin(history, run_id, stream)[1], offset=len(first)), stream)
    return after.intervals - place.intervals


def _take_text(taking: _Taking, place: _Place, stream: BinaryIO) -> _Place:
    """From a place on; returns how far it came."""
    for lines in _batches(_lines(stream, taking.run_id, place.offset)):
        intervals, events = _parsed(taking, place, lines)
        after = replace(place, offset=place.offset + sum(map(len, lines)), intervals=place.intervals + len(intervals))
        if not taking.put(place, after, intervals, events):
            break
        place = after
    return place


def _take_folded(taking: _Taking, place: _Place, size: int, intervals: Iterator[Interval],
                 events: list[Event]) -> int:
    """A sealed run of which nothing was taken yet; where it is cut off, the rest comes out of the text."""
    batch = list(islice(intervals, _BATCH))
    while True:
        more = list(islice(intervals, _BATCH))
        after = replace(place, intervals=place.intervals + len(batch), offset=place.offset if more else size)
        if not taking.put(place, after, batch, [] if more else events):
            return place.intervals
        if not more:
            return after.intervals
        place, batch = after, more


def _events_of(lines: Iterator[bytes], run_id: str) -> tuple[list[Event], int]:
    """The events among lines that say so where our writers say it, and how many bytes all lines have."""
    events: list[Event] = []
    size = 0
    for line in lines:
        size += len(line)
        found = event_of(line, run_id) if _EVENT.match(line) else None
        events += [] if found is None else [found]
    return events, size


def catch_up(history: History, store: Store) -> Caught:
    """Take what is new of all runs of a store, oldest first; one that is damaged does not stop the others."""
    caught = Caught()
    done = _sealed_sizes(history)
    for summary in store.runs(brief=True):
        if summary.bytes is not None and done.get(summary.id) == summary.bytes:
            continue
        try:
            fault = store.fault(summary.id) if summary.state != "running" else None
            if fault is not None:
                raise BadInput(fault)
            caught = replace(caught, intervals=caught.intervals + take(history, store, summary.id))
        except BadInput as error:
            caught.faults[summary.id] = str(error)
    return caught


def _sealed_sizes(history: History) -> dict[str, int]:
    """How far each run was read."""
    with history.reading() as connection:
        found = connection.execute(select(RUN.c.name, CURSOR.c.offset).join(CURSOR, CURSOR.c.run == RUN.c.id))
        return {name: offset for name, offset in found}


def _begin(history: History, run_id: str, stream: BinaryIO) -> tuple[bytes, _Place]:
    """The head's line, empty where it is not whole yet, and where to go on."""
    first = next(_lines(stream, run_id, 0), b"")
    told = hashlib.sha256(first).hexdigest()
    with history.reading() as connection:
        row = connection.execute(select(CURSOR).join(RUN, CURSOR.c.run == RUN.c.id).where(
            RUN.c.name == run_id)).mappings().one_or_none()
    if row is None:
        return first, _Place(len(first), 0, told)
    # the bench completes heads and ends when a recording comes into the store: other offsets, the same intervals
    offset = row["offset"] if row["head"] == told else len(first)
    return first, _Place(offset, row["intervals"], told)


def _lines(stream: BinaryIO, run_id: str, offset: int) -> Iterator[bytes]:
    """Whole lines from an offset into the plain content on; what is torn is left for later."""
    stream.seek(0)
    if plain_content(stream) is stream:
        stream.seek(offset)
        while (line := stream.readline(MOST_LINE_BYTES)).endswith(b"\n"):
            yield line
        if len(line) == MOST_LINE_BYTES:
            raise BadInput(f"{run_id}: a line is longer than any of a recording")
        return
    stream.seek(0)
    passed = 0
    for line in Lines(stream, run_id):
        passed += len(line)
        if passed > offset:
            yield line


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parsed(taking: _Taking, place: _Place, lines: list[bytes]) -> tuple[list[Interval], list[Event]]:
    """The intervals that are new, and all events: to take those twice changes nothing."""
    intervals: list[Interval] = []
    events: list[Event] = []
    for line in lines:
        part = part_of(line, taking.run_id, taking.head)
        if isinstance(part, Event):
            events.append(part)
        elif part is not None and part.seq >= place.intervals:
            if part.seq != place.intervals + len(intervals):
                raise BadInput(f"{taking.run_id}: interval {part.seq} does not follow the one before it")
            intervals.append(part)
    return intervals, events


@dataclass(frozen=True)
class _Taking:
    """A run that is being taken."""

    history: History
    run_id: str
    head: Head

    def put(self, place: _Place, after: _Place, intervals: list[Interval], events: list[Event]) -> bool:
        """What was read between two places, and that it was read, in one transaction; False where another process was
        quicker."""
        with self.history.writing() as connection:
            end_s = intervals[-1].end_wall_ns // 10**9 if intervals else None
            board, run = enter_run(connection, self.run_id, self.head, end_s)
            if _stands_at(connection, run) != place.intervals:
                return False
            self._write(connection, (board, run), intervals, events)
            put(connection, CURSOR, [{"run": run, "head": after.head, "offset": after.offset,
                                      "intervals": after.intervals}])
        return True

    def _write(self, connection: Connection, place: tuple[int, int], intervals: list[Interval],
               events: list[Event]) -> None:
        board, run = place
        sources = sources_of(self.head)
        series = series_numbers(connection, sources.values())
        cells, pile = cells_of(intervals, sources, series)
        require_possible(self.run_id, cells)
        add_cells(connection, board, run, cells, pile)
        if cells:
            step_s = max(1, self.head.interval_ns // 10**9)
            note_newest(connection, board, cells, intervals[-1].end_wall_ns // 10**9, step_s)
        _add_standouts(connection, board, run, standouts_of(events, sources, told_by(self.head), series))


def _stands_at(connection: Connection, run: int) -> int:
    return connection.execute(select(CURSOR.c.intervals).where(CURSOR.c.run == run)).scalar() or 0


def _add_standouts(connection: Connection, board: int, run: int,
                   found: dict[tuple[int, str, int], Standout]) -> None:
    """The greatest of each five minutes stays."""
    here = connection.execute(select(EVENT).where(
        EVENT.c.run == run, EVENT.c.slot_s.in_({slot_s for _, _, slot_s in found}))).mappings()
    kept = {(row["series"], row["kind"], row["slot_s"]): row["value_ns"] for row in here}
    put(connection, EVENT, [
        {"board": board, "run": run, "series": key[0], "kind": key[1], "slot_s": key[2], "at_s": one.at_s,
         "cpu": one.cpu, "value_ns": one.value_ns, "culprit": one.culprit}
        for key, one in found.items() if one.value_ns > kept.get(key, -1)])
