# SPDX-License-Identifier: GPL-2.0-or-later
"""Gaps with interrupts off, in real kernels: every turn of the loop is counted, and what stops the machine is found."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import FastenoughError, Outcome
from fastenough.virtual.board import VirtualBoard
from tests.support.virtual_boards import (
    OWN_KERNELS,
    booted,
    every_kernel,
    load_module,
    parsed,
    reading,
    recorded,
    unload_module,
)

pytestmark = pytest.mark.untimed

WIDTH_NS, WINDOW_NS = 20_000_000, 40_000_000
STOPS, STOPPED_S = 12, 0.3


@pytest.fixture(scope="module", params=every_kernel("stock-6.12", among=OWN_KERNELS))
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    yield from booted(request.param)


@pytest.mark.parametrize("cpu", [1, -1])
def test_every_turn_of_the_loop_is_counted(board: VirtualBoard, tmp_path: Path, cpu: int) -> None:
    """The values of the windows, with the floor that was taken off, are the time that was spent in them."""
    load_module(board, {"task": "spin", "width_ns": WIDTH_NS, "window_ns": WINDOW_NS, "cpu": cpu})
    recording = recorded(board, 1.5, tmp_path, "--report=100ms")
    unload_module(board)
    assert recording.end is not None and recording.outcome is Outcome.COMPLETED
    head, total = recording.head, recording.totals[0]
    (gap,) = recording.series
    assert (head.probe, head.implementation, gap.name) == ("spin", "linux-kernel", "gap")
    assert (head.parameters["width_ns"], head.parameters["window_ns"]) == (WIDTH_NS, WINDOW_NS)
    assert gap.cpu == (1 if cpu == 1 else None)
    windows = recording.end.counters["windows"]
    assert windows is not None and windows > 3
    spent_ns = total.sum + total.total * int(str(head.parameters["floor_ns"]))
    assert total.maximum is not None
    # One that was under way at the begin counts though its first turns came before it; one at the end does not.
    assert (windows - 1) * WIDTH_NS <= spent_ns <= (windows + 1) * (WIDTH_NS + total.maximum)
    assert windows <= recording.duration_ns / WINDOW_NS * 2 + 2
    assert {event.cpu for event in recording.events} <= ({1} if cpu == 1 else {0, 1})


def test_a_machine_that_stands_still_is_a_gap(board: VirtualBoard, tmp_path: Path) -> None:
    """As under a hypervisor, or in firmware: no interrupt is needed for it.  About every second stop hits a window."""
    load_module(board, {"task": "spin", "width_ns": 100_000_000, "window_ns": 200_000_000, "cpu": 1})
    probe = reading(board, "--until-interrupt", "--report=1s")
    lines = probe.lines(60.0)
    first = next(lines)
    for turn in range(STOPS):
        time.sleep(0.33 + 0.05 * (turn % 4))
        os.kill(board.qemu.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(board.qemu.pid, signal.SIGCONT)
    probe.signal(signal.SIGINT)
    recording = parsed([first, *lines], tmp_path)
    unload_module(board)
    assert recording.outcome is Outcome.COMPLETED
    found = recording.totals[0].count_above(round(STOPPED_S * 0.9e9))
    assert 1 <= found <= STOPS + 2


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"width_ns": 200_000_000, "window_ns": 800_000_000}, "width_ns=200000000 is out of range"),
        ({"width_ns": 100_000}, "width_ns=100000 is out of range"),
        ({"width_ns": 20_000_000, "window_ns": 30_000_000}, "choose twice width_ns at least"),
        ({"width_ns": 20_000_000, "window_ns": 2_000_000_000}, "window_ns=2000000000 is out of range"),
    ],
)
def test_it_never_takes_a_cpu_for_long(board: VirtualBoard, parameters: dict[str, int], why: str) -> None:
    with pytest.raises(FastenoughError, match=why):
        load_module(board, {"task": "spin", **parameters})
