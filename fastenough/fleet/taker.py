# SPDX-License-Identifier: GPL-2.0-or-later
"""Store the chunks of the stream in the archive and the database, each interval exactly once.

The part of the archive is written first, then one transaction writes rows, sums and position in the stream.  If that
fails, the same messages are read again and the part is replaced.  The boards are answered after the commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from sqlalchemy import Connection
from sqlalchemy.exc import DataError

from fastenough.fleet import tables
from fastenough.fleet.ahead import AheadPart, AheadRuns, is_board_on_time
from fastenough.fleet.archive import ArchiveRow, EventRow, FleetArchive, PartPlace, archived_name, month_of
from fastenough.fleet.archived_events import event_rows
from fastenough.fleet.chunk import Chunk, Stored, unpacked
from fastenough.fleet.stream import ChunkStream, Message, StreamState, fitting, is_full
from fastenough.fleet.tables import MachineRow, ShardPosition, locked_position, put_position
from fastenough.history import BoardColumns, History, refresh_summaries
from fastenough.history.boards import declare_boards, enter_run, lock_boards
from fastenough.history.database import put
from fastenough.history.ingest import KnownRun, NewPart, known_runs, put_ends, write_parts
from fastenough.history.intervals import HistorySeries, is_ahead, is_interval_ahead, main_place, sources_of
from fastenough.history.rollups import DAY_S
from fastenough.history.schema import CURSOR
from fastenough.history.summaries import put_summaries
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Event, Head, Instant, Interval
from fastenough.recording.histogram import bucket_lowest
from fastenough.recording.reader import head_of, part_of

_MOST = 256
"""Messages in one transaction."""
_FORGET_S = 10.0
_AGAIN_S = 1.0
_SAY_AGAIN_S = 60.0
_CLEAN_S = 3600.0
_MOST_BOOTS = 200
_MOST_TYPE = 200
_MOST_PARTITIONS = 32
"""Types and months in one transaction, and in one chunk: each is a file in each table of the archive."""
_MOST_REPEATED = 32 << 10
"""Length of a head that stays in memory for the next chunk: thousands do."""


@dataclass(frozen=True)
class RefusedChunk:
    """A chunk that was not stored, and why."""

    machine: str
    reason: str


@dataclass(frozen=True)
class Taken:
    """What one transaction stored: the new position, answers to boards by machine, and refused chunks."""

    position: ShardPosition
    answers: tuple[tuple[str, Stored], ...]
    refused: tuple[RefusedChunk, ...]


@dataclass(frozen=True)
class _Content:
    """A chunk, parsed and checked, without its lines.

    ``before``: by number of an interval, the events between the one before and it.  ``intervals``: without those ahead
    of this machine's clock.  ``waiting``: those ahead that the board is to keep; ``next``: the number after all others.
    ``months``: of the intervals and their events in the archive.
    """

    chunk: Chunk
    head: Head
    intervals: tuple[Interval, ...]
    events: tuple[Event, ...]
    before: Mapping[int, Sequence[Event]]
    waiting: AheadPart | None
    next: int
    months: frozenset[str]

    @property
    def name(self) -> str:
        """Name of its run in the history; run ids are unique on one machine only."""
        return f"{self.chunk.machine}/{self.chunk.run}"


class Shard:
    """The messages of one shard, stored in order.  ``site``: of all boards that publish; empty: unknown."""

    def __init__(self, history: History, archive: FleetArchive, number: int, site: str = "") -> None:
        self._history, self._archive, self.number, self._site = history, archive, number, site

    def position(self, state: StreamState, oldest: int | None) -> ShardPosition:
        """Position from which to read this stream; removes the part of a failed transaction from the archive.

        ``oldest``: number of the oldest message of the shard in the stream; None: there is none.  Raises BadInput, and
        removes nothing, if the database has no position and the archive has files; FastenoughError if it has files
        that are newer than the database.
        """
        first = ShardPosition(state.made, 0, 0)
        with self._history.writing() as connection:
            # locked: what another taker is about to commit must not be removed from the archive
            if tables.enter_position(connection, self.number, first):
                self._require_no_files()
                return first
            last = locked_position(connection, self.number) or first
            self._drop_failed(last, state, oldest)
            begin = _begin_in(state, last)
            put_position(connection, self.number, begin)
        return begin

    def _require_no_files(self) -> None:
        """Raise BadInput if the shard has files: the position is committed before the first one is written."""
        if self._archive.has_files(self.number):
            raise BadInput(
                f"archive {self._archive.location}: it has files of shard {self.number:x}, but the database has no "
                "position of this shard; nothing was changed; pass --database of this archive, or a new --archive"
            )

    def _drop_failed(self, last: ShardPosition, state: StreamState, oldest: int | None) -> None:
        """Remove the parts of failed transactions behind a position; arguments as of `position`.

        The stream still holds their messages, or has lost those of a single part: then the boards publish them again,
        and the part gets a hidden name.  Raises FastenoughError for other parts, which takers have reported as stored.
        """
        parts = self._archive.parts_from(PartPlace(self.number, last.epoch, last.sequence + 1))
        places = sorted({place for _, place in parts})
        if not places:
            return
        begin = places[0].sequence
        is_lost = last.stream != state.made or state.last < begin
        is_held = oldest is not None and oldest <= begin and not is_lost
        if places[-1].epoch != last.epoch or not (is_held or (is_lost and len(places) == 1)):
            raise FastenoughError(
                f"archive {self._archive.location}: files of shard {self.number:x} from "
                f"{places[0].epoch:04}-{begin:012} on are newer than this database; nothing was changed; "
                "pass --database of this archive, or move these files elsewhere (boards publish again what they hold)"
            )
        for path, _ in parts:
            if is_lost:
                self._archive.hide(path)
            else:
                self._archive.remove(path)

    def drop_old_days(self) -> None:
        """Delete the single intervals that the database no longer keeps."""
        tables.drop_before(self._history, self._history.wall_s())

    def refresh_summaries(self) -> None:
        """Compute again the outdated summaries, by which pages search and sort boards."""
        refresh_summaries(self._history, int(self._history.wall_s()))

    def store(self, position: ShardPosition, messages: Sequence[Message]) -> Taken:
        """Store messages that follow a position, or the first of them.  A message that cannot be stored is refused.

        Raises FastenoughError where another taker has stored some of them, or the database cannot be used, and OSError
        where the archive cannot be used.
        """
        messages = fitting(messages)
        try:
            return self._store_all(position, messages)
        except Exception as error:
            if not _is_of_content(error):
                raise
            return self._store_fewer(position, messages, error)

    def _store_fewer(self, position: ShardPosition, messages: Sequence[Message], error: Exception) -> Taken:
        """Half of messages that could not be stored; a single one is refused, or it would fail for ever."""
        after = replace(position, sequence=messages[0].sequence)
        with self._history.writing() as connection:
            _require_unchanged(connection, self.number, position)
            self._archive.drop_from(PartPlace(self.number, position.epoch, messages[0].sequence))
            if len(messages) == 1:
                put_position(connection, self.number, after)
        if len(messages) > 1:
            return self.store(position, messages[: len(messages) // 2])
        reason = str(error) if isinstance(error, BadInput) else f"cannot be stored: {_kind_of(error)}"
        return Taken(after, (), (RefusedChunk(messages[0].machine, reason),))

    def _store_all(self, position: ShardPosition, messages: Sequence[Message]) -> Taken:
        now_s = self._history.wall_s()
        contents, refused, sequence = _parsed(messages, now_s)
        after = replace(position, sequence=sequence)
        with self._history.writing() as connection:
            _require_unchanged(connection, self.number, position)
            tables.ensure_days(connection, _kept_days(contents, now_s))
            writing = _Writing(connection, contents, self._site, now_s)
            for content in contents:
                writing.add(content)
            writing.finish()
            place = PartPlace(self.number, position.epoch, messages[0].sequence)
            self._archive.write(place, writing.rows, writing.events)
            put_position(connection, self.number, after)
            if writing.boards:
                declare_boards(connection, writing.boards)
                put_summaries(connection, writing.boards, int(now_s))
        return Taken(after, tuple(writing.answers.values()), (*refused, *writing.refused))


def _is_in(position: ShardPosition, state: StreamState) -> bool:
    """Whether a stream is the one of this position, and has not lost its newest messages."""
    return position.stream == state.made and position.sequence <= state.last


def _begin_in(state: StreamState, stored: ShardPosition) -> ShardPosition:
    """Position from which to read a stream; with a new epoch if numbers are used again, as after a loss of messages."""
    if _is_in(stored, state):
        return stored
    return ShardPosition(state.made, stored.epoch + 1, 0 if stored.stream != state.made else state.last)


def _require_unchanged(connection: Connection, shard: int, position: ShardPosition) -> None:
    """Lock the shard's position until the transaction ends."""
    if locked_position(connection, shard) != position:
        raise FastenoughError(f"another taker stores shard {shard:x}")


def _kept_days(contents: Iterable[_Content], now_s: float) -> set[int]:
    """Days since 1970 of which single intervals are stored."""
    begins_s = (interval.begin_wall_ns // 10**9 for content in contents for interval in content.intervals)
    return {begin_s // DAY_S for begin_s in begins_s if begin_s >= tables.oldest_kept_s(now_s)}


def _is_of_content(error: Exception) -> bool:
    """Whether storing failed because of what was to be stored, so that it would fail again."""
    if isinstance(error, FastenoughError):
        return isinstance(error, BadInput) or isinstance(error.__context__, DataError)
    return not isinstance(error, OSError)


def _kind_of(error: Exception) -> str:
    cause = error.__context__ if isinstance(error, FastenoughError) else error
    return type(cause).__name__


def _parsed(messages: Sequence[Message], now_s: float) -> tuple[list[_Content], list[RefusedChunk], int]:
    """The first contents, at least one, that fit into one transaction; refused messages, and the number of the last."""
    contents, refused, sequence = list[_Content](), list[RefusedChunk](), 0
    partitions = set[tuple[str, str]]()
    for message in messages:
        try:
            content = _content(unpacked(message.payload, message.machine), now_s)
        except BadInput as error:
            refused.append(RefusedChunk(message.machine, str(error)))
        else:
            partitions |= {(content.chunk.type, month) for month in content.months}
            if contents and len(partitions) > _MOST_PARTITIONS:
                break
            contents.append(content)
        sequence = message.sequence
    return contents, refused, sequence


def _content(chunk: Chunk, now_s: float) -> _Content:
    name = f"{chunk.machine}/{chunk.run}"
    head = replace(_head(chunk.head, name), board=chunk.machine)
    if head.run_id != chunk.run:
        raise BadInput(f"{name}: the head is of another run")
    parts = [part_of(line, name, head) for line in chunk.lines]
    intervals = tuple(part for part in parts if isinstance(part, Interval))
    if [interval.seq for interval in intervals] != list(range(chunk.first, chunk.first + len(intervals))):
        raise BadInput(f"{name}: intervals are not in order")
    waiting = [] if is_board_on_time(chunk, now_s) else _waiting(intervals, now_s)
    after = chunk.first + len(intervals) - len(waiting) if intervals else chunk.oldest
    intervals = tuple(map(_as_measured, filter(_is_dated, _without_ahead(intervals, now_s))))
    known = [part for part in parts if not isinstance(part, Event) or not is_ahead(part.at.wall_ns, now_s)]
    events, before = tuple(part for part in known if isinstance(part, Event)), _events_before(known)
    months = _months(intervals, before)
    if len(months) > _MOST_PARTITIONS:
        raise BadInput(f"{name}: a chunk has intervals or events of more than {_MOST_PARTITIONS} months")
    return _Content(replace(chunk, lines=()), head, intervals, events, before, _ahead_part(waiting), after, months)


def _months(intervals: Sequence[Interval], before: Mapping[int, Sequence[Event]]) -> frozenset[str]:
    """Months of the intervals and of the events before them, as in the archive."""
    begins_ns = {interval.begin_wall_ns for interval in intervals}
    events_ns = {_event_ns(event.at, interval) for interval in intervals for event in before[interval.seq]}
    return frozenset(month_of(time_ns // 10**9) for time_ns in begins_ns | events_ns)


def _is_dated(interval: Interval) -> bool:
    """Whether an interval is after 1970.  No job could read an archive with an earlier one, which is skipped."""
    return min(interval.begin_wall_ns, interval.end_wall_ns, _as_measured(interval).begin_wall_ns) >= 0


def _as_measured(interval: Interval) -> Interval:
    """The interval as long by the wall clock as by CLOCK_MONOTONIC: the wall clock may have been set within it."""
    length_ns = interval.end_mono_ns - interval.begin_mono_ns
    return replace(interval, begin_wall_ns=interval.end_wall_ns - length_ns)


def _event_ns(at: Instant, interval: Interval) -> int:
    """The time of an event, by the wall clock at the end of its interval if this was set by 1 s or more in between.

    In suspend the wall clock continues and CLOCK_MONOTONIC stops: the event may then be before or after it, and its own
    time is kept.
    """
    at_ns = interval.end_wall_ns - (interval.end_mono_ns - at.mono_ns)
    within = interval.begin_mono_ns <= at.mono_ns <= interval.end_mono_ns
    was_set = abs(at_ns - at.wall_ns) >= 10**9 and not interval.counters.get("suspended_ns")
    return at_ns if within and was_set else at.wall_ns


def _without_ahead(intervals: Sequence[Interval], now_s: float) -> tuple[Interval, ...]:
    """The intervals that are not ahead of this machine's clock.

    An interval ahead is skipped if a later one of the chunk is not ahead, or if the board's clock is right when it
    publishes: it was set in between.  Otherwise those after the last one that is not ahead wait on the board, because
    its clock, or this one, may still be set.  They are skipped once a later chunk shows that it was set.
    """
    return tuple(interval for interval in intervals if not is_interval_ahead(interval, now_s))


def _waiting(intervals: Sequence[Interval], now_s: float) -> list[Interval]:
    """The intervals ahead behind all others, last first."""
    return list(takewhile(lambda interval: is_interval_ahead(interval, now_s), reversed(intervals)))


def _ahead_part(waiting: Sequence[Interval]) -> AheadPart | None:
    least_ns = min((max(interval.begin_wall_ns, interval.end_wall_ns) for interval in waiting), default=0)
    return AheadPart(waiting[0].seq + 1, least_ns) if waiting else None


def _events_before(parts: Iterable[Interval | Event | object]) -> dict[int, list[Event]]:
    """The events before each interval; those after the last one come again, with the next chunk of the run."""
    before: dict[int, list[Event]] = {}
    waiting: list[Event] = []
    for part in parts:
        if isinstance(part, Event):
            waiting.append(part)
        elif isinstance(part, Interval):
            before[part.seq], waiting = waiting, []
    return before


def _head(line: bytes, name: str) -> Head:
    """Parse a head; a short one is cached, since each chunk of a run repeats it."""
    return _repeated_head(line, name) if len(line) <= _MOST_REPEATED else head_of(line, name)


@lru_cache(maxsize=4096)
def _repeated_head(line: bytes, name: str) -> Head:
    return head_of(line, name)


class _Writing:
    """One transaction: ``rows`` and ``events`` for the archive, and ``answers``: machine and answer, for each run.

    ``boards``: the declared columns of each board of which intervals are stored, by its number.  Known
    boards and runs are read for all contents together, and `finish` writes all results together: at tens of boards a
    second, separate statements for each content would take most of the time.
    """

    def __init__(
        self,
        connection: Connection,
        contents: Sequence[_Content],
        site: str,
        now_s: float,
    ) -> None:
        self._connection, self._site, self._now_s = connection, site, now_s
        self.rows: list[tuple[str, ArchiveRow]] = []
        self.events: list[tuple[str, EventRow]] = []
        self.answers: dict[str, tuple[str, Stored]] = {}
        self.refused: list[RefusedChunk] = []
        self.boards: dict[int, BoardColumns] = {}
        machines = {content.chunk.machine for content in contents}
        lock_boards(connection, machines)
        self._machines = tables.machines(connection, machines)
        self._runs = known_runs(connection, {content.name for content in contents})
        self._ahead = AheadRuns(connection, machines)
        self._parts: list[NewPart] = []
        self._single: list[dict[str, int | None]] = []
        self._ends_s: dict[int, int] = {}
        self._next: dict[int, int] = {}

    def add(self, content: _Content) -> None:
        chunk, name = content.chunk, content.name
        if content.waiting is not None and not content.intervals:
            self._note_ahead(content, content.waiting)
            return
        fault = self._machine_fault(content)
        if fault:
            self.refused.append(RefusedChunk(chunk.machine, fault))
            return
        is_undated, known = self._is_undated(content), self._known(content)
        place = None if is_undated else self._entered(content)  # an undated run is entered with its first intervals
        # the board still has what is missing, and publishes again
        if chunk.first > max(known, chunk.oldest, self._skipped(content)):
            self.answers[name] = chunk.machine, Stored(chunk.run, known)
            return
        new = [interval for interval in content.intervals if interval.seq >= known]
        # a chunk without intervals only reports which ones the board no longer holds
        after = max(known, content.next)
        self.answers[name] = chunk.machine, Stored(chunk.run, after)
        if after == known:
            if content.waiting is not None:
                self._note_ahead(content, content.waiting)
            return
        self._note_lost(chunk.machine, after - known - len(new))
        if place is None:
            self._ahead.note(chunk, AheadPart(dropped=after))
            return
        self._ahead.note(chunk, content.waiting or AheadPart())
        if new:
            self._parts.append(NewPart(place.board, place.run, name, content.head, new, content.events))
            self._add_rows(place, content, new)
            due_s = max(1, content.head.interval_ns // 10**9)
            self.boards[place.board] = {"type": chunk.type[:_MOST_TYPE], "due_s": due_s, "farm": tables.PUBLISHES}
            if self._site:
                self.boards[place.board]["site"] = self._site
        self._runs[name], self._next[place.run] = replace(place, next=after), after

    def _known(self, content: _Content) -> int:
        """Number before which nothing of a run is needed: it is stored, or the board may drop it."""
        place = self._runs.get(content.name)
        return max(place.next if place else 0, self._ahead.part(content.chunk).dropped)

    def _note_ahead(self, content: _Content, part: AheadPart) -> None:
        """Refuse the intervals ahead of a content, which has no new ones before them."""
        chunk, known, earlier = content.chunk, self._known(content), self._ahead.part(content.chunk)
        reason = f"{content.name}: times are ahead of the clock of this machine; set the wrong clock"
        self.refused.append(RefusedChunk(chunk.machine, reason))
        if known < earlier.next:
            part = AheadPart(max(part.next, earlier.next), min(part.least_ns, earlier.least_ns))
            known = earlier.next
        if chunk.first <= max(known, chunk.oldest):
            self._ahead.note(chunk, replace(part, dropped=earlier.dropped))

    def _skipped(self, content: _Content) -> int:
        """Number before which all unstored intervals of the run are ahead of the clock; 0: none are known."""
        part = self._ahead.part(content.chunk)
        is_set = content.intervals or is_board_on_time(content.chunk, self._now_s)
        return part.next if is_set and is_ahead(part.least_ns, self._now_s) else 0

    def finish(self) -> None:
        """Write all that was added, except the rows of the archive."""
        write_parts(self._connection, self._parts)
        put(self._connection, tables.INTERVAL, self._single)
        put_ends(self._connection, self._ends_s)
        cursors = [{"run": run, "head": "", "offset": 0, "intervals": after} for run, after in self._next.items()]
        put(self._connection, CURSOR, cursors)
        self._ahead.finish()

    def _is_undated(self, content: _Content) -> bool:
        """Whether nothing says when a new run was: its begin is ahead of this machine's clock, and no interval came."""
        is_new = content.name not in self._runs and not content.intervals
        return is_new and is_ahead(content.head.begin.wall_ns, self._now_s)

    def _begin_ns(self, content: _Content) -> int:
        """Begin of a run; that of its first interval if the head is ahead of this machine's clock."""
        begin_ns = content.head.begin.wall_ns
        return content.intervals[0].begin_wall_ns if is_ahead(begin_ns, self._now_s) else begin_ns

    def _entered(self, content: _Content) -> KnownRun:
        """The run of a content, which is entered if it is new."""
        name, ends = content.name, content.intervals[-1].end_wall_ns // 10**9 if content.intervals else None
        place = self._runs.get(name)
        if place is None:
            begin_s = self._begin_ns(content) // 10**9
            board, run = enter_run(self._connection, name, content.head, begin_s, ends)
            place = KnownRun(board, run, begin_s if ends is None else ends, 0)
        elif ends is not None and ends > place.end_s:
            self._ends_s[place.run] = ends
            place = replace(place, end_s=ends)
        self._runs[name] = place
        return place

    def _add_rows(self, place: KnownRun, content: _Content, new: Sequence[Interval]) -> None:
        archived = _archived(content.head)
        rows = [_row(content, interval, source) for interval in new for source in archived]
        self._single += [
            {
                "board": place.board,
                "run": place.run,
                "cpu": row.cpu,
                "interval": row.interval,
                "begin_s": row.begin_ns // 10**9,
                "count": row.count,
                "lost": row.lost,
                "missed": row.missed,
                "max_ns": row.max_ns,
            }
            for row in rows
            if row.begin_ns // 10**9 >= tables.oldest_kept_s(self._now_s)
        ]
        kind, machine = content.chunk.type, content.chunk.machine
        self.rows += [(kind, row) for row in rows]
        for interval in new:
            events = event_rows(machine, content.chunk.run, content.head, interval.seq, content.before[interval.seq])
            measured = (
                replace(event, at_ns=_event_ns(Instant(event.mono_ns, event.at_ns), interval)) for event in events
            )
            self.events += [(kind, event) for event in measured]

    def _machine_fault(self, content: _Content) -> str:
        """Why chunks of this machine are refused, or empty; a boot id that returns after another shows two machines."""
        machine, boot = content.chunk.machine, content.head.boot_id or ""
        row = self._machines.get(machine)
        boots = list(row.boots) if row else []
        fault = row.quarantine if row else ""
        if not fault and boot in boots[:-1] and self._is_new(content):
            fault = f"two boards have the machine id {machine}: boot {boot} returned after another one"
        # a report of lost intervals may come after those of later boots
        is_next = boot not in boots and bool(content.intervals)
        if row is None or fault != row.quarantine or is_next:
            boots = [*boots, boot][-_MOST_BOOTS:] if is_next else boots
            row = MachineRow(content.chunk.type, tuple(boots), row.lost if row else 0, fault)
            tables.put_machine(self._connection, machine, row)
            self._machines[machine] = row
        return fault

    def _is_new(self, content: _Content) -> bool:
        """Whether a chunk has intervals that are not stored yet."""
        place = self._runs.get(content.name)
        return bool(content.intervals) and content.intervals[-1].seq >= (place.next if place else 0)

    def _note_lost(self, machine: str, intervals: int) -> None:
        if intervals:
            row = self._machines[machine] = replace(
                self._machines[machine], lost=self._machines[machine].lost + intervals
            )
            tables.put_machine(self._connection, machine, row)


def _archived(head: Head) -> list[HistorySeries]:
    """The main series of each CPU, with its name in the archive."""
    of_cpu: dict[int, list[HistorySeries]] = {}
    for source in sources_of(head).values():
        of_cpu.setdefault(source.cpu, []).append(source)
    main = [(min(sources, key=lambda one: main_place(one.name)), len(sources)) for sources in of_cpu.values()]
    return [replace(source, name=archived_name(source.name, several)) for source, several in main]


def _row(content: _Content, interval: Interval, source: HistorySeries) -> ArchiveRow:
    number = source.series.id
    held = interval.histograms[number]
    return ArchiveRow(
        content.chunk.machine,
        content.chunk.run,
        source.cpu,
        interval.seq,
        interval.begin_wall_ns,
        interval.end_wall_ns,
        source.name,
        held.total,
        interval.lost[number],
        interval.missed[number],
        held.minimum,
        held.maximum,
        held.sum,
        bucket_lowest(held.index, held.k).tolist(),
        held.count.tolist(),
    )


class Taker:
    """Stores the chunks of some shards until it is cancelled.

    ``shards``: those that it stores.  ``gather_s``: pause between two transactions of a shard.  ``say`` receives
    failures and refusals.
    """

    def __init__(
        self, stream: ChunkStream, shards: Sequence[Shard], gather_s: float, say: Callable[[str], None]
    ) -> None:
        self._stream, self._shards = stream, shards
        self._gather_s, self._say = gather_s, say
        self._turn = asyncio.Lock()
        self._cleaned_s = -_CLEAN_S

    async def run(self) -> None:
        """Raises BadInput if the archive is that of another database."""
        await asyncio.gather(*map(self._take, self._shards))

    async def _take(self, shard: Shard) -> None:
        last, said_s = "", 0.0
        while True:
            try:
                await self._take_on(shard)
            except BadInput:  # the archive is that of another database
                raise
            except Exception as error:  # server or database went away, or another taker was quicker: read on anew
                reason = str(error) or type(error).__name__
                if reason != last or time.monotonic() - said_s > _SAY_AGAIN_S:
                    self._say(f"shard {shard.number:x}: {reason}; trying again")
                    last, said_s = reason, time.monotonic()
                await asyncio.sleep(_AGAIN_S)

    async def _take_on(self, shard: Shard) -> None:
        state = await self._stream.state()
        oldest = [message.sequence for message in await self._stream.read(shard.number, 0, 1)]
        async with self._turn:
            position = await asyncio.to_thread(shard.position, state, oldest[0] if oldest else None)
        forgotten_s = time.monotonic()
        while True:
            messages = await self._stream.read(shard.number, position.sequence, _MOST)
            if messages:
                async with self._turn:
                    taken = await asyncio.to_thread(shard.store, position, messages)
                position = taken.position
                await self._answer(taken)
            elif not _is_in(position, await self._stream.state()):
                return
            if time.monotonic() - forgotten_s > _FORGET_S:
                await self._stream.forget(shard.number, position.sequence)
                forgotten_s = time.monotonic()
                if shard.number == 0:
                    async with self._turn:
                        await asyncio.to_thread(shard.refresh_summaries)
            if shard.number == 0 and time.monotonic() - self._cleaned_s > _CLEAN_S:
                self._cleaned_s = time.monotonic()  # a failed attempt is repeated as late: other work must not wait
                async with self._turn:
                    await asyncio.to_thread(shard.drop_old_days)
            is_behind = bool(messages) and position.sequence < messages[-1].sequence
            if not is_behind and not is_full(messages, _MOST):
                await asyncio.sleep(self._gather_s)

    async def _answer(self, taken: Taken) -> None:
        for machine, stored in taken.answers:
            await self._stream.answer(machine, stored.packed())
        for refused in taken.refused:
            self._say(f"refused a chunk of {refused.machine}: {refused.reason}")
