# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading recordings: each line is checked; a cut-off file is read to its last whole line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import fastjsonschema
import numpy as np
import zstandard

from fastenough.model import BadInput, Outcome, Series
from fastenough.recording.histogram import Histogram, bucket_index

VERSION = 1
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class SeriesEnd:
    """What the ``end`` line says of one series."""

    taken: int
    stored: int
    lost: int
    missed: int


@dataclass(frozen=True)
class Interval:
    """One interval: its bounds on both clocks, and per series id its histogram and losses."""

    seq: int
    begin_mono_ns: int
    end_mono_ns: int
    begin_wall_ns: int
    end_wall_ns: int
    histograms: dict[int, Histogram]
    lost: dict[int, int]
    missed: dict[int, int]
    counters: dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """A whole recording.  ``end`` is None when it was cut off; its intervals are usable all the same."""

    head: dict[str, Any]
    series: tuple[Series, ...]
    intervals: tuple[Interval, ...]
    events: tuple[dict[str, Any], ...]
    end: dict[str, Any] | None
    cut_off: str | None = None
    totals: dict[int, Histogram] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return str(self.head["run_id"])

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, None when the recording was cut off."""
        return None if self.end is None else Outcome(self.end["outcome"])

    @property
    def duration_ns(self) -> int:
        """From the begin of the first to the end of the last interval, on CLOCK_MONOTONIC."""
        if not self.intervals:
            return 0
        return self.intervals[-1].end_mono_ns - self.intervals[0].begin_mono_ns

    def named(self, name: str) -> tuple[Series, ...]:
        """All series of one name (one per CPU, as a rule)."""
        return tuple(series for series in self.series if series.name == name)

    def lost(self, series_id: int) -> int:
        return sum(interval.lost.get(series_id, 0) for interval in self.intervals)

    def missed(self, series_id: int) -> int:
        return sum(interval.missed.get(series_id, 0) for interval in self.intervals)


@cache
def line_validators() -> dict[str, Any]:
    """The published schema, one compiled check per record type; each raises JsonSchemaValueException."""
    packaged = resources.files("fastenough.recording") / "recording-1.schema.json"
    beside = Path(__file__).resolve().parents[2] / "format" / "recording-1.schema.json"
    schema = json.loads(packaged.read_text() if packaged.is_file() else beside.read_text())
    types = [choice["$ref"].rpartition("/")[2] for choice in schema["oneOf"]]
    return {name: fastjsonschema.compile({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"}) for name in types}


def _open(path: Path) -> io.BufferedIOBase:
    raw = path.open("rb")
    start = raw.read(4)
    raw.seek(0)
    if start == _ZSTD_MAGIC:
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw, closefd=True, read_across_frames=True))
    return raw


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Lines that end in a newline; what a cut left behind the last newline is not a line."""
    try:
        with _open(path) as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line
    except zstandard.ZstdError:
        return
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}; name a recording that exists") from error


def _parse(path: Path, number: int, raw: bytes) -> dict[str, Any]:
    """One line, checked against the schema of its type."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}:{number}: not a line of a recording: {error}") from error
    kind = line.get("type") if isinstance(line, dict) else None
    check = line_validators().get(kind) if isinstance(kind, str) else None
    if check is None:
        raise BadInput(f"{path}:{number}: not a line of a recording: type is none of {', '.join(line_validators())}")
    if kind == "head" and line.get("version") != VERSION:
        raise BadInput(f"{path}: recording of version {line.get('version')}; this program reads version {VERSION}")
    try:
        check(line)
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadInput(f"{path}:{number}: not a line of a recording: {error}") from error
    return dict(line)


def _series(path: Path, entry: dict[str, Any]) -> Series:
    if entry["unit"] == "ticks" and "tick_ps" not in entry:
        raise BadInput(f"{path}: series {entry['id']} counts ticks but does not say how long one is (tick_ps)")
    return Series(
        id=entry["id"], name=entry["name"], unit=entry["unit"], clock=entry["clock"],
        from_event=entry["from"], to_event=entry["to"], k=entry["k"], cpu=entry.get("cpu"),
        period_ns=entry.get("period_ns"), bytes=entry.get("bytes"), tick_ps=entry.get("tick_ps"),
        refused=entry.get("refused"), labels=entry.get("labels", {}),
    )


def _histogram(where: str, entry: dict[str, Any], k: int) -> Histogram:
    """The histogram of one series in one interval; what contradicts itself is refused."""
    buckets = np.array(entry["buckets"], dtype=object).reshape(-1, 2)
    try:
        index, count = buckets[:, 0].astype(np.int64), buckets[:, 1].astype(np.int64)
    except OverflowError as error:
        raise BadInput(f"{where}: a bucket index or count does not fit 64 bits") from error
    if np.any(np.diff(index) <= 0):
        raise BadInput(f"{where}: bucket indices do not ascend")
    if index.size and (index[-1] >= 64 << k or index[0] <= -(64 << k)):
        raise BadInput(f"{where}: bucket index out of range for k = {k}")
    if int(count.sum()) != entry["count"]:
        raise BadInput(f"{where}: buckets sum to {int(count.sum())}, count says {entry['count']}")
    if entry["count"] == 0:
        return Histogram(k)
    if "min" not in entry or "max" not in entry or not -(2**63) < entry["min"] <= entry["max"] < 2**63:
        raise BadInput(f"{where}: minimum and maximum are missing or contradict each other")
    ends = bucket_index([entry["min"], entry["max"]], k)
    if (ends[0], ends[1]) != (index[0], index[-1]):
        raise BadInput(f"{where}: minimum or maximum lies outside its bucket")
    return Histogram(k, index, count, entry["min"], entry["max"], entry["sum"], int(entry["sum_sq"]))


def _interval(path: Path, number: int, line: dict[str, Any], by_id: dict[int, Series]) -> Interval:
    histograms, lost, missed = {}, {}, {}
    for entry in line["series"]:
        where = f"{path}:{number}: series {entry['id']}"
        if entry["id"] not in by_id:
            raise BadInput(f"{where}: not declared in the head")
        if entry["id"] in histograms:
            raise BadInput(f"{where}: twice in one interval")
        histograms[entry["id"]] = _histogram(where, entry, by_id[entry["id"]].k)
        lost[entry["id"]] = entry["lost"]
        missed[entry["id"]] = entry["missed"]
    return Interval(
        line["seq"], line["begin"]["mono_ns"], line["end"]["mono_ns"], line["begin"]["wall_ns"],
        line["end"]["wall_ns"], histograms, lost, missed, line["counters"],
    )


def _check_end(path: Path, recording: Recording) -> None:
    """The invariant: buckets sum to stored; stored + lost = taken; the intervals are all there."""
    assert recording.end is not None
    for entry in recording.end["series"]:
        if entry["id"] not in recording.totals:
            raise BadInput(f"{path}: end: series {entry['id']} is not declared in the head")
        total = recording.totals[entry["id"]]
        lost = recording.lost(entry["id"])
        missed = recording.missed(entry["id"])
        if entry["stored"] + entry["lost"] != entry["taken"]:
            raise BadInput(f"{path}: end: series {entry['id']}: stored + lost is not taken")
        said = (entry["stored"], entry["lost"], entry["missed"], entry["sum"], int(entry["sum_sq"]))
        if (total.total, lost, missed, total.sum, total.sum_sq) != said:
            raise BadInput(f"{path}: end: series {entry['id']}: the intervals do not add up to the totals")


def _lines_in_order(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Checked lines with their numbers: a head first, and nothing behind an end."""
    previous = None
    for number, raw in enumerate(_whole_lines(path), start=1):
        line = _parse(path, number, raw)
        if (line["type"] == "head") != (previous is None):
            raise BadInput(f"{path}:{number}: the head must be the first line, and only the first")
        if previous == "end":
            raise BadInput(f"{path}:{number}: something follows the end line")
        previous = line["type"]
        yield number, line
    if previous is None:
        raise BadInput(f"{path}: no recording: the file is empty or was cut off within its head")


def read_recording(path: Path) -> Recording:
    """Read a recording (plain or zstd-compressed).

    A file cut off at any point is read to its last whole line and has ``end`` None and ``cut_off`` set.
    Raises BadInput for what is not a recording or contradicts itself.
    """
    lines = _lines_in_order(path)
    _, head = next(lines)
    by_id = {entry["id"]: _series(path, entry) for entry in head["series"]}
    if len(by_id) != len(head["series"]):
        raise BadInput(f"{path}: two series share one id")
    intervals, events, end = [], [], None
    for number, line in lines:
        if line["type"] == "interval":
            intervals.append(_interval(path, number, line, by_id))
        elif line["type"] == "event":
            events.append(line)
        else:
            end = line
    totals = {
        number: Histogram.merged((i.histograms[number] for i in intervals if number in i.histograms), series.k)
        for number, series in by_id.items()
    }
    cut_off = None if end else "the recording has no end line: it was cut off"
    recording = Recording(head, tuple(by_id.values()), tuple(intervals), tuple(events), end, cut_off, totals)
    if end is not None:
        _check_end(path, recording)
    return recording
