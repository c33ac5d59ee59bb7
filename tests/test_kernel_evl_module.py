# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough_oob.ko under the EVL core: ``make check-kernels`` with a kernel called ``evl``."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_kernels import booted_own
from test_module_tasks import assert_every_period_is_accounted_for
from virtual_boards import PERIODIC, RESPONSE, insert, parsed, quiet, reading, recorded, since_load, unload_module

from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE

MODULE = "fastenough_oob"
EDGES = 200
TURNS = 100
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("evl")


def load(board: VirtualBoard, parameters: dict[str, str | int]) -> None:
    insert(board, build_module(board.kernel, SOURCES / "oob"), parameters)


@pytest.fixture
def settled(board: VirtualBoard) -> None:
    """Input low, and every edge of before answered."""
    board.pins.drive(INPUT_LINE, 0)
    quiet(board)
    board.pins.take()


@pytest.mark.usefixtures("settled")
def test_every_edge_is_seen_and_answered(board: VirtualBoard, tmp_path: Path) -> None:
    load(board, RESPONSE)
    probe = reading(board)
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    before = board.pins.counts[OUTPUT_LINE]
    for number in range(EDGES):
        level = (number + 1) % 2
        board.pins.drive(INPUT_LINE, level)
        board.pins.wait(OUTPUT_LINE, level, PATIENCE_S)
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board, MODULE)
    assert recording.end is not None
    assert since_load(recording.end.counters) == {"seen": EDGES, "answered": EDGES, "unchanged": 0}
    assert recording.totals[0].total == EDGES == board.pins.counts[OUTPUT_LINE] - before
    assert (recording.head.probe, recording.head.implementation) == ("response", "evl-kernel")


@pytest.mark.usefixtures("settled")
def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    before = board.pins.counts[OUTPUT_LINE]
    load(board, PERIODIC)
    recording = recorded(board, 1.0, tmp_path, "--report=250ms")
    unload_module(board, MODULE)
    board.pins.settle()
    assert recording.end is not None
    toggled = since_load(recording.end.counters)["toggled"]
    let_go_of_high = toggled % 2
    assert board.pins.counts[OUTPUT_LINE] - before == toggled + let_go_of_high > 0
    assert_every_period_is_accounted_for(recording, 5_000_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_misses_are_charged_and_short_intervals_lose_nothing(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    """A period too short for emulation, cut every 10 ms: banks are swapped in the middle of acts."""
    load(board, {"task": task, "period_ns": 20_000, "cpu": 1})
    recording = recorded(board, 1.5, tmp_path, "--report=10ms")
    unload_module(board, MODULE)
    assert recording.end is not None
    assert len(recording.intervals) > 2 and recording.end.series[0].missed > 0
    assert {event.cpu for event in recording.events} == {1}
    assert (recording.totals[0].minimum or 0) >= -20_000 // 2
    assert_every_period_is_accounted_for(recording, 20_000)


def test_the_task_runs_as_asked(board: VirtualBoard, tmp_path: Path) -> None:
    load(board, {"task": "timer-thread", "priority": 77, "cpu": 1})
    head = recorded(board, 0.2, tmp_path).head
    unload_module(board, MODULE)
    settings = {entry.name: entry.in_effect for entry in head.settings}
    assert {name: settings[name] for name in ("policy", "priority", "cpu")} == {"policy": "fifo", "priority": 77,
                                                                               "cpu": 1}


@pytest.mark.usefixtures("settled")
def test_it_comes_and_goes_under_load(board: VirtualBoard) -> None:
    """Many times in and out, under fire, on busy CPUs; the fixture reads the kernel's log when it ends."""
    board.link.write(f"/tmp/{MODULE}.ko", build_module(board.kernel, SOURCES / "oob").read_bytes())
    words = " ".join(f"{name}={value}" for name, value in RESPONSE.items())
    over = threading.Event()
    sent = 0

    def fire() -> None:
        nonlocal sent
        while not over.is_set():
            board.pins.drive(INPUT_LINE, sent % 2)
            sent += 1
            time.sleep(0.0005)

    gun = threading.Thread(target=fire)
    gun.start()
    try:
        read = f"{PROBE} kernel --duration=1ms --record=-"
        turn = f"insmod /tmp/{MODULE}.ko {words} && {read} && rmmod {MODULE} || exit 1"
        busy = "for cpu in 0 1; do while true; do cat /proc/stat; done >/dev/null & done"
        done = board.link.run(["sh", "-c", f"{busy}; for turn in $(seq {TURNS}); do {turn}; done"], timeout_s=400.0)
    finally:
        over.set()
        gun.join()
    assert (done.status, done.stderr) == (0, b"")
    ends = [since_load(line["counters"]) for line in map(json.loads, done.text.splitlines()) if line["type"] == "end"]
    totals = {name: sum(end[name] for end in ends) for name in ("seen", "answered", "unchanged")}
    assert len(ends) == TURNS and 0 < totals["seen"] <= sent
    assert totals["answered"] + totals["unchanged"] == totals["seen"]
