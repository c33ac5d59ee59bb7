# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch the recordings of a service on a board into the store: each one once, complete, with the gaps reported.

A pull may be interrupted at any time, and the next one continues.  Each recording is fetched from the offset at which
the last pull ended.  The hash of all fetched bytes must then equal the hash of the same bytes on the board.  A
recording is stored when it has its end, or when a newer recording shows that it was cut off.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import BinaryIO

from fastenough.board import Booted, configuration_in, marks_in
from fastenough.campaign.board_name import former_names, recorded_board
from fastenough.facts import Profile, collect, profile_sha256
from fastenough.link import Link
from fastenough.link.ring import CHUNK, MOST_BYTES, RecordingGone, Ring, RingFile
from fastenough.loads.read_back import with_proof
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Head, Instant, Interval, LoadStated, Reading
from fastenough.recording.building import HeadAdditions, completed_head, line_bytes
from fastenough.recording.lines import MOST_END_BYTES, MOST_LINE_BYTES
from fastenough.recording.reader import head_of
from fastenough.store import Store
from fastenough.store.spool import BoundElsewhere, Last, Spool

_MOST_REASON = 300
"""Maximum length of the reason of a rejection, in characters."""
_SAME_NS = 1_000_000_000
"""Maximum difference between the clocks over a gap of unknown boots; beyond it, the machine counts as rebooted."""


@dataclass(frozen=True)
class BoardNames:
    """Names of a board in the store, and the metadata that the bench adds to new recordings.

    ``former_names``: other names of the board in the store.  ``spool``: name under which partial recordings are filed;
    empty for the first of all names.
    """

    board: str
    added: Callable[[Head], HeadAdditions]
    former_names: tuple[str, ...] = ()
    spool: str = ""


@dataclass(frozen=True)
class StoredRecording:
    """A recording that is now in the store; ``outcome`` None: it was cut off.

    ``profile``: whether the profile of the board was taken during the boot of the recording.
    """

    run_id: str
    serial: int
    profile: bool
    outcome: str | None
    intervals: int
    duration_ns: int


@dataclass(frozen=True)
class PartialRecording:
    """A recording that still grows, of which ``bytes`` are fetched.

    ``name``: its name in `Store.arriving`.
    """

    run_id: str
    serial: int
    bytes: int
    name: str


@dataclass(frozen=True)
class RecordingGap:
    """Time between two recordings without data; ``ns`` None: its length is unknown.

    ``dropped``: number of recordings that were overwritten before they were pulled.
    """

    after: str
    before: str
    ns: int | None
    dropped: int
    reason: str


@dataclass(frozen=True)
class RejectedRecording:
    """A recording that was rejected, with the reason."""

    name: str
    reason: str


@dataclass
class PullResult:
    """Result of one pull.  ``newest``: name of the newest recording of the ring; empty if there is none."""

    stored: list[StoredRecording] = field(default_factory=list)
    under_way: list[PartialRecording] = field(default_factory=list)
    gaps: list[RecordingGap] = field(default_factory=list)
    refused: list[RejectedRecording] = field(default_factory=list)
    bytes: int = 0
    newest: str = ""


@dataclass(frozen=True)
class _Span:
    """End, outcome and number of intervals of a recording."""

    stopped: Instant
    outcome: str | None
    intervals: int


def _span_of(spool: Spool, file: RingFile) -> _Span:
    """Check a recording in the spool line by line; raises BadInput."""
    last: Interval | None = None
    count = 0
    with spool.opened(file.name) as stream:
        lines = Reading(stream, file.name)
        for part in lines:
            if isinstance(part, Interval):
                last, count = part, count + 1
    recording = lines.recording()
    if recording.run_id != file.run_id:
        raise BadInput(f"{file.name}: its head has the id of recording {recording.run_id[:80]}")
    stopped = lines.head.begin if last is None else Instant(last.end_mono_ns, last.end_wall_ns)
    return _Span(stopped, None if recording.outcome is None else recording.outcome.value, count)


def _lines_under(head: bytes, load: LoadStated | None, stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a recording with its completed head."""
    yield head
    stream.readline()
    yield from with_proof(stream, load) if load and load.read_back else stream


class _Pull:
    """One pull from one ring."""

    def __init__(self, ring: Ring, spool: Spool, store: Store, names: BoardNames) -> None:
        self._ring = ring
        self._spool = spool
        self._store = store
        self._names = names
        self._last = spool.last()
        self._before: Head | None = None
        self._refused_serials: list[int] = []
        self.done = PullResult()

    def all(self) -> PullResult:
        self._add_earlier_report()
        files = self._ring.list_files()
        newest = files[-1] if files else None
        self.done.newest = newest.name if newest else ""
        vanished = self._vanished(files)
        known = self._spool.refused()
        refused: dict[str, str] = {}
        for file in (*vanished, *files):
            why = known.get(file.name) or self._refusal(file, grows=file == newest)
            if why:
                refused[file.name] = why[:_MOST_REASON]
                self._refuse(file, refused[file.name])
        if refused != known:
            self._spool.keep_refused(refused)
        self._spool.clear_report()
        return self.done

    def _add_earlier_report(self) -> None:
        """Add the stored recordings and gaps of pulls that were interrupted before they could report them."""
        entries = self._spool.report()
        with suppress(KeyError, TypeError):
            gaps = [RecordingGap(**entry["gap"]) for entry in entries if "gap" in entry]
            noted = [StoredRecording(**entry["stored"]) for entry in entries if "stored" in entry]
            stored = [recording for recording in noted if self._store.runs(id=recording.run_id, brief=True)]
            self.done.gaps += dict.fromkeys(gaps)
            self.done.stored += dict.fromkeys(stored)

    def _refusal(self, file: RingFile, *, grows: bool) -> str:
        """Take one recording; returns the reason if it is rejected for good, else empty."""
        try:
            self._one(file, grows=grows)
        except BoundElsewhere as error:
            self._refuse(file, str(error))
            if not self._spool.size(file.name):  # what is here of it stays: a person must decide whose it is
                self._spool.release(file.name, file.run_id)
        except BadInput as error:
            self._spool.release(file.name, file.run_id)  # it will never be another
            return str(error) or "not a recording"
        return ""

    def _refuse(self, file: RingFile, why: str) -> None:
        self.done.refused.append(RejectedRecording(file.name, why))
        self._refused_serials.append(file.serial)

    def _vanished(self, files: list[RingFile]) -> list[RingFile]:
        """Partly fetched recordings that the board has overwritten, oldest first.

        They are older than all in the ring, whose serials begin anew if it was recreated.
        """
        there = {file.name for file in files}
        return [
            RingFile(int(name[:10]), name[11:].removesuffix(".jsonl"), name, 0)
            for name in self._spool.names()
            if name not in there
        ]

    def _one(self, file: RingFile, *, grows: bool) -> None:
        if not self._is_stored(file):
            self._spool.bind(file.name, file.run_id)
        if self._is_stored(file):  # also where that happened before the id was bound to this ring
            self._pass(file)
            return
        self._fetch(file)
        if not self._spool.size(file.name):
            self._spool.release(file.name, file.run_id)
            return
        line, head = self._head_and_line(file)
        if grows and not self._has_end(file):
            self._tell_gap(file, head)
            self.done.under_way.append(
                PartialRecording(file.run_id, file.serial, self._spool.size(file.name), file.name)
            )
        else:
            self._store_one(file, line, head)

    def _is_stored(self, file: RingFile) -> bool:
        """Whether the store has the recording; raises BoundElsewhere if its id is that of a run of another board."""
        known = self._store.runs(id=file.run_id, brief=True)
        if known and known[0].board not in (self._names.board, *self._names.former_names):
            raise BoundElsewhere(f"{file.name}: the store has a run of this name from {known[0].board}")
        return bool(known)

    def _head_and_line(self, file: RingFile) -> tuple[bytes, Head]:
        """Completed head, with the metadata of the time when the bench first saw the recording."""
        line = self._spool.head(file.name)
        if line is None:
            with self._spool.opened(file.name) as stream:
                line = stream.readline(MOST_LINE_BYTES)
            added = self._known(head_of(line, file.name))
            line = line_bytes(completed_head(json.loads(line), file.run_id, added))
            self._spool.keep_head(file.name, line)
        self._before = head = head_of(line, file.name)
        return line, head

    def _known(self, head: Head) -> HeadAdditions:
        """Metadata of the bench; after a reboot, those of the previous recording if both are of one boot."""
        added, before = self._names.added(head), self._before
        if added.profile is not None or before is None or before.boot_id is None or before.boot_id != head.boot_id:
            return added
        return replace(
            added, configuration=before.configuration, profile=before.profile, profile_sha256=before.profile_sha256
        )

    def _fetch(self, file: RingFile) -> None:
        """Fetch a recording; raises FastenoughError if its hash does not match after a second attempt."""
        if not self._fetched(file):
            self._spool.clear(file.name)
            if not self._fetched(file):
                self._spool.clear(file.name)
                raise FastenoughError(f"{file.name}: the received data do not match their hash; pull again")

    def _fetched(self, file: RingFile) -> bool:
        offset = line_from = self._spool.size(file.name)
        try:
            while chunk := self._ring.read(file, offset):
                self._spool.add(file.name, chunk)
                self.done.bytes += len(chunk)
                line_from = offset + chunk.rfind(b"\n") + 1 if b"\n" in chunk else line_from
                offset += len(chunk)
                if offset > MOST_BYTES:
                    raise BadInput(f"{file.name}: longer than {MOST_BYTES} bytes, the maximum of a recording in a ring")
                if offset - line_from > MOST_END_BYTES:
                    raise BadInput(f"{file.name}: a line is longer than {MOST_END_BYTES} bytes")
                if len(chunk) < CHUNK:
                    break
            whole = self._spool.size(file.name)
            if not whole and not file.bytes:
                return True
            same = self._ring.sha256(file, whole) == self._spool.sha256(file.name)
        except RecordingGone:
            return True  # what is here of it is all that will ever be
        if offset < file.bytes:
            raise FastenoughError(
                f"{file.name}: the board sent {offset} of {file.bytes} bytes; pull again; if this repeats, check the "
                "disk of the board (dmesg), or remove this file there"
            )
        return same

    def _has_end(self, file: RingFile) -> bool:
        with self._spool.opened(file.name) as stream:
            *_, last = deque(stream, maxlen=1)
        return last.startswith(b'{"type":"end"')

    def _store_one(self, file: RingFile, line: bytes, head: Head) -> None:
        span = _span_of(self._spool, file)
        stored = StoredRecording(
            file.run_id,
            file.serial,
            head.profile is not None,
            span.outcome,
            span.intervals,
            span.stopped.mono_ns - head.begin.mono_ns,
        )
        self._spool.add_report({"stored": asdict(stored)})
        with self._spool.opened(file.name) as stream:
            self._store.adopt(self._spool, _lines_under(line, head.load, stream), file.run_id)
        self._tell_gap(file, head)
        self._keep(file, head, span.stopped, span.outcome is not None)
        self._spool.release(file.name, file.run_id)
        self.done.stored.append(stored)

    def _pass(self, file: RingFile) -> None:
        """Note a recording that is already stored, since an interrupted pull may not have."""
        self._spool.release(file.name, file.run_id)
        if self._last is None or file.serial > self._last.serial:
            recording = self._store.load(file.run_id)
            self._tell_gap(file, recording.head)
            self._keep(file, recording.head, recording.stopped, recording.end is not None)

    def _keep(self, file: RingFile, head: Head, stopped: Instant, ended: bool) -> None:
        self._last = Last(file.serial, file.run_id, stopped.mono_ns, stopped.wall_ns, ended, boot_id=head.boot_id)
        self._spool.keep_last(self._last)

    def _tell_gap(self, file: RingFile, head: Head) -> None:
        last = self._last
        if (
            last is None
            or last.gap_told == file.run_id
            or (head.begin.mono_ns, head.begin.wall_ns) == (last.mono_ns, last.wall_ns)
        ):
            return
        refused = sum(last.serial < serial < file.serial for serial in self._refused_serials)
        dropped = max(0, file.serial - last.serial - 1 - refused)
        reason = (
            "recordings between them were overwritten before they were pulled"
            if dropped
            else "the recordings between them were rejected"
            if refused
            else "nothing was recorded between them"
            if last.ended
            else "the first recording was interrupted"
        )
        gap = RecordingGap(last.run_id, file.run_id, _between_ns(last, head), dropped, reason)
        if gap not in self.done.gaps:  # an interrupted pull may have stored it just before it ended
            self._spool.add_report({"gap": asdict(gap)})
            self.done.gaps.append(gap)
        self._last = replace(last, gap_told=file.run_id)
        self._spool.keep_last(self._last)


def _between_ns(last: Last, head: Head) -> int | None:
    """Length of the gap before a recording: by the monotonic clock within one boot, else by the wall clock."""
    mono_ns, wall_ns = head.begin.mono_ns - last.mono_ns, head.begin.wall_ns - last.wall_ns
    if last.boot_id is None or head.boot_id is None:
        rebooted = mono_ns < 0 or abs(mono_ns - wall_ns) >= _SAME_NS
    else:
        rebooted = last.boot_id != head.boot_id
    between_ns = wall_ns if rebooted else mono_ns
    return between_ns if between_ns >= 0 else None


def pull(link: Link, ring: str, store: Store, names: BoardNames, waiting: Callable[[], None]) -> PullResult:
    """Fetch all new recordings of a ring directory of a board into the store.

    ``waiting`` is called where another pull of this ring is at work, which this one then waits for.  Raises BadInput
    where there is no ring, FastenoughError where the board cannot be reached; what has come stays, for the next pull.
    """
    with store.spool(names.spool or (*names.former_names, names.board)[0], ring, waiting) as spool:
        return _Pull(Ring(link, ring), spool, store, names).all()


@dataclass(frozen=True)
class BoardAnnotations:
    """Metadata for the recordings of a board.

    ``load``: stated load.  ``marks``: marks for all of its recordings.  ``address``: by which the board is reached.
    """

    name: str
    booted: Booted
    load: LoadStated | None = None
    marks: tuple[str, ...] = ()
    address: str | None = None

    @cached_property
    def _profile(self) -> Profile:
        return collect(self.booted.link)

    def added(self, head: Head) -> HeadAdditions:
        """Metadata of one recording; without a profile if it is from an earlier boot, perhaps of another kernel.

        Marks restrict conclusions and apply to the machine, whatever it has booted.
        """
        marks = tuple(dict.fromkeys((*self.booted.marks, *marks_in(self._profile), *self.marks)))
        if head.boot_id is None or head.boot_id != self._profile["boot_id"]:
            return HeadAdditions(self.name, None, self.load, marks=marks, address=self.address)
        return HeadAdditions(
            self.name,
            configuration_in(self._profile),
            self.load,
            self._profile,
            profile_sha256(self._profile),
            marks=marks,
            address=self.address,
        )


def board_names(board: str, booted: Booted, ring: str, store: Store, tell: Callable[[str], None]) -> BoardNames:
    """Return the names for a pull from a board that is given as on the command line; it is named as in its runs.

    ``tell`` is called with a note if earlier runs of this name are of another machine.
    """
    recorded = recorded_board(board, booted.link, store)
    if recorded.note is not None:
        tell(recorded.note)
    former = former_names(board, recorded, store)
    spool = next((name for name in (recorded.name, *former) if store.has_spool(name, ring)), recorded.name)
    annotations = BoardAnnotations(recorded.name, booted, address=recorded.address)
    return BoardNames(recorded.name, annotations.added, former, spool)
