# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of tasks in the kernel, made by the probe's frame: what it says of every run, it says of these too."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from tests.support.virtual_boards import booted, insert, load_module, parsed, reading, recorded, unload_module

pytestmark = pytest.mark.untimed

HERE = Path(__file__).parents[2] / "sources"
PATIENCE_S = 60.0
STALLS = 3
INTERVALS = 40
OF_A_THREAD = ("voluntary_switches", "involuntary_switches", "migrations")
MOVES = 6


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted("rt")


def test_every_act_lies_in_the_interval_that_counts_it(board: VirtualBoard, tmp_path: Path) -> None:
    """The banks are parted every 10 ms, in the middle of acts; intervals follow each other without a gap.

    The greatest value of every bank lies in the bank's time: the probe fails a run where it does not.
    """
    for turn in range(3):
        load_module(board, {"task": "timer-handler", "period_ns": 50_000, "cpu": turn % 2})
        probe = reading(board, "--report=10ms", "--until-interrupt")
        lines = probe.lines(PATIENCE_S)
        taken = [next(lines)]
        while sum(b'"type":"interval"' in line for line in taken) < INTERVALS:
            taken.append(next(lines))
        probe.signal(signal.SIGINT)
        recording = parsed([*taken, *lines], tmp_path)
        unload_module(board)
        intervals = recording.intervals
        assert recording.end is not None and recording.outcome is Outcome.COMPLETED, recording.end
        assert [one.begin_mono_ns for one in intervals[1:]] == [one.end_mono_ns for one in intervals[:-1]]
        assert recording.events
        for event in recording.events:
            (interval,) = [one for one in intervals if one.begin_mono_ns <= event.at.mono_ns < one.end_mono_ns]
            assert event.series is not None
            assert interval.histograms[event.series].maximum == event.value


def test_counters_and_marks_are_those_of_any_run(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, {"task": "timer-thread", "cpu": 1})
    recording = recorded(board, 0.3, tmp_path)
    unload_module(board)
    assert recording.end is not None
    known = {name for name, count in recording.end.counters.items() if count is not None}
    assert known >= {"steal_ns", "throttled", "cgroup_throttled", "major_faults", "clock_step_ns", "clock_sets"}
    assert known >= {*OF_A_THREAD}
    assert recording.head.marks == {"self-measured"}
    assert recording.head.parameters["method"] == "kernel-thread"


def test_what_befell_the_kernel_thread_is_counted(board: VirtualBoard, tmp_path: Path) -> None:
    """It sleeps once per act, and is moved as often as somebody moves it; the time before the run is not counted.

    That time had as many acts as the run; a guest that is held up between two looks counts some more or fewer.
    """
    load_module(board, {"task": "timer-thread", "period_ns": 5_000_000})
    pid = board.link.run(["pidof", "fastenough"]).text.split()[0]
    assert board.link.run(["taskset", "-p", "2", pid]).status == 0  # where nothing but we can move it
    time.sleep(1)
    probe = reading(board, "--report=100ms")
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    for turn in range(MOVES):
        assert board.link.run(["taskset", "-p", str(1 + turn % 2), pid]).status == 0
        time.sleep(0.1)
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board)
    assert recording.end is not None
    counters = {name: recording.end.counters[name] or 0 for name in OF_A_THREAD}
    acts = recording.totals[recording.series[0].id].total
    assert 0.9 * acts <= counters["voluntary_switches"] <= 1.1 * acts + 5
    assert MOVES - 1 <= counters["migrations"] <= MOVES
    for name, total in counters.items():
        assert sum(interval.counters[name] or 0 for interval in recording.intervals) == total


def test_nothing_of_a_thread_is_said_of_an_interrupt(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, {"task": "timer-handler"})
    recording = recorded(board, 0.1, tmp_path)
    unload_module(board)
    assert recording.end is not None
    assert {recording.end.counters[name] for name in OF_A_THREAD} == {None}, "not known is not zero"


def test_a_step_of_the_clock_is_seen(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, {"task": "timer-handler"})
    probe = reading(board, "--report=100ms")
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    board.link.run(["date", "-s", f"@{int(time.time()) + 3600}"])
    board.link.run(["date", "-s", f"@{int(time.time())}"])
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board)
    assert recording.end is not None
    assert (recording.end.counters["clock_sets"] or 0) >= 1
    assert "clock-step" in {event.kind for event in recording.events}


@pytest.mark.parametrize(("period_ns", "stall_ns"), [(1_000_000, 40_000_000), (20_000, 150_000_000)])
def test_stalls_are_missed_in_the_corrected_series_too(
    board: VirtualBoard, tmp_path: Path, period_ns: int, stall_ns: int
) -> None:
    load_module(board, {"task": "timer-handler", "period_ns": period_ns, "cpu": 1})
    probe = reading(board, "--report=100ms")
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    insert(
        board,
        build_module(board.kernel, SOURCES / "inject"),
        {"sizes_ns": stall_ns, "each": STALLS, "cpu": 1, "interval_ns": 4 * stall_ns},
    )
    injected: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(injected) < STALLS and time.monotonic() < deadline:
        said = board.link.read("/dev/fastenough_inject").decode().splitlines()
        injected = [int(line.split(",")[1]) for line in said]
    unload_module(board, "fastenough_inject")
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board)
    each, corrected = recording.series
    stalled_ns = sum(injected)
    assert recording.missed(corrected.id) == recording.missed(each.id) >= stalled_ns // period_ns - len(injected)
    totals = recording.totals
    assert totals[corrected.id].total == totals[each.id].total + recording.missed(each.id)
    assert recording.lost(corrected.id) == 0


@pytest.mark.parametrize("label", ['quo"te"\\back', "täglich"])
def test_a_chip_may_have_any_name(board: VirtualBoard, tmp_path: Path, label: str) -> None:
    insert(board, build_module(board.kernel, HERE / "blind_chip"), {"label": label})
    try:
        load_module(board, {"task": "response", "chip": label, "in_line": 0, "out_line": 1})
        recording = recorded(board, 0.05, tmp_path)
        unload_module(board)
    finally:
        unload_module(board, "blind_chip")
    parameters = recording.head.parameters
    assert (parameters["chip"], parameters["in"], parameters["out"]) == (label, 0, 1)


def test_a_priority_changed_meanwhile_fails_the_run(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, {"task": "timer-thread", "priority": 77})
    probe = reading(board)
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    pid = board.link.run(["pidof", "fastenough"]).text.split()[0]
    assert board.link.run(["chrt", "-f", "-p", "50", pid]).status == 0
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board)
    assert recording.outcome is not Outcome.COMPLETED
    assert recording.end is not None
    assert [(change.name, change.before, change.after) for change in recording.end.changes] == [("priority", 77, 50)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--loops=5"], "use --duration instead of --loops"),
        (["--threshold=5us"], "omit --threshold and --breaktrace"),
        (["--limit=5us"], "omit --limit"),
        (["--interval=7ms"], "has a period of 1000000 ns"),
    ],
)
def test_what_the_module_cannot_do_is_bad_input(board: VirtualBoard, options: list[str], said: str) -> None:
    load_module(board, {"task": "timer-handler"})
    probe = reading(board, *options)
    assert not list(probe.lines(PATIENCE_S))
    assert probe.wait(PATIENCE_S) == 2
    unload_module(board)
    assert said in probe.stderr().decode()
    assert probe.stderr().decode().count("\n") == 1
