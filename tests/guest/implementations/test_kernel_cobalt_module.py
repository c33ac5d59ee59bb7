# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough_rtdm.ko under Xenomai's Cobalt core: ``make check-kernels`` with a kernel called ``cobalt``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import FastenoughError
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

MODULE = "fastenough_rtdm"
EDGES = 500
TURNS = 100


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("cobalt")


def load(board: VirtualBoard, parameters: dict[str, str | int]) -> None:
    insert(board, build_module(board.kernel, SOURCES / "rtdm"), parameters)


def unload(board: VirtualBoard) -> None:
    unload_module(board, MODULE)


def test_every_edge_is_seen_and_answered(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    load(board, RESPONSE)
    recording = every_edge_is_answered(board, EDGES, tmp_path)
    unload(board)
    assert (recording.head.probe, recording.head.implementation) == ("response", "xenomai-kernel")


def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    settled(board)
    before = board.pins.counts[OUTPUT_LINE]
    load(board, PERIODIC)
    recording = recorded(board, 1.0, tmp_path, "--report=250ms")
    unload(board)
    board.pins.settle()
    assert recording.end is not None
    assert board.pins.counts[OUTPUT_LINE] - before == since_load(recording.end.counters)["toggled"] > 0
    assert recording.end.counters["toggled"] == recording.totals[0].total
    assert_every_period_is_accounted_for(recording, 5_000_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_misses_are_charged_and_short_intervals_lose_nothing(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    """A period too short for emulation, cut every 10 ms: banks are swapped in the middle of acts."""
    load(board, {"task": task, "period_ns": 20_000, "cpu": 1})
    recording = recorded(board, 1.5, tmp_path, "--report=10ms")
    unload(board)
    assert recording.end is not None
    assert len(recording.intervals) > 2 and recording.end.series[0].missed > 0
    assert (recording.totals[0].minimum or 0) * recording.series[0].unit_ns >= -10_000, "a due time is served once"
    assert {event.cpu for event in recording.events} == {1}
    assert_every_period_is_accounted_for(recording, 20_000)


@pytest.mark.parametrize("task", ["timer-thread", "timer-handler"])
def test_overruns_that_were_made_are_found(board: VirtualBoard, tmp_path: Path, task: str) -> None:
    load(board, {"task": task, "period_ns": HOGGED_PERIOD_NS, "cpu": 1})
    overruns_that_were_made_are_found(board, tmp_path, core_counts=task == "timer-thread")
    unload(board)


def test_the_task_runs_as_asked(board: VirtualBoard, tmp_path: Path) -> None:
    load(board, {"task": "timer-thread", "priority": 77, "cpu": 1})
    head = recorded(board, 0.2, tmp_path).head
    unload(board)
    settings = {entry.name: entry.in_effect for entry in head.settings}
    assert {name: settings[name] for name in ("policy", "priority", "cpu")} == {
        "policy": "fifo",
        "priority": 77,
        "cpu": 1,
    }


def test_it_comes_and_goes_under_load(board: VirtualBoard) -> None:
    """On busy CPUs; the fixture reads the kernel's log when it ends."""
    it_comes_and_goes(board, build_module(board.kernel, SOURCES / "rtdm"), TURNS, BUSY)


@pytest.fixture
def gravity(board: VirtualBoard) -> Iterator[None]:
    """The core's timers expire 50 µs early, to make up for what its tasks are late."""
    board.link.write("/proc/xenomai/clock/coreclk", b"50000k")
    yield
    board.link.write("/proc/xenomai/clock/coreclk", b"0k")


@pytest.mark.usefixtures("gravity")
def test_a_period_below_the_gravity_of_the_core_is_refused(board: VirtualBoard, tmp_path: Path) -> None:
    with pytest.raises(FastenoughError, match="the core refused a period of 20000 ns: error -22"):
        load(board, {"task": "timer-thread", "period_ns": 20_000})
    load(board, {"task": "timer-thread", "period_ns": HOGGED_PERIOD_NS})
    recording = recorded(board, 0.5, tmp_path)
    unload(board)
    assert_every_period_is_accounted_for(recording, HOGGED_PERIOD_NS)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"task": "spin"}, "task=spin is unknown: choose response, periodic, timer-handler or timer-thread"),
        ({**RESPONSE, "chip": "nonsense"}, "there is no GPIO chip labelled 'nonsense'"),
        ({"task": "timer-thread", "priority": 100}, "priority=100 is out of range"),
    ],
)
def test_refusals_say_why(board: VirtualBoard, parameters: dict[str, str | int], said: str) -> None:
    with pytest.raises(FastenoughError) as refusal:
        load(board, parameters)
    assert said in str(refusal.value)
    assert not board.link.exists(f"/sys/module/{MODULE}")
