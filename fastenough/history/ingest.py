# SPDX-License-Identifier: GPL-2.0-or-later
"""Import recordings into the history: each interval exactly once, even if the process is killed at any time.

A recording only grows.  The transaction that writes data also writes how far the recording was read.  If it fails,
neither is written, and the next take continues from the same line."""

from __future__ import annotations

import hashlib
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO

from sqlalchemy import Connection, bindparam, delete, select, update

from fastenough import words
from fastenough.history.archive import close_months, restore_rows
from fastenough.history.boards import (
    boards_under_rebuild,
    enter_run,
    keep_boards,
    mark_outdated,
    note_refused_run,
    runs_of_shared_names,
    series_numbers,
)
from fastenough.history.database import History, put
from fastenough.history.intervals import (
    AHEAD_S,
    Standout,
    event_series,
    interval_rows,
    is_ahead,
    is_interval_ahead,
    require_possible,
    slot_s,
    sources_of,
    standouts_of,
)
from fastenough.history.rollups import DAY_S, RunCells, add_cells
from fastenough.history.schema import (
    ARCHIVE,
    BOARD,
    CHANGE,
    CURSOR,
    CYCLE,
    EVENT,
    HOUR,
    INTERVAL,
    MONTH,
    NOW,
    PROFILE,
    REFUSED,
    RUN,
    SERIES,
    SUMMARY,
)
from fastenough.history.summaries import SummaryRefresher, refresh_summaries
from fastenough.model import BadInput, FastenoughError, Unavailable
from fastenough.recording import Event, Head, Interval
from fastenough.recording.lines import Lines, most_line_bytes, plain_content, read_line
from fastenough.recording.reader import event_of, head_of, part_of
from fastenough.store import RunSummary, Store

_BATCH_BYTES = 8 << 20
"""Maximum number of lines in one transaction."""
_BATCH = 1024
"""Intervals."""
_AGAIN_S = 60.0
_NOT_AGAIN = "not read again"
"""Kind of the refused runs that a rebuild has not read again yet."""
_EVENT = re.compile(rb'\{"type": ?"event"')


@dataclass(frozen=True)
class IngestResult:
    """Result of `catch_up`: number of intervals, and the runs that were not read to their end, with reasons."""

    intervals: int = 0
    faults: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Position:
    """Position in a recording: offset in bytes, and number of intervals before it.  ``head``: SHA-256 of its first
    line."""

    offset: int
    intervals: int
    head: str


class ClockAhead(BadInput):
    """A recording with times ahead of this machine's clock; it is read once they have passed."""


def ingest_run(history: History, store: Store, run_id: str) -> int:
    """Read the new lines of a run's recording; returns the number of new intervals.

    Raises BadInput for a damaged recording, Ahead if the rest is ahead of this machine's clock, and FastenoughError if
    store or database cannot be used.  The next call continues at the same place.
    """
    with store.opened(run_id) as stream:
        first, place = _begin(history, run_id, stream)
        known = store.folded(run_id) if first and place.intervals == 0 else None
        if known is not None:
            taking = _RunIngest(history, run_id, head_of(first, run_id))
            events, size = _events_of(_lines(stream, run_id, 0), run_id)
            if len(events) == known.events:
                begun = replace(place, offset=len(first))
                taken, whole = _ingest_folded(taking, begun, size, known.intervals, events)
                return taken if whole else taken + ingest_stream(history, run_id, stream)
        return ingest_stream(history, run_id, stream)


def ingest_noting_faults(history: History, store: Store, run: RunSummary) -> int:
    """Ingest a run of the store; a damaged or incomplete recording is noted with its board, and the error is raised."""
    board = run.board or ""
    try:
        taken = ingest_run(history, store, run.id)
    except BadInput as error:
        kind = "clock" if isinstance(error, ClockAhead) else "damaged"
        note_refused_run(history, board or "unnamed", run.id, kind, str(error))
        raise
    if board and run.state == "cut-off":
        note_refused_run(history, board, run.id, "cut off", run.reason or "the end record is missing")
    return taken


def ingest_stream(history: History, run_id: str, stream: BinaryIO) -> int:
    """Ingest an open recording, such as one that is being transferred; returns the number of new intervals."""
    first, place = _begin(history, run_id, stream)
    if not first:
        return 0
    taking = _RunIngest(history, run_id, head_of(first, run_id))
    try:
        after = _ingest_text(taking, place, stream)
    except ClockAhead:
        raise
    except BadInput:
        if place.offset == len(first):
            raise
        # the recording may have been rewritten, which moves all offsets; damaged lines are refused again
        after = _ingest_text(taking, replace(_begin(history, run_id, stream)[1], offset=len(first)), stream)
    return after.intervals - place.intervals


def _ingest_text(taking: _RunIngest, place: _Position, stream: BinaryIO) -> _Position:
    """Read from a position on; returns the new position."""
    for lines in _batches(_lines(stream, taking.run_id, place.offset)):
        batch = _parsed(taking, place, lines)
        after = replace(place, offset=place.offset + batch.bytes, intervals=place.intervals + batch.passed)
        if batch.bytes and not taking.put(place, after, batch.intervals, batch.events):
            break
        place = after
        if batch.ahead_ns is not None:
            raise ClockAhead(
                f"{taking.run_id}: times are up to {words.duration(batch.ahead_ns)} ahead of the clock of this machine "
                f"(at most {words.duration(AHEAD_S * 10**9)} is accepted); set the wrong clock"
            )
    return place


def _ingest_folded(
    taking: _RunIngest, place: _Position, size: int, intervals: Iterator[Interval], events: list[Event]
) -> tuple[int, bool]:
    """Read a sealed run from its columns; if it was interrupted, its end is read as text.

    Returns the number of intervals read, and whether that was all: intervals ahead of this machine's clock are left.
    """
    now_s, batch = taking.history.wall_s(), list(islice(intervals, _BATCH))
    while True:
        more = list(islice(intervals, _BATCH))
        if any(is_interval_ahead(interval, now_s) for interval in batch):
            return place.intervals, False
        after = replace(place, intervals=place.intervals + len(batch), offset=place.offset if more else size)
        last_events = [] if more else [event for event in events if not is_ahead(event.at.wall_ns, now_s)]
        if not taking.put(place, after, batch, last_events):
            return place.intervals, True
        if not more:
            return after.intervals, True
        place, batch = after, more


def _events_of(lines: Iterator[bytes], run_id: str) -> tuple[list[Event], int]:
    """The events among lines, found by the prefix that the bench writes, and the total length of all lines in bytes."""
    events: list[Event] = []
    size = 0
    for line in lines:
        size += len(line)
        event = event_of(line, run_id) if _EVENT.match(line) else None
        events += [] if event is None else [event]
    return events, size


def catch_up(history: History, store: Store, boards: Collection[str] | None = None) -> IngestResult:
    """Read the new data of all runs of a store, oldest first; a damaged run does not stop the others.

    ``boards``: names in the recordings; None: of all.
    """
    if boards is not None:
        caught = _read_runs(history, store, set(boards))
        refresh_summaries(history, int(history.wall_s()))
        return caught
    flagged = boards_under_rebuild(history)  # before any run counts as read: another process may begin a rebuild
    caught = _read_runs(history, store)
    _finish_update(history, store, flagged, {})
    return caught


def _read_runs(history: History, store: Store, boards: Set[str] | None = None) -> IngestResult:
    caught = IngestResult()
    for summary in _unread_runs(history, store, boards):
        try:
            caught = replace(caught, intervals=caught.intervals + _ingest_undamaged(history, store, summary))
        except BadInput as error:
            caught.faults[summary.id] = str(error)
    return caught


def _ingest_undamaged(history: History, store: Store, summary: RunSummary) -> int:
    """Ingest a run whose recording is what was sealed; note any other one, and raise BadInput."""
    fault = store.fault(summary.id) if summary.state != "running" else None
    if fault is not None:
        note_refused_run(history, summary.board or "unnamed", summary.id, "damaged", fault)
        raise BadInput(fault)
    return ingest_noting_faults(history, store, summary)


def _unread_runs(history: History, store: Store, boards: Set[str] | None = None) -> Iterator[RunSummary]:
    """The runs of a store that the history has not read to their end, oldest first; ``boards``: of these only."""
    done = _sealed_sizes(history, boards)
    for summary in store.own_runs() if boards is None else store.own_runs(board=boards):
        if summary.bytes is None or done.get(summary.id) != summary.bytes:
            yield summary


def _finish_update(history: History, store: Store, flagged: Set[str], first_seen_s: Mapping[str, int]) -> None:
    """End a rebuild, if any, after all runs were read; refresh the summaries.

    ``flagged``: boards that were under rebuild before the first run was read.  If there are others by now, their runs
    counted as read, and the next update ends the rebuild.  ``first_seen_s``: of refused runs before it, by name.
    """
    rebuilt = BOARD.c.rebuilt_from == store.place
    if flagged or first_seen_s:
        with history.writing() as connection:
            if set(connection.scalars(select(BOARD.c.name).where(rebuilt))) <= flagged:
                for name, at_s in first_seen_s.items():
                    again = (REFUSED.c.name == name, REFUSED.c.at_s > at_s)
                    connection.execute(update(REFUSED).where(*again).values(at_s=at_s))
                not_again = (REFUSED.c.kind == _NOT_AGAIN, REFUSED.c.board.in_(select(BOARD.c.id).where(rebuilt)))
                connection.execute(delete(REFUSED).where(*not_again))
                mark_outdated(connection, rebuilt)
                connection.execute(update(BOARD).where(rebuilt).values(rebuilt_from=""))
    refresh_summaries(history, int(history.wall_s()))


def _sealed_sizes(history: History, boards: Set[str] | None = None) -> dict[str, int]:
    """The offset up to which each run was read, by run; ``boards``: of these only."""
    question = select(RUN.c.name, CURSOR.c.offset).join(CURSOR, CURSOR.c.run == RUN.c.id)
    if boards is not None:
        question = question.join(BOARD, RUN.c.board == BOARD.c.id).where(BOARD.c.name.in_(boards))
    with history.reading() as connection:
        return {name: offset for name, offset in connection.execute(question)}


def _begin(history: History, run_id: str, stream: BinaryIO) -> tuple[bytes, _Position]:
    """The first line, empty while it is incomplete, and the position to continue at."""
    first = next(_lines(stream, run_id, 0), b"")
    head_sha256 = hashlib.sha256(first).hexdigest()
    with history.reading() as connection:
        row = (
            connection.execute(select(CURSOR).join(RUN, CURSOR.c.run == RUN.c.id).where(RUN.c.name == run_id))
            .mappings()
            .one_or_none()
        )
    if row is None:
        return first, _Position(len(first), 0, head_sha256)
    # the bench completes heads and ends when a recording comes into the store: other offsets, the same intervals
    offset = row["offset"] if row["head"] == head_sha256 else len(first)
    return first, _Position(offset, row["intervals"], head_sha256)


def _lines(stream: BinaryIO, run_id: str, offset: int) -> Iterator[bytes]:
    """Complete lines from an offset in the decompressed content; an incomplete one is left for later."""
    stream.seek(0)
    if plain_content(stream) is stream:
        stream.seek(offset)
        while (line := read_line(stream)).endswith(b"\n"):
            yield line
        if len(line) == most_line_bytes(line):
            raise BadInput(f"{run_id}: a line exceeds {len(line)} bytes")
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


@dataclass
class _Batch:
    """New data of some lines: all ``events``, since reading those twice changes nothing, and new intervals.

    ``passed`` intervals and ``bytes`` are consumed.  ``ahead_ns``: how far the times of the remaining lines are ahead
    of this machine's clock; None if they are not.
    """

    intervals: list[Interval] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    passed: int = 0
    bytes: int = 0
    ahead_ns: int | None = None


def _parsed(taking: _RunIngest, place: _Position, lines: list[bytes]) -> _Batch:
    """The data of some lines.  Intervals ahead of this machine's clock wait, unless the recording later returns to
    earlier times: then the board's clock was set in between, and they are skipped."""
    now_s, batch, taken, size = taking.history.wall_s(), _Batch(), 0, 0
    for line in lines:
        part = part_of(line, taking.run_id, taking.head)
        size += len(line)
        if isinstance(part, Interval) and part.seq >= place.intervals:
            if part.seq != place.intervals + taken:
                raise BadInput(
                    f"{taking.run_id}: interval {part.seq} is out of order (expected {place.intervals + taken})"
                )
            taken += 1
            if is_interval_ahead(part, now_s):
                latest_ns = max(part.begin_wall_ns, part.end_wall_ns)
                batch.ahead_ns = max(batch.ahead_ns or 0, latest_ns - int(now_s * 1e9))
                continue
            batch.intervals.append(part)
            batch.ahead_ns = None
        elif isinstance(part, Event) and not is_ahead(part.at.wall_ns, now_s):
            batch.events.append(part)
        if batch.ahead_ns is None:
            batch.passed, batch.bytes = taken, size
    return batch


@dataclass(frozen=True)
class _RunIngest:
    """A run that is being read."""

    history: History
    run_id: str
    head: Head

    def put(self, place: _Position, after: _Position, intervals: list[Interval], events: list[Event]) -> bool:
        """Store the data between two positions and the new position in one transaction; returns False if another
        process was faster."""
        with self.history.writing() as connection:
            end_s = intervals[-1].end_wall_ns // 10**9 if intervals else None
            board, run = enter_run(connection, self.run_id, self.head, self._begin_s(intervals), end_s)
            if stands_at(connection, run) != place.intervals:
                return False
            if place.intervals:  # only then can a closed month have values of this run
                begins_s = {slot_s(interval.begin_wall_ns) for interval in intervals}
                restore_rows(self.history, connection, board, run, begins_s)
            write_parts(connection, [NewPart(board, run, self.run_id, self.head, intervals, events)])
            put(
                connection,
                CURSOR,
                [{"run": run, "head": after.head, "offset": after.offset, "intervals": after.intervals}],
            )
            mark_outdated(connection, BOARD.c.id == board)
        return True

    def _begin_s(self, intervals: list[Interval]) -> int:
        """Begin of the run; that of its first interval if the head is ahead of this machine's clock."""
        if is_ahead(self.head.begin.wall_ns, self.history.wall_s()):
            return intervals[0].begin_wall_ns // 10**9 if intervals else 0
        return self.head.begin.wall_ns // 10**9


@dataclass(frozen=True)
class NewPart:
    """New intervals and events of a run; ``name``: that of its recording in messages."""

    board: int
    run: int
    name: str
    head: Head
    intervals: Sequence[Interval]
    events: Sequence[Event]


def write_parts(connection: Connection, parts: Sequence[NewPart]) -> None:
    """Add new intervals and events to all tables.  Raises BadInput for numbers that no measurement can have."""
    sources = [sources_of(part.head) for part in parts]
    series = series_numbers(connection, [source for each in sources for source in each.values()])
    sums = []
    for part, those in zip(parts, sources, strict=True):
        cells, pile = interval_rows(part.intervals, those, series)
        require_possible(part.name, cells)
        if cells:
            step_s = max(1, part.head.interval_ns // 10**9)
            sums.append(RunCells(part.board, part.run, cells, pile, part.intervals[-1].end_wall_ns // 10**9, step_s))
    add_cells(connection, sums)
    for part, those in zip(parts, sources, strict=True):
        standouts = standouts_of(part.events, those, event_series(part.head), series)
        if standouts:
            _add_standouts(connection, part.board, part.run, standouts)


@dataclass(frozen=True)
class KnownRun:
    """A run in the history: numbers of board and run, when its data end, and the number of its next interval."""

    board: int
    run: int
    end_s: int
    next: int


def known_runs(connection: Connection, names: Iterable[str]) -> dict[str, KnownRun]:
    """The runs of these names that the history has."""
    question = (
        select(RUN.c.name, RUN.c.board, RUN.c.id, RUN.c.end_s, CURSOR.c.intervals)
        .outerjoin(CURSOR, CURSOR.c.run == RUN.c.id)
        .where(RUN.c.name.in_(names))
    )
    return {
        name: KnownRun(board, run, end_s, after or 0) for name, board, run, end_s, after in connection.execute(question)
    }


def put_ends(connection: Connection, ends_s: Mapping[int, int]) -> None:
    """Note when the data of runs end, by number of the run."""
    if ends_s:
        connection.execute(
            update(RUN).where(RUN.c.id == bindparam("number")).values(end_s=bindparam("end")),
            [{"number": number, "end": end_s} for number, end_s in sorted(ends_s.items())],
        )


def stands_at(connection: Connection, run: int) -> int:
    """Number of intervals of a run that the history has: the number of the next one."""
    return connection.execute(select(CURSOR.c.intervals).where(CURSOR.c.run == run)).scalar() or 0


def _add_standouts(
    connection: Connection, board: int, run: int, standouts: dict[tuple[int, str, int], Standout]
) -> None:
    """The greatest of each five minutes stays."""
    here = connection.execute(
        select(EVENT).where(EVENT.c.run == run, EVENT.c.slot_s.in_({slot_s for _, _, slot_s in standouts}))
    ).mappings()
    greatest = {(row["series"], row["kind"], row["slot_s"]): row["value_ns"] for row in here}
    put(
        connection,
        EVENT,
        [
            {
                "board": board,
                "run": run,
                "series": key[0],
                "kind": key[1],
                "slot_s": key[2],
                "at_s": standout.at_s,
                "cpu": standout.cpu,
                "value_ns": standout.value_ns,
                "culprit": standout.culprit,
            }
            for key, standout in standouts.items()
            if standout.value_ns > greatest.get(key, -1)
        ],
    )


@dataclass
class HistoryFollower:
    """Called repeatedly: reads the new data of the store, and closes old months once a day."""

    history: History
    store: Store
    wall_s: Callable[[], float] = time.time
    _closed_day: int = field(default=-1, init=False)

    def __call__(self) -> IngestResult:
        caught, now_s = catch_up(self.history, self.store), int(self.wall_s())
        if now_s // DAY_S != self._closed_day:
            close_months(self.history, now_s)
            self._closed_day = now_s // DAY_S
        return caught


class UploadFollower:
    """Called repeatedly: reads ``uploaded`` runs of a store, and computes outdated summaries again.

    For a history that a farm updates, which does not know of uploads.  The first call also reads the runs of the store
    that a former process did not read.  A run stays ``uploaded`` while the database is unavailable.  A run that is
    ahead of this machine's clock, or that could not be read, is read again each minute, and delays no other.
    """

    def __init__(self, history: History, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.uploaded: deque[str] = deque()
        self._history, self._store, self._clock = history, store, clock
        self._refresh = SummaryRefresher(history)
        self._again: list[str] = []
        self._again_s = clock() + _AGAIN_S
        self._resumed = False

    def __call__(self) -> None:
        """Raises FastenoughError if a run could not be read, after all others were."""
        if not self._resumed:
            unread = {run.id for run in _unread_runs(self._history, self._store) if run.state != "running"}
            self.uploaded.extend(sorted(unread.difference(self.uploaded)))
            self._resumed = True
        if self._clock() >= self._again_s:
            self.uploaded.extend(self._again)
            self._again, self._again_s = [], self._clock() + _AGAIN_S
        faults: list[FastenoughError] = []
        while self.uploaded:
            try:
                self._read(self.uploaded[0])
            except Unavailable:
                raise
            except FastenoughError as error:
                self._again.append(self.uploaded[0])
                faults += [] if isinstance(error, ClockAhead) else [error]
            self.uploaded.popleft()
        self._refresh()
        if faults:
            raise faults[0]

    def _read(self, run_id: str) -> None:
        for run in self._store.own_runs(id=run_id):
            try:
                _ingest_undamaged(self._history, self._store, run)
            except ClockAhead:
                raise
            except BadInput:  # noted with its board
                continue


_OF_BOARDS = (INTERVAL, HOUR, CYCLE, MONTH, NOW, EVENT, CHANGE, ARCHIVE, SUMMARY)
_OF_ALL = (PROFILE, SERIES)


def rebuild(history: History, store: Store, own: Collection[str] = (), farm: str = "") -> IngestResult:
    """Delete all data from recordings and read the recordings again.

    ``farm``: the calling farm, empty if there is none; ``own``: its boards, whose declared data stay.  A board that the
    farm no longer names is deleted; if the store has runs of it, they are read again as those of an undeclared board.
    Boards of other farms without runs in this store do not change, because they could not be read again here.  If this
    is interrupted, the next `catch_up` continues.  A run whose recording has a name that several boards have or had
    stays with its board, since the machines of these boards are unknown until their runs are read again.

    Until all is read again, the boards are `boards_under_rebuild`.  Recordings that a pull refused are in no store and
    stay; runs refused again keep the time at which they were first seen, also if this is interrupted.
    """
    stored = {run.id: run.board for run in store.own_runs()}
    mine = {*own, *stored.values()}
    with history.writing() as connection:
        shared = connection.dialect.name != "sqlite"
        theirs = select(BOARD.c.id).where(BOARD.c.is_declared.is_(True), BOARD.c.name.not_in(mine))
        if farm:
            theirs = theirs.where(BOARD.c.farm != farm) if shared else theirs.where(BOARD.c.farm.not_in(("", farm)))
        others = list(connection.scalars(theirs))
        undecided = runs_of_shared_names(connection, stored, others)
        runs = select(RUN.c.id).where(RUN.c.board.not_in(others))
        first_seen_s = _mark_refused_runs(connection, others)
        for table in _OF_BOARDS:
            connection.execute(delete(table).where(table.c.board.not_in(others)))
        connection.execute(delete(CURSOR).where(CURSOR.c.run.in_(runs)))
        connection.execute(delete(RUN).where(RUN.c.board.not_in(others)))
        for table in () if others else _OF_ALL:
            connection.execute(delete(table))
        connection.execute(delete(BOARD).where(BOARD.c.is_declared.is_(False)))
        if farm:
            connection.execute(delete(BOARD).where(BOARD.c.id.not_in(others), BOARD.c.name.not_in(own)))
        connection.execute(delete(REFUSED).where(REFUSED.c.board.not_in(select(BOARD.c.id))))
        keep_boards(connection, undecided)
        empty = {"configuration": "", "display_facts": "{}", "changed_s": None, "rebuilt_from": store.place}
        connection.execute(update(BOARD).where(BOARD.c.id.not_in(others)).values(**empty))
    flagged = boards_under_rebuild(history)
    caught = _read_runs(history, store)
    _finish_update(history, store, flagged, first_seen_s)
    return caught


def _mark_refused_runs(connection: Connection, others: Collection[int]) -> dict[str, int]:
    """Mark the refused and incomplete runs of all but ``others``; returns when each was first seen, by name.

    The rows of boards that a rebuild deletes are deleted with them: only the returned times remain of these.
    """
    chosen = (REFUSED.c.board.not_in(others), REFUSED.c.kind != "refused")
    rows = connection.execute(select(REFUSED.c.name, REFUSED.c.at_s).where(*chosen)).all()
    connection.execute(update(REFUSED).where(*chosen).values(kind=_NOT_AGAIN))
    return {name: at_s for name, at_s in rows}
