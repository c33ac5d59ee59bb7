# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough_oob.ko under the EVL core: ``make check-kernels`` with a kernel called ``evl``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.pins import OUTPUT_LINE
from tests.support.module_trials import (
    HOGGED_PERIOD_NS,
    assert_every_period_is_accounted_for,
    every_edge_is_answered,
    it_comes_and_goes,
    overruns_that_were_made_are_found,
    settled,
)
from tests.support.own_kernels import BUSY, booted_own
from tests.support.virtual_boards import PERIODIC, RESPONSE, insert, recorded, since_load, unload_module

pytestmark = pytest.mark.untimed

MODULE = "fastenough_oob"
EDGES = 200
TURNS = 100


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("evl")


def load(board: VirtualBoard, parameters: dict[str, str | int]) -> None:
    insert(board, build_module(board.kernel, SOURCES / "oob"), parameters)


def test_every_edge_is_seen_and_answered(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    load(board, RESPONSE)
    recording = every_edge_is_answered(board, EDGES, tmp_path)
    unload_module(board, MODULE)
    assert (recording.head.probe, recording.head.implementation) == ("response", "evl-kernel")


def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    before = board.pins.counts[OUTPUT_LINE]
    load(board, PERIODIC)
    recording = recorded(board, 1.0, tmp_path, "--report=250ms")
    unload_module(board, MODULE)
    board.pins.settle()
    assert recording.end is not None
    assert board.pins.counts[OUTPUT_LINE] - before == since_load(recording.end.counters)["toggled"] > 0
    assert_every_period_is_accounted_for(recording, 5_000_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_misses_are_charged_and_short_intervals_lose_nothing(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    """A period too short for emulation, cut every 10 ms: banks are swapped in the middle of acts."""
    load(board, {"task": task, "period_ns": 20_000, "cpu": 1})
    recording = recorded(board, 1.5, tmp_path, "--report=10ms")
    unload_module(board, MODULE)
    assert recording.end is not None
    assert len(recording.intervals) > 2 and recording.end.series[0].missed > 0
    assert (recording.totals[0].minimum or 0) * recording.series[0].unit_ns >= -10_000, "a due time is served once"
    assert {event.cpu for event in recording.events} == {1}
    assert (recording.totals[0].minimum or 0) >= -20_000 // 2
    assert ((recording.end.counters.get("core_overruns") or 0) > 0) == (task == "timer-thread")
    assert_every_period_is_accounted_for(recording, 20_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_overruns_that_were_made_are_found(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    load(board, {"task": task, "period_ns": HOGGED_PERIOD_NS, "cpu": 1})
    overruns_that_were_made_are_found(board, tmp_path, core_counts=task == "timer-thread")
    unload_module(board, MODULE)


def test_the_task_runs_as_asked(board: VirtualBoard, tmp_path: Path) -> None:
    load(board, {"task": "timer-thread", "priority": 77, "cpu": 1})
    head = recorded(board, 0.2, tmp_path).head
    unload_module(board, MODULE)
    settings = {entry.name: entry.in_effect for entry in head.settings}
    assert {name: settings[name] for name in ("policy", "priority", "cpu")} == {
        "policy": "fifo",
        "priority": 77,
        "cpu": 1,
    }


def test_it_comes_and_goes_under_load(board: VirtualBoard) -> None:
    """On busy CPUs; the fixture reads the kernel's log when it ends."""
    it_comes_and_goes(board, build_module(board.kernel, SOURCES / "oob"), TURNS, BUSY)
