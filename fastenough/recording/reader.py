# SPDX-License-Identifier: GPL-2.0-or-later
"""Reader of recordings: each line is checked; a truncated file is read to its last whole line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import fastjsonschema

from fastenough.model import BadInput, Outcome, Series
from fastenough.recording.aggregate import Aggregate, Aggregator
from fastenough.recording.content import Recording
from fastenough.recording.head import End, Event, Head, SeriesEnd
from fastenough.recording.histogram import Histogram, sums_fault
from fastenough.recording.interval import Interval
from fastenough.recording.interval_lines import checked_histogram, parsed_interval
from fastenough.recording.lines import JsonLine, Lines, parse_line
from fastenough.recording.parsing import parsed_end, parsed_event, parsed_head
from fastenough.recording.rises import total_fault
from fastenough.recording.timeline import Timeline
from fastenough.recording.versions import VERSIONS, line_validators, upgraded_end, upgraded_head

MOST_EVENT_BYTES = 16 << 20
"""Maximum size of all events of a recording: the probe's 10,000 take a fifth of it."""
_MOST_QUOTED = 200
"""Maximum length of the error about a line, which may quote the line."""
_EVENT = b'"event"'
_NO_EVENT = (b'{"type":"interval",', b'{"type":"end",')
_CUT_OFF = "the recording has no end line: it was cut off"


class Reading:
    """One pass over a recording in an open file (plain or zstd-compressed): intervals and events one by one.

    Each line is checked, and memory holds sums, not intervals.  ``head`` is available at once, ``recording``
    after the last line.  ``head_line`` and ``end_line`` are the lines of the file, in its version.
    Raises BadInput, with ``name`` in the message, for data that are not a recording, contradict themselves, or do not
    have the given hash.
    """

    def __init__(self, stream: BinaryIO, name: str, sha256: str | None = None) -> None:
        self._name = name
        self._sha256 = sha256
        self._source = Lines(stream, name)
        self._raw = enumerate(self._source, start=1)
        self._event_bytes = 0
        self._lines = self._in_order()
        with _readable(name):
            self.head_line = next(self._lines)[1]
        self.end_line: JsonLine | None = None
        self._upgraded = upgraded_head(self.head_line)
        self.head: Head = parsed_head(name, self._upgraded, self._version)
        self._end: End | None = None
        self._adding = Aggregator(name, self.head.series, self.head.interval_ns)

    @property
    def series(self) -> tuple[Series, ...]:
        return self.head.series

    def __iter__(self) -> Iterator[Interval | Event]:
        previous: Interval | None = None
        by_id = {series.id: series for series in self.series}
        with _readable(self._name):
            for number, line in self._lines:
                if line["type"] == "interval":
                    interval = parsed_interval(f"{self._name}:{number}", line, by_id)
                    self._check_follows(f"{self._name}:{number}", previous, interval)
                    self._adding.interval(interval)
                    previous = interval
                    yield interval
                elif line["type"] == "event":
                    event = parsed_event(line)
                    self._adding.event(event)
                    yield event
                else:
                    self.end_line = line
                    self._end = parsed_end(self._name, upgraded_end(line, self._upgraded), self.head)
        self._check_content()

    def events(self) -> Iterator[Event]:
        """Only the events, in a fraction of the time, of a recording that was read whole before; replaces the pass.

        Lines of other types were checked then; the hash is checked at the end.
        """
        with _readable(self._name):
            for number, raw in self._raw:
                if raw.startswith(_NO_EVENT) and _EVENT not in raw:
                    continue
                where = f"{self._name}:{number}"
                line = _typed_line(where, raw)
                if line["type"] == "event":
                    self._bound_events(number, raw)
                    yield parsed_event(_checked(where, line, self._version))
        self._check_content()

    def _bound_events(self, number: int, raw: bytes) -> None:
        self._event_bytes += len(raw)
        if self._event_bytes > MOST_EVENT_BYTES:
            raise BadInput(f"{self._name}:{number}: the events take more than {MOST_EVENT_BYTES} bytes")

    def _check_content(self) -> None:
        """Raises BadInput if the hash of the content is not the given one."""
        if self._sha256 is not None and self._source.sha256 != self._sha256:
            raise BadInput(
                f"{self._name}: SHA-256 mismatch: the content is not what was recorded"
                + (f"; {self._source.fault}" if self._source.fault else "")
            )

    def recording(
        self,
        intervals: Sequence[Interval] = (),
        events: Sequence[Event] = (),
        over_time: Callable[[], Timeline] | None = None,
    ) -> Recording:
        """The whole recording with the given intervals and events; only after the last line."""
        if self._end is not None and self._end.outcome is not Outcome.FAILED:  # its last interval may be missing
            self._adding.check_events()
        return assemble(
            self._name,
            self.head,
            self._end,
            self._adding.aggregate(),
            intervals=intervals,
            events=events,
            over_time=over_time,
        )

    def _check_follows(self, where: str, previous: Interval | None, interval: Interval) -> None:
        """Raises BadInput if the intervals do not cover the run without a gap from its begin."""
        if interval.seq != (0 if previous is None else previous.seq + 1):
            raise BadInput(f"{where}: interval {interval.seq} does not follow the previous one")
        if previous is None:
            if interval.begin_mono_ns < self.head.begin.mono_ns:
                raise BadInput(f"{where}: the first interval begins before the run")
        elif (interval.begin_mono_ns, interval.begin_wall_ns) != (previous.end_mono_ns, previous.end_wall_ns):
            raise BadInput(f"{where}: the interval does not begin where the previous one ends")

    def _in_order(self) -> Iterator[tuple[int, JsonLine]]:
        """Checked lines with their numbers: a head first, and nothing after an end."""
        previous = None
        for number, raw in self._raw:
            line = self._parsed(number, raw)
            if (line["type"] == "head") != (previous is None):
                raise BadInput(f"{self._name}:{number}: the head must be the first line, and only the first")
            if previous == "end":
                raise BadInput(f"{self._name}:{number}: there is data after the end line")
            previous = line["type"]
            if previous == "event":
                self._bound_events(number, raw)
            yield number, line
        if previous is None:
            raise BadInput(f"{self._name}: not a recording: the file is empty or truncated within its head")

    def _parsed(self, number: int, raw: bytes) -> JsonLine:
        """One line, checked against the schema of its type in the version that the head states."""
        where = f"{self._name}:{number}"
        line = _typed_line(where, raw)
        if number == 1:
            self._version = _stated_version(self._name, line)
        return _checked(where, line, self._version)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from error


def as_counted_by_instrument(head: Head, total: Histogram) -> Histogram:
    """The total in the buckets of an instrument: samples that it counted but could not send may be anywhere in one."""
    k = (head.instrument or {}).get("k")
    return total.folded(k) if isinstance(k, int) and 0 < k < total.k else total


def assemble(
    name: str,
    head: Head,
    end: End | None,
    added: Aggregate,
    *,
    intervals: Sequence[Interval],
    events: Sequence[Event],
    over_time: Callable[[], Timeline] | None = None,
) -> Recording:
    """A recording of parts checked one by one; raises BadInput if they contradict each other."""
    faults = [(number, total_fault(count)) for number, count in added.limits.items()]
    faults += [(number, sums_fault(as_counted_by_instrument(head, total))) for number, total in added.totals.items()]
    for number, fault in faults:
        if fault is not None:
            raise BadInput(f"{name}: series {number}: {fault}")
    recording = Recording(head, intervals, events, end, None if end else _CUT_OFF, added, over_time=over_time)
    if end is not None:
        _check_end(name, recording, end)
    return recording


def _typed_line(where: str, raw: bytes) -> JsonLine:
    """A line with a known type."""
    try:
        return _typed(where, parse_line(raw))
    except ValueError as error:
        raise BadInput(f"{where}: not a line of a recording: {str(error)[:_MOST_QUOTED]}") from error


def _typed(where: str, line: Any) -> JsonLine:
    kind = line.get("type") if isinstance(line, dict) else None
    if not isinstance(kind, str) or kind not in line_validators(VERSIONS[-1]):
        raise BadInput(
            f"{where}: not a line of a recording: type is not one of {', '.join(line_validators(VERSIONS[-1]))}"
        )
    return dict(line)


def _stated_version(name: str, line: Mapping[str, Any]) -> int:
    """The version of a head; the newest one for any other line."""
    if line["type"] != "head":
        return VERSIONS[-1]
    version = line.get("version")
    if type(version) is not int or version not in VERSIONS:
        raise BadInput(
            f"{name}: unsupported recording version {str(version)[:_MOST_QUOTED]}; this program reads versions "
            f"{' and '.join(map(str, VERSIONS))}"
        )
    return version


def _checked(where: str, line: JsonLine, version: int) -> JsonLine:
    try:
        line_validators(version)[line["type"]](line)
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadInput(f"{where}: not a line of a recording: {str(error)[:_MOST_QUOTED]}") from error
    return line


def head_of(raw: bytes, name: str) -> Head:
    """Only the head, from the first line of a recording that may still be growing."""
    return parsed_head(name, *_head_checked(_typed_line(name, raw), name))


def _head_checked(line: JsonLine, name: str) -> tuple[JsonLine, int]:
    """The head upgraded to the newest version, and its original version."""
    version = _stated_version(name, line)
    if line["type"] != "head":
        raise BadInput(f"{name}: the head must be the first line, and only the first")
    return upgraded_head(_checked(name, line, version)), version


def ends_of(first: bytes, last: bytes | None, name: str) -> tuple[Head, End | None]:
    """Only head and end, from the first and the last line; the end is None if the last line is of another type."""
    return ends_of_lines(_typed_line(name, first), None if last is None else _typed_line(name, last), name)


def ends_of_lines(first: Any, last: Any, name: str) -> tuple[Head, End | None]:
    """As `ends_of`, from lines parsed by `parse_line`."""
    head_line, version = _head_checked(_typed(name, first), name)
    head = parsed_head(name, head_line, version)
    if last is None:
        return head, None
    line = _checked(name, _typed(name, last), version)
    return head, parsed_end(name, upgraded_end(line, head_line), head) if line["type"] == "end" else None


def event_of(raw: bytes, name: str) -> Event | None:
    """The event in a line of a growing recording, None for a line of another type."""
    line = _typed_line(name, raw)
    return parsed_event(_checked(name, line, VERSIONS[-1])) if line["type"] == "event" else None


def part_of(raw: bytes, name: str, head: Head) -> Interval | Event | None:
    """The interval or event in a line after the head of a growing recording; None for another line."""
    line = _checked(name, _typed_line(name, raw), head.version)
    match line["type"]:
        case "interval":
            return parsed_interval(name, line, {series.id: series for series in head.series})
        case "event":
            return parsed_event(line)
    return None


def _check_end(name: str, recording: Recording, end: End) -> None:
    """Raises BadInput unless buckets sum to stored, stored + lost = taken, and all intervals and series are present."""
    if recording.aggregate.intervals and end.at.mono_ns < recording.aggregate.end_mono_ns:
        raise BadInput(f"{name}: the end of the run lies before the end of the last interval")
    missing = [declared.id for declared in recording.series if declared.id not in end.series]
    if missing:
        raise BadInput(f"{name}: end: series {missing[0]} is missing")
    for number, totals in end.series.items():
        where = f"{name}: end: series {number}"
        if number not in recording.aggregate.totals:
            raise BadInput(f"{where} is not declared in the head")
        total = recording.aggregate.totals[number]
        if totals.stored + totals.lost != totals.taken:
            raise BadInput(f"{where}: stored + lost does not equal taken")
        counted = (total.total, recording.lost(number), recording.missed(number), total.sum, total.sum_sq)
        if counted != (totals.stored, totals.lost, totals.missed, totals.sum, totals.sum_sq):
            raise BadInput(f"{where}: the intervals do not add up to the totals")
        if (totals.minimum, totals.maximum) != (total.minimum, total.maximum):
            raise BadInput(f"{where}: minimum or maximum differs from the intervals")
        _check_total(where, totals, recording.aggregate.totals[number])
        rises = recording.rises(number)
        if totals.rises is not None and (rises is None or [list(rise) for rise in totals.rises] != rises.entries()):
            raise BadInput(f"{where}: the rises of the intervals do not add up to the total")
        if (totals.limit is not None and totals.limit != recording.limit(number)) or (
            totals.order_unknown and totals.order_unknown != recording.order_unknown(number)
        ):
            raise BadInput(f"{where}: the limit counts or gaps of the intervals do not add up to the total")


def _check_total(where: str, totals: SeriesEnd, added: Histogram) -> None:
    """Raises BadInput unless buckets of the end are finer than those of the intervals and have the same values."""
    if totals.k is None:
        if totals.buckets[0]:
            raise BadInput(f"{where}: its buckets have no resolution (k)")
        return
    if totals.k <= added.k:
        raise BadInput(f"{where}: its buckets (k {totals.k}) are not finer than those of the intervals (k {added.k})")
    total = checked_histogram(
        where,
        {
            "count": totals.stored,
            "buckets": list(zip(*totals.buckets, strict=True)),
            "sum": totals.sum,
            "sum_sq": totals.sum_sq,
            "min": totals.minimum,
            "max": totals.maximum,
        },
        totals.k,
    )
    folded = total.folded(added.k)
    if (
        sums_fault(total)
        or folded.index.tolist() != added.index.tolist()
        or (folded.count.tolist() != added.count.tolist())
    ):
        raise BadInput(f"{where}: its buckets differ from those of the intervals")


def read_from(stream: BinaryIO, name: str, sha256: str | None = None) -> Recording:
    """Read a recording whole, as :class:`Reading` does, with its intervals and events in memory.

    A truncated file is read to its last whole line and has ``end`` None and ``cut_off`` set.
    """
    lines = Reading(stream, name, sha256)
    intervals: list[Interval] = []
    events: list[Event] = []
    for part in lines:
        if isinstance(part, Interval):
            intervals.append(part)
        else:
            events.append(part)
    return lines.recording(tuple(intervals), tuple(events))


def read_recording(path: Path) -> Recording:
    """Read the recording at a path, as :func:`read_from` does; raises BadInput also if there is none."""
    try:
        with path.open("rb") as stream:
            return read_from(stream, str(path))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}; name an existing recording") from error
