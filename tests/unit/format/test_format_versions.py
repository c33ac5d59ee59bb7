# SPDX-License-Identifier: GPL-2.0-or-later
"""Version 1 is read and judged as it always was; version 2 says what version 1 left to names, and more."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastenough.analysis import judge
from fastenough.model import BadInput, Configuration, Requirement, Role, Verdict
from fastenough.recording import Histogram, LoadUse, Recording, Rises, read_recording
from fastenough.recording.building import end_line, event_line, head_line, with_load
from fastenough.recording.head import COUNTED_DURING_THE_RUN, LimitCount, RecordedSetting, SettingChange
from fastenough.recording.histogram import bucket_index
from fastenough.recording.parsing import changes, parsed_end, parsed_head
from fastenough.recording.rises import limit_fault, rises_fault
from tests.support import recordings as made
from tests.support.order_of_values import Order, coarse
from tests.support.recordings import Plan, latencies
from tests.support.tools import ROOT

Line = dict[str, Any]
GOLDEN = ROOT / "format" / "golden"
PAIR = {0: ("wakeup", Role.DIAGNOSTIC, False), 1: ("wakeup_corrected", Role.VERDICT, True)}
PAIRS = PAIR | {2: PAIR[0], 3: PAIR[1]}
FIRST_VERSION = {
    "spin": (dict.fromkeys((0, 1), ("gap", Role.VERDICT, False)), Verdict.FAIL, 134),
    "switch": ({0: ("switch", Role.VERDICT, False)}, Verdict.FAIL, 2),
    "timer": (PAIRS, Verdict.FAIL, 75),
    "timer-aborted": (PAIRS, Verdict.FAIL, 4),
    "timer-changed": (PAIR, Verdict.BROKEN, 86),
}
"""Golden recordings of version 1: name, role and correction of each series, and the verdict that was given of them on a
limit of 50 µs by the last program that wrote them, with how many activations took longer."""


@pytest.mark.parametrize("name", FIRST_VERSION)
def test_the_first_version_is_read_and_judged_as_it_was(name: str) -> None:
    series, verdict, exceeded = FIRST_VERSION[name]
    path = GOLDEN / f"{name}.jsonl"
    recording = read_recording(path)
    assert recording.head.version == 1
    assert {one.id: (one.name, one.role, one.corrected) for one in recording.series} == series
    assert not any(one.two_sided or one.relative for one in recording.series)
    intervals = [line for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "interval"]
    for number, total in recording.totals.items():
        entries = [entry for line in intervals for entry in line["series"] if entry["id"] == number]
        assert (total.total, total.sum) == tuple(sum(entry[key] for entry in entries) for key in ("count", "sum"))
        assert total.maximum == max(entry["max"] for entry in entries if entry["count"])
    assessment = judge([recording], Requirement(50_000))
    assert (assessment.verdict, sum(one.exceeded for one in assessment.judgments)) == (verdict, exceeded)


BOTH = {0: ("wakeup", Role.DIAGNOSTIC, False, False), 1: ("wakeup_corrected", Role.VERDICT, True, False)}
SECOND_VERSION = {
    "timer-2": BOTH | {2: BOTH[0], 3: BOTH[1]},
    "timer-aborted-2": BOTH | {2: BOTH[0], 3: BOTH[1]},
    "timer-changed-2": BOTH,
    "relative-2": {0: ("wakeup", Role.DIAGNOSTIC, False, True), 1: BOTH[1]},
    "inversion-2": {0: ("recovery", Role.DIAGNOSTIC, False, False), 1: ("recovery", Role.VERDICT, False, False)},
    "shm-2": dict.fromkeys(range(4), ("handover", Role.THROUGHPUT, False, False)),
}
"""Golden recordings of version 2, of the probe on a real machine."""


@pytest.mark.parametrize("name", SECOND_VERSION)
def test_the_second_version_says_what_its_series_are_for(name: str) -> None:
    path = GOLDEN / f"{name}.jsonl"
    recording = read_recording(path)
    assert recording.head.version == json.loads(path.read_text().splitlines()[0])["version"] == 2
    assert {one.id: (one.name, one.role, one.corrected, one.relative) for one in recording.series} == SECOND_VERSION[
        name
    ]
    assert all(one.rise_k == 3 and recording.rises(one.id) is not None for one in recording.series)
    assert recording.end is not None and recording.end.settings


def test_a_limit_given_before_the_run_was_counted_exactly() -> None:
    recording = read_recording(GOLDEN / "timer-2.jsonl")
    for series in recording.series:
        count, total = recording.limit(series.id), recording.totals[series.id]
        assert count is not None and count.ns == 50_000 and count.exceeded >= count.runs
        assert count.exceeded <= total.count_above(50_000)


def test_a_delay_made_on_purpose_is_not_judged() -> None:
    recording = read_recording(GOLDEN / "inversion-2.jsonl")
    without, with_inheritance = (recording.totals[number] for number in (0, 1))
    assert without.minimum is not None and with_inheritance.maximum is not None
    assert with_inheritance.maximum < 1_500_000 < without.minimum
    assert not sum(one.exceeded for one in judge([recording], Requirement(1_500_000)).judgments)


def test_every_golden_recording_is_tried() -> None:
    assert {path.stem for path in GOLDEN.glob("*.jsonl")} == FIRST_VERSION.keys() | SECOND_VERSION.keys()


def test_what_changed_in_mid_run_is_found_by_comparison() -> None:
    recording = read_recording(GOLDEN / "timer-changed-2.jsonl")
    assert recording.end is not None
    assert [(change.name, change.before, change.after) for change in recording.end.changes] == [
        ("policy", "fifo", "other"),
        ("priority", 98, 0),
        ("timer_slack_ns", 0, 50_000),
    ]


def test_what_changed_in_the_first_version_is_told_in_the_words_of_the_second() -> None:
    end = read_recording(GOLDEN / "timer-changed.jsonl").end
    assert end is not None
    assert end.changes == (
        SettingChange("policy", "fifo", "other", 1, "timer"),
        SettingChange("priority", 98, 0, 1, "timer"),
    )


@pytest.mark.parametrize(("method", "relative"), [("nanosleep", True), ("timerfd", False)])
def test_relative_methods_of_the_first_version_are_known(tmp_path: Path, method: str, relative: bool) -> None:
    first, *rest = (GOLDEN / "timer.jsonl").read_text().splitlines(keepends=True)
    head = json.loads(first)
    head["parameters"]["method"] = method
    path = tmp_path / "r"
    path.write_text("".join([json.dumps(head) + "\n", *rest]))
    by_corrected = {one.corrected: one.relative for one in read_recording(path).series}
    assert by_corrected == {False: relative, True: False}


@pytest.mark.parametrize("name", FIRST_VERSION)
def test_what_is_read_can_be_written_in_the_second_version(tmp_path: Path, name: str) -> None:
    recording = read_recording(GOLDEN / f"{name}.jsonl")
    assert recording.end is not None
    middle = [line for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()[1:-1]]
    head = replace(recording.head, configuration=Configuration("c", "6.1", None, "quiet"), board="b")
    path = tmp_path / "r"
    path.write_text("\n".join([json.dumps(head_line(head)), *middle, json.dumps(end_line(recording.end)), ""]))
    again = read_recording(path)
    assert again.head == replace(head, version=2)
    assert again.end == recording.end
    assert [event_line(event) for event in again.events] == [event_line(event) for event in recording.events]


def _ordered(folder: Path, **more: Any) -> list[Line]:
    """Lines of a recording of version 2 that has everything."""
    plan = Plan(
        latencies(5, cpus=1, intervals=3, per_interval=200),
        rise_k=3,
        limit_ns=6_000,
        load="cpu",
        load_use=({"cpu_ns": 10_000_000, "context_switches": 3, "processes": 2, "window_ns": 7}, None),
        **more,
    )
    lines: list[Line] = [json.loads(line) for line in made.write(folder / "r", plan).read_text().splitlines()]
    lines[-1]["settings"] = [{"name": entry["name"], "in_effect": entry["in_effect"]} for entry in lines[0]["settings"]]
    return lines


def _read(folder: Path, lines: list[Line]) -> Recording:
    path = folder / "read"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_recording(path)


def test_a_recording_says_in_which_order_its_values_came(tmp_path: Path) -> None:
    recording = _read(tmp_path, _ordered(tmp_path))
    values = np.concatenate(latencies(5, cpus=1, intervals=3, per_interval=200)[0])
    rises, limit = Order(3, 6_000).interval(values)
    found = recording.rises(1)
    assert found is not None and found.entries() == rises.entries() and len(rises.entries()) > 5
    assert recording.limit(1) == limit and limit.exceeded > limit.runs > 0
    assert recording.intervals[0].load == LoadUse(10_000_000, 3, 2, 7) and recording.intervals[1].load is None
    assert recording.end is not None and recording.end.changes == ()


@pytest.mark.check
@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(st.lists(st.integers(-5000, 200_000), max_size=30), min_size=1, max_size=4),
    two_sided=st.booleans(),
    k=st.integers(0, 5),
    limit=st.integers(1, 100_000),
)
def test_rises_tell_how_many_runs_began_at_every_edge(
    parts: list[list[int]], two_sided: bool, k: int, limit: int
) -> None:
    """As counted from the values themselves; and no true rise is taken for a false one."""
    order = Order(k, limit, two_sided)
    found = []
    for part in parts:
        rises, count = order.interval(part)
        histogram = Histogram.from_values(part, 10)
        assert rises_fault(rises, histogram, two_sided) is None
        series = replace(SERIES, two_sided=two_sided)
        assert limit_fault(count, histogram, series) is None
        found.append(rises)
    merged = Rises.merged(found, k)
    buckets = [coarse(value, k, two_sided) for part in parts for value in part]
    assert buckets == [
        int(bucket_index([abs(value) if two_sided else max(value, 0)], k)[0]) for part in parts for value in part
    ]
    for edge, runs in zip(merged.edge, merged.runs(), strict=True):
        above = [bucket >= edge for bucket in buckets]
        assert runs == sum(now and not before for before, now in zip([False, *above], above, strict=False))


SERIES = parsed_head("x", head_line(read_recording(GOLDEN / "switch.jsonl").head), 2).series[0]


def _rise(at: int, by: int) -> Callable[[list[Line]], None]:
    def change(lines: list[Line]) -> None:
        lines[1]["series"][1]["rises"][at][1] += by

    return change


def _series(**keys: Any) -> Callable[[list[Line]], None]:
    return lambda lines: lines[0]["series"][1].update(keys)


def _interval(**keys: Any) -> Callable[[list[Line]], None]:
    return lambda lines: lines[1]["series"][1].update(keys)


def _limit(**keys: Any) -> Callable[[list[Line]], None]:
    return lambda lines: lines[1]["series"][1]["limit"].update(keys)


def _many_runs(lines: list[Line]) -> None:
    rises = lines[1]["series"][1]["rises"]
    rises[0][1] += 10**6
    rises[-1][1] -= 10**6


def _fewer_than_none(lines: list[Line]) -> None:
    rises = lines[1]["series"][1]["rises"]
    rises[0][1] -= 10**6
    rises[-1][1] += 10**6


def test_a_limit_counted_in_ticks_is_held_against_the_buckets_too() -> None:
    """A tick of 500 ns, whose length may have been known a little otherwise."""
    ticks = replace(SERIES, unit="ticks", tick_ps=500_000)
    low, high = (Histogram.from_values(values, 10) for values in ([10, 20, 199], [10, 20, 210]))
    none, one = LimitCount(100_000, 0, 0, 0, 0), LimitCount(100_000, 1, 1, 1, 1)
    assert limit_fault(none, low, ticks) is None and limit_fault(one, high, ticks) is None
    assert "contradict its buckets" in (limit_fault(none, high, ticks) or "")
    assert "contradict its buckets" in (limit_fault(LimitCount(100_000, 2, 1, 4, 2), high, ticks) or "")


CONTRADICTIONS: dict[str, Callable[[list[Line]], None]] = {
    "do not sum to 0": _rise(0, 1),
    "imply more runs than there are values": _many_runs,
    "a negative number of runs": _fewer_than_none,
    "do not ascend": _interval(rises=[[9, 1], [5, -1]]),
    "is not \\[edge, delta\\]": _interval(rises=[[1, 1], [64 << 3, -1]]),
    "and none otherwise": lambda lines: lines[0]["series"][1].pop("rise_k"),
    "every interval has rises": lambda lines: lines[1]["series"][1].pop("rises"),
    "finer than its buckets": _series(rise_k=11),
    "both corrected and relative": _series(relative=True),
    "both the role throughput and bytes": _series(role="throughput"),
    "contradict its buckets": _limit(exceeded=150, sum_sq_runs="20000", longest=150),
    "runs above the limit contradict": _limit(runs=10**6),
    "runs above the limit, but no values": _limit(ns=10**9, exceeded=0),
    "0 values above the limit of 6000 ns contradict": _limit(exceeded=0, runs=0, sum_sq_runs="0", longest=0),
    "limit differs": lambda lines: lines[2]["series"][1]["limit"].update(ns=6_001),
    "rises of the intervals do not add up": lambda lines: lines[-1]["series"][1].update(rises=[]),
    "limit counts or gaps": lambda lines: lines[-1]["series"][1]["limit"].update(longest=1),
    "does not follow": lambda lines: lines[2].update(seq=2),
    "does not begin where": lambda lines: lines[2]["begin"].update(mono_ns=1),
    "begins before the run": lambda lines: lines[0]["begin"].update(mono_ns=10**15),
    "data.series": lambda lines: lines[0]["series"][1].pop("role"),
    "data.configuration": lambda lines: lines[0].update(configuration="rt"),
    "data.settings": lambda lines: lines[0]["settings"][0].update(asked="fifo"),
    "must not contain": lambda lines: lines[-1].update(settings_changed=[]),
    "minimum or maximum": lambda lines: lines[-1]["series"][1].update(max=10**9),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_contradictions_are_refused(tmp_path: Path, message: str) -> None:
    lines = _ordered(tmp_path)
    _read(tmp_path, lines)
    changed = copy.deepcopy(lines)
    CONTRADICTIONS[message](changed)
    with pytest.raises(BadInput, match=message) as caught:
        _read(tmp_path, changed)
    assert "\n" not in str(caught.value)


def test_a_gap_is_counted_and_ends_a_run(tmp_path: Path) -> None:
    lines = _ordered(tmp_path)
    for line in (lines[1], lines[-1]):
        line["series"][1]["order_unknown"] = 2
    assert _read(tmp_path, lines).order_unknown(1) == 2
    order = Order(3, 100)
    (_, first), (_, second) = order.interval([200, 300]), order.interval([200], gap=True)
    assert first.plus(second).runs == 2 and first.plus(second).sum_sq_runs == 5


def test_what_reads_otherwise_after_the_run_was_changed(tmp_path: Path) -> None:
    lines = _ordered(tmp_path)
    lines[-1]["settings"][0]["in_effect"] = "other"
    lines[-1]["settings"].append({"name": "migrations", "thread": "timer", "cpu": 1, "in_effect": 3})
    recording = _read(tmp_path, lines)
    assert recording.end is not None
    assert recording.end.changes == (
        SettingChange("policy", "fifo", "other"),
        SettingChange("migrations", 0, 3, 1, "timer"),
    )
    assert judge([recording], Requirement(10**9)).verdict is Verdict.BROKEN


def test_what_cannot_be_read_again_is_not_known_to_have_changed() -> None:
    before = [
        RecordedSetting("a", 1, 1, cpu=0),
        RecordedSetting("a", 2, 2, cpu=1),
        RecordedSetting("b", None, "x", thread="t"),
    ]
    after = [
        RecordedSetting("a", None, 1, cpu=0),
        RecordedSetting("a", None, None, cpu=1),
        RecordedSetting("b", None, "y", thread="t"),
        *(RecordedSetting(name, None, 0, cpu=0) for name in COUNTED_DURING_THE_RUN),
    ]
    assert list(changes(before, after)) == [SettingChange("b", "x", "y", None, "t")]


def test_only_a_series_that_says_so_is_judged(tmp_path: Path) -> None:
    """One late value; judged by it or not, whatever the series is called."""
    late = [[np.full(40_000, 5_000)] for _ in range(1)]
    late[0][0][7] = 10**9
    for role, verdict in (("verdict", Verdict.FAIL), ("diagnostic", Verdict.INCONCLUSIVE)):
        plan = Plan(late, views=("wakeup_corrected",), series={"role": role}, head={"probe": "made-up"})
        assert judge([made.recording(tmp_path, plan)], Requirement(10**6)).verdict is verdict


def test_the_load_of_an_interval_is_added_without_touching_its_buckets(tmp_path: Path) -> None:
    lines = _ordered(tmp_path)
    raw = json.dumps(lines[2]).encode() + b"\n"
    added = with_load(raw, LoadUse(5, None, 7))
    assert added.startswith(raw[:-2]) and added.endswith(b"}\n")
    assert json.loads(added) == lines[2] | {"load": {"cpu_ns": 5, "context_switches": None, "processes": 7}}
    assert with_load(raw, None) == raw


def test_the_end_is_the_same_after_writing_it_again(tmp_path: Path) -> None:
    recording = _read(tmp_path, _ordered(tmp_path))
    assert recording.end is not None
    assert parsed_end("x", end_line(recording.end), recording.head) == recording.end
