# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading and writing recordings: golden files, cuts at every byte, contradictions, fuzzing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastenough.model import BadInput, Outcome
from fastenough.recording import Histogram, RecordingWriter, read_recording
from fastenough.recording.building import end_series, interval_series, series_end

GOLDEN = sorted((Path(__file__).resolve().parents[3] / "format" / "golden").glob("*.jsonl"))
Line = dict[str, Any]


def instant(second: int) -> dict[str, int]:
    return {"mono_ns": second * 10**9, "wall_ns": 1_700_000_000 * 10**9 + second * 10**9}


def sample_lines() -> list[Line]:
    parts = [Histogram.from_values([1, 5, -3, 100_000], 10), Histogram.from_values([2_500_000, 5], 10)]
    total = Histogram.merged(parts, 10)
    head = {
        "type": "head",
        "format": "fastenough-recording",
        "version": 1,
        "tool": {"name": "test", "version": "0"},
        "run_id": "r",
        "probe": "timer",
        "implementation": "linux-user",
        "parameters": {},
        "series": [
            {"id": 0, "name": "wakeup", "unit": "ns", "clock": "CLOCK_MONOTONIC", "from": "a", "to": "b", "k": 10}
        ],
        "settings": [{"name": "policy", "cpu": 0, "asked": "fifo", "granted": "fifo"}],
        "cost": {},
        "interval_ns": 10**9,
        "begin": instant(1),
        "marks": [],
    }
    intervals = [
        {
            "type": "interval",
            "seq": seq,
            "begin": instant(seq + 1),
            "end": instant(seq + 2),
            "counters": {},
            "series": [interval_series(0, part, lost=1, missed=2)],
        }
        for seq, part in enumerate(parts)
    ]
    event = {"type": "event", "kind": "max", "at": instant(2), "series": 0, "value": 2_500_000}
    end = {
        "type": "end",
        "outcome": "completed",
        "reasons": [],
        "at": instant(3),
        "counters": {},
        "events_dropped": 0,
        "series": [end_series(0, series_end(total, lost=2, missed=4))],
    }
    return [head, intervals[0], event, intervals[1], end]


def write(path: Path, lines: list[Line]) -> Path:
    with path.open("wb") as stream:
        writer = RecordingWriter(stream)
        for line in lines:
            writer.line(line)
    return path


def test_round_trip(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path / "r.jsonl", sample_lines()))
    assert recording.outcome is Outcome.COMPLETED
    assert recording.totals[0].total == 6
    assert (recording.totals[0].minimum, recording.totals[0].maximum) == (-3, 2_500_000)
    assert (recording.lost(0), recording.missed(0), recording.duration_ns) == (2, 4, 2 * 10**9)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_golden_recordings_stay_readable(golden: Path) -> None:
    recording = read_recording(golden)
    assert recording.end is not None
    for number, said in recording.end.series.items():
        assert said.stored == recording.totals[number].total > 0


def test_there_are_golden_recordings() -> None:
    assert GOLDEN


@pytest.mark.check
def test_cut_at_every_byte_is_read_to_the_last_whole_line(tmp_path: Path) -> None:
    whole = write(tmp_path / "r.jsonl", sample_lines()).read_bytes()
    first_line = whole.index(b"\n") + 1
    for length in range(len(whole)):
        cut = tmp_path / "cut.jsonl"
        cut.write_bytes(whole[:length])
        if length < first_line:
            with pytest.raises(BadInput, match="empty or truncated within its head"):
                read_recording(cut)
            continue
        recording = read_recording(cut)
        assert recording.end is None
        assert recording.cut_off
        assert len(recording.intervals) == whole[:length].count(b'"type":"interval"') - (
            whole[:length].rpartition(b"\n")[2].count(b'"type":"interval"')
        )


def test_compressed_and_cut_compressed(tmp_path: Path) -> None:
    whole = write(tmp_path / "r.jsonl", sample_lines()).read_bytes()
    packed = zstandard.ZstdCompressor().compress(whole)
    path = tmp_path / "r.jsonl.zst"
    path.write_bytes(packed)
    assert read_recording(path).outcome is Outcome.COMPLETED
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BadInput, match="truncated within its head"):
        read_recording(path)


def _set(*keys: Any) -> Callable[[list[Line]], None]:
    *path, last, new = keys

    def change(lines: list[Line]) -> None:
        place: Any = lines
        for key in path:
            place = place[key]
        place[last] = new

    return change


CONTRADICTIONS: dict[str, Callable[[list[Line]], object]] = {
    "buckets sum to": _set(1, "series", 0, "count", 5),
    "do not ascend": _set(1, "series", 0, "buckets", [[5, 2], [1, 2]]),
    "outside its bucket": _set(1, "series", 0, "max", 7_000_000),
    "not declared in the head": _set(1, "series", 0, "id", 3),
    "do not add up": _set(4, "series", 0, "sum", 1),
    "stored \\+ lost does not equal taken": _set(4, "series", 0, "taken", 1),
    "bucket index out of range": _set(1, "series", 0, "buckets", [[-3, 1], [1, 1], [5, 1], [2**40, 1]]),
    "does not fit 64 bits": _set(1, "series", 0, "buckets", [[2**70, 4]]),
    "missing or contradict": _set(1, "series", 0, "min", 200_000),
    "must be the first line": lambda lines: lines.append(lines.pop(0)),
    "data after the end": lambda lines: lines.append(lines[1]),
    "state the length of one": _set(0, "series", 0, "unit", "ticks"),
    "version": _set(0, "version", 99),
    "not a line of a recording": _set(4, "outcome", "fine"),
    "share one id": lambda lines: lines[0]["series"].append(lines[0]["series"][0]),
    "twice in one interval": lambda lines: lines[1]["series"].append(lines[1]["series"][0]),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_contradictions_are_refused(tmp_path: Path, message: str) -> None:
    lines = copy.deepcopy(sample_lines())
    CONTRADICTIONS[message](lines)
    with pytest.raises(BadInput, match=message) as caught:
        read_recording(write(tmp_path / "bad.jsonl", lines))
    assert "\n" not in str(caught.value)


def test_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_recording(tmp_path / "none.jsonl")


@pytest.mark.check
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fuzzed_bytes_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever the damage: a recording whose invariants hold, or one BadInput; nothing else escapes."""
    blob = bytearray(b"".join(json.dumps(line).encode() + b"\n" for line in sample_lines()))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(blob) - 1))
        change = data.draw(st.binary(max_size=8))
        blob[place : place + data.draw(st.integers(0, 8))] = change
        if not blob:
            blob = bytearray(b"x")
    path = tmp_path / "fuzz.jsonl"
    path.write_bytes(bytes(blob))
    try:
        recording = read_recording(path)
    except BadInput:
        return
    for series_id, total in recording.totals.items():
        stored = [i.histograms[series_id].total for i in recording.intervals if series_id in i.histograms]
        assert total.total == sum(stored)
