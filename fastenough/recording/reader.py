# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading recordings: each line is checked; a cut-off file is read to its last whole line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module, resources
from pathlib import Path
from typing import Any, BinaryIO

import fastjsonschema
import numpy as np

from fastenough.model import BadInput, Outcome, Series
from fastenough.recording.aggregate import Adding, Aggregate
from fastenough.recording.histogram import Histogram, bucket_index
from fastenough.recording.interval import Interval
from fastenough.recording.lines import Lines, parse_line
from fastenough.recording.timeline import Timeline

VERSION = 1
MOST_EVENT_BYTES = 16 << 20
"""Of all events of a recording together: the probe's 10,000 take a fifth of it."""
_MOST_IN_BUCKET = 2**53
_SAID = 200
"""How much of a complaint about a line is told: it may quote the line."""


@dataclass(frozen=True)
class SeriesEnd:
    """What the ``end`` line says of one series."""

    taken: int
    stored: int
    lost: int
    missed: int


@dataclass(frozen=True)
class Recording:
    """A whole recording.  ``end`` is None when it was cut off; its intervals are usable all the same.

    ``damage`` says why nothing of a recording is believed; it then holds no values (see :func:`unbelievable`).
    """

    head: dict[str, Any]
    series: tuple[Series, ...]
    intervals: Sequence[Interval]
    events: Sequence[dict[str, Any]]
    end: dict[str, Any] | None
    cut_off: str | None = None
    aggregate: Aggregate = field(default_factory=Aggregate)
    damage: str | None = None
    over_time: Callable[[], Timeline] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def timeline(self) -> Timeline:
        """Its intervals as arrays, buckets folded: the same whether they come out of its text or of its columns."""
        if self.over_time is not None:
            return self.over_time()
        rows = import_module("fastenough.recording.interval_rows")  # which loads pyarrow: not for every command
        made: Timeline = rows.timeline_of_intervals(self.intervals, self.series)
        return made

    @property
    def run_id(self) -> str:
        return str(self.head["run_id"])

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, None when the recording was cut off."""
        return None if self.end is None else Outcome(self.end["outcome"])

    @property
    def totals(self) -> dict[int, Histogram]:
        """The histogram of each series over the whole run, by its id."""
        return self.aggregate.totals

    @property
    def duration_ns(self) -> int:
        """From the begin of the first to the end of the last interval, on CLOCK_MONOTONIC."""
        return self.aggregate.end_mono_ns - self.aggregate.begin_mono_ns

    def named(self, name: str) -> tuple[Series, ...]:
        """All series of one name (one per CPU, as a rule)."""
        return tuple(series for series in self.series if series.name == name)

    def lost(self, series_id: int) -> int:
        return self.aggregate.lost.get(series_id, 0)

    def missed(self, series_id: int) -> int:
        return self.aggregate.missed.get(series_id, 0)


@cache
def line_validators() -> dict[str, Any]:
    """The published schema, one compiled check per record type; each raises JsonSchemaValueException."""
    packaged = resources.files("fastenough.recording") / "recording-1.schema.json"
    beside = Path(__file__).resolve().parents[2] / "format" / "recording-1.schema.json"
    schema = json.loads(packaged.read_text() if packaged.is_file() else beside.read_text())
    types = [choice["$ref"].rpartition("/")[2] for choice in schema["oneOf"]]
    return {name: fastjsonschema.compile({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"}) for name in types}


def _parse(name: str, number: int, raw: bytes) -> dict[str, Any]:
    """One line, checked against the schema of its type."""
    try:
        line = parse_line(raw)
    except ValueError as error:
        raise BadInput(f"{name}:{number}: not a line of a recording: {str(error)[:_SAID]}") from error
    kind = line.get("type") if isinstance(line, dict) else None
    check = line_validators().get(kind) if isinstance(kind, str) else None
    if check is None:
        raise BadInput(f"{name}:{number}: not a line of a recording: type is none of {', '.join(line_validators())}")
    if kind == "head" and line.get("version") != VERSION:
        raise BadInput(f"{name}: recording of version {str(line.get('version'))[:_SAID]}; this program reads version "
                       f"{VERSION}")
    try:
        check(line)
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadInput(f"{name}:{number}: not a line of a recording: {str(error)[:_SAID]}") from error
    return dict(line)


def _series(name: str, entry: dict[str, Any]) -> Series:
    if entry["unit"] == "ticks" and "tick_ps" not in entry:
        raise BadInput(f"{name}: series {entry['id']} counts ticks but does not say how long one is (tick_ps)")
    return Series(
        id=entry["id"], name=entry["name"], unit=entry["unit"], clock=entry["clock"],
        from_event=entry["from"], to_event=entry["to"], k=entry["k"], cpu=entry.get("cpu"),
        period_ns=entry.get("period_ns"), bytes=entry.get("bytes"), tick_ps=entry.get("tick_ps"),
        refused=entry.get("refused"), labels=entry.get("labels", {}),
    )


def _histogram(where: str, entry: dict[str, Any], k: int) -> Histogram:
    """The histogram of one series in one interval; what contradicts itself is refused."""
    if not all(type(i) is int and type(n) is int and 1 <= n <= _MOST_IN_BUCKET for i, n in entry["buckets"]):
        raise BadInput(f"{where}: a bucket is not [index, count] with a count from 1 to 2^53")
    buckets = np.array(entry["buckets"], dtype=object).reshape(-1, 2)
    try:
        index, count = buckets[:, 0].astype(np.int64), buckets[:, 1].astype(np.int64)
    except OverflowError as error:
        raise BadInput(f"{where}: a bucket index does not fit 64 bits") from error
    if np.any(np.diff(index) <= 0):
        raise BadInput(f"{where}: bucket indices do not ascend")
    if index.size and (index[-1] >= 64 << k or index[0] <= -(64 << k)):
        raise BadInput(f"{where}: bucket index out of range for k = {k}")
    total = sum(number for _, number in entry["buckets"])
    if total != entry["count"]:
        raise BadInput(f"{where}: buckets sum to {total}, count says {entry['count']}")
    if total == 0:
        if entry["sum"] or int(entry["sum_sq"]):
            raise BadInput(f"{where}: a sum of no values is not 0")
        return _none(k)
    if "min" not in entry or "max" not in entry or not -(2**63) < entry["min"] <= entry["max"] < 2**63:
        raise BadInput(f"{where}: minimum and maximum are missing or contradict each other")
    ends = bucket_index([entry["min"], entry["max"]], k)
    if (ends[0], ends[1]) != (index[0], index[-1]):
        raise BadInput(f"{where}: minimum or maximum lies outside its bucket")
    _check_sums(where, entry)
    return Histogram(k, index, count, entry["min"], entry["max"], entry["sum"], int(entry["sum_sq"]))


@cache
def _none(k: int) -> Histogram:
    """Of no values; one for all intervals in which nothing came."""
    return Histogram(k)


def _check_sums(where: str, entry: dict[str, Any]) -> None:
    """A sum lies between so many minima and maxima, and the sum of squares is what such values can have."""
    n, low, high, total, squares = entry["count"], entry["min"], entry["max"], entry["sum"], int(entry["sum_sq"])
    if not n * low <= total <= n * high:
        raise BadInput(f"{where}: the sum cannot be that of {n} values from {low} to {high}")
    if n * squares < total * total or squares > n * max(low * low, high * high):
        raise BadInput(f"{where}: the sum of squares cannot be that of these values")


def _interval(name: str, number: int, line: dict[str, Any], by_id: dict[int, Series]) -> Interval:
    histograms, lost, missed = {}, {}, {}
    for entry in line["series"]:
        where = f"{name}:{number}: series {entry['id']}"
        if entry["id"] not in by_id:
            raise BadInput(f"{where}: not declared in the head")
        if entry["id"] in histograms:
            raise BadInput(f"{where}: twice in one interval")
        histograms[entry["id"]] = _histogram(where, entry, by_id[entry["id"]].k)
        lost[entry["id"]] = entry["lost"]
        missed[entry["id"]] = entry["missed"]
    if line["end"]["mono_ns"] < line["begin"]["mono_ns"]:
        raise BadInput(f"{name}:{number}: the interval ends before it begins")
    return Interval(
        line["seq"], line["begin"]["mono_ns"], line["end"]["mono_ns"], line["begin"]["wall_ns"],
        line["end"]["wall_ns"], histograms, lost, missed, line["counters"],
    )


def _check_end(name: str, end: dict[str, Any], added: Aggregate) -> None:
    """The invariant: buckets sum to stored; stored + lost = taken; the intervals are all there."""
    for entry in end["series"]:
        if entry["id"] not in added.totals:
            raise BadInput(f"{name}: end: series {entry['id']} is not declared in the head")
        total = added.totals[entry["id"]]
        if entry["stored"] + entry["lost"] != entry["taken"]:
            raise BadInput(f"{name}: end: series {entry['id']}: stored + lost is not taken")
        said = (entry["stored"], entry["lost"], entry["missed"], entry["sum"], int(entry["sum_sq"]))
        if (total.total, added.lost[entry["id"]], added.missed[entry["id"]], total.sum, total.sum_sq) != said:
            raise BadInput(f"{name}: end: series {entry['id']}: the intervals do not add up to the totals")


def _lines_in_order(name: str, lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    """Checked lines with their numbers: a head first, and nothing behind an end."""
    previous = None
    event_bytes = 0
    for number, raw in enumerate(lines, start=1):
        line = _parse(name, number, raw)
        if (line["type"] == "head") != (previous is None):
            raise BadInput(f"{name}:{number}: the head must be the first line, and only the first")
        if previous == "end":
            raise BadInput(f"{name}:{number}: something follows the end line")
        previous = line["type"]
        event_bytes += len(raw) if previous == "event" else 0
        if event_bytes > MOST_EVENT_BYTES:
            raise BadInput(f"{name}:{number}: the events take more than {MOST_EVENT_BYTES} bytes")
        yield number, line
    if previous is None:
        raise BadInput(f"{name}: no recording: the file is empty or was cut off within its head")


def _all_series(name: str, head: dict[str, Any]) -> tuple[Series, ...]:
    by_id = {entry["id"]: _series(name, entry) for entry in head["series"]}
    if len(by_id) != len(head["series"]):
        raise BadInput(f"{name}: two series share one id")
    return tuple(by_id.values())


class Reading:
    """One pass over a recording out of an open file (plain or zstd-compressed): intervals and events as they come.

    Each line is checked, and memory holds sums, not intervals.  What is said of the whole, ``recording``, is there when
    all have been taken.  Raises BadInput, with ``name`` in the message, for what is not a recording, contradicts
    itself, or has not the hash that is given.
    """

    def __init__(self, stream: BinaryIO, name: str, sha256: str | None = None) -> None:
        self._name = name
        self._sha256 = sha256
        self._source = Lines(stream, name)
        self._lines = _lines_in_order(name, self._source)
        with _readable(name):
            _, self.head_line = next(self._lines)
        self.end_line: dict[str, Any] | None = None
        self.series = _all_series(name, self.head_line)
        self._adding = Adding(name, self.series)

    def __iter__(self) -> Iterator[Interval | dict[str, Any]]:
        by_id = {series.id: series for series in self.series}
        with _readable(self._name):
            for number, line in self._lines:
                if line["type"] == "interval":
                    interval = _interval(self._name, number, line, by_id)
                    self._adding.interval(interval)
                    yield interval
                elif line["type"] == "event":
                    self._adding.event(line["kind"])
                    yield line
                else:
                    self.end_line = line
        if self._sha256 is not None and self._source.sha256 != self._sha256:
            raise BadInput(f"{self._name}: the content is not what was recorded (its SHA-256 is another)"
                           + (f"; {self._source.fault}" if self._source.fault else ""))

    def recording(self, intervals: Sequence[Interval] = (), events: Sequence[dict[str, Any]] = (),
                  over_time: Callable[[], Timeline] | None = None) -> Recording:
        """The whole of it, with these for its intervals and events; only when all have been taken."""
        return assembled(self._name, self.head_line, self.end_line, self._adding.added(), intervals=intervals,
                         events=events, over_time=over_time)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from error


def checked_line(name: str, number: int, line: dict[str, Any]) -> dict[str, Any]:
    """A line that was kept elsewhere, checked as those of a file are; raises BadInput."""
    return _parse(name, number, json.dumps(line).encode())


def assembled(name: str, head: dict[str, Any], end: dict[str, Any] | None, added: Aggregate,
              *, intervals: Sequence[Interval], events: Sequence[dict[str, Any]],
              over_time: Callable[[], Timeline] | None = None) -> Recording:
    """A recording of parts that were checked one by one; raises BadInput where they contradict each other."""
    if end is not None:
        _check_end(name, end, added)
    cut_off = None if end else "the recording has no end line: it was cut off"
    return Recording(head, _all_series(name, head), intervals, events, end, cut_off, added,
                     over_time=over_time)


def read_from(stream: BinaryIO, name: str, sha256: str | None = None) -> Recording:
    """Read a recording whole, as :class:`Reading` does, with its intervals and events in memory.

    A file cut off at any point is read to its last whole line and has ``end`` None and ``cut_off`` set.
    """
    lines = Reading(stream, name, sha256)
    intervals: list[Interval] = []
    events: list[dict[str, Any]] = []
    for part in lines:
        if isinstance(part, Interval):
            intervals.append(part)
        else:
            events.append(part)
    return lines.recording(tuple(intervals), tuple(events))


def read_recording(path: Path) -> Recording:
    """Read the recording at a path, as :func:`read_from` does; raises BadInput also where there is none."""
    try:
        with path.open("rb") as stream:
            return read_from(stream, str(path))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}; name a recording that exists") from error


def unbelievable(run_id: str, damage: str, head: dict[str, Any] | None = None) -> Recording:
    """What stands for a run of which nothing is believed, with the reason; ``head`` says what is known of it."""
    plain = {
        "type": "head", "format": "fastenough-recording", "version": VERSION,
        "tool": {"name": "unknown", "version": ""}, "probe": "unknown", "implementation": "unknown", "parameters": {},
        "series": [], "settings": [], "cost": {}, "interval_ns": 10**9, "begin": {"mono_ns": 0, "wall_ns": 0},
        "marks": [], "run_id": run_id,
    }
    return Recording(plain | (head or {}), (), (), (), None, damage=damage)
