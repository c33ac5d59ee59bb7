# SPDX-License-Identifier: GPL-2.0-or-later
"""What becomes of a simulated gauge that ends by itself: its last words are kept.  Pins without a guest behind them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import NotApplicable
from fastenough.virtual.gauge import SimulatedGauge
from fastenough.virtual.pins import OUTPUT_LINE, Edge, Pins
from fastenough.virtual.qtest_pins import QtestPins
from tests.support.processes import eventually


@pytest.fixture
def wired() -> Iterator[tuple[SimulatedGauge, Pins, Path]]:
    ours, guest = socket.socketpair()

    def agree() -> None:
        """As QEMU does to every command."""
        with contextlib.suppress(OSError), guest.makefile("r") as commands:
            for _ in commands:
                guest.sendall(b"OK\n")

    threading.Thread(target=agree, daemon=True).start()
    pins = QtestPins(ours, "/pins")
    with tempfile.TemporaryDirectory(prefix="gauge-") as folder:
        try:
            gauge = SimulatedGauge(Path(folder), pins)
        except NotApplicable as reason:
            pytest.skip(str(reason))
        try:
            yield gauge, pins, Path(folder) / "gauge.sock"
        finally:
            gauge.close()
            pins.close()
            guest.close()


def ended(gauge: SimulatedGauge) -> str:
    assert eventually(lambda: gauge.fault() != "", 60)
    return gauge.fault()


def test_its_last_words_are_kept(wired: tuple[SimulatedGauge, Pins, Path]) -> None:
    gauge, _, path = wired
    assert gauge.fault() == ""
    later_ns = time.monotonic_ns() + 3600 * 10**9
    with socket.socket(socket.AF_UNIX) as board, contextlib.suppress(OSError):
        board.connect(str(path))
        board.sendall("".join(f"in {number % 2} {later_ns + number * 100_000}\n" for number in range(70_000)).encode())
    assert "exited with status 4: edges arrive faster than this machine can simulate" in ended(gauge)
    assert gauge.counters() == {}


def test_one_that_is_killed_says_nothing(wired: tuple[SimulatedGauge, Pins, Path]) -> None:
    gauge, _, _ = wired
    os.kill(gauge.pid, signal.SIGKILL)
    assert "exited with status -9: no error message" in ended(gauge)


def test_the_board_never_waits_for_a_gauge_that_is_stopped(wired: tuple[SimulatedGauge, Pins, Path]) -> None:
    """More edges than a socket holds; each is counted afterwards."""
    gauge, pins, _ = wired
    assert pins.on_edge is not None
    os.kill(gauge.pid, signal.SIGSTOP)
    now_ns = time.monotonic_ns()
    for number in range(1, 20_001):
        pins.on_edge(Edge(OUTPUT_LINE, number % 2, now_ns + number * 50_000))
    os.kill(gauge.pid, signal.SIGCONT)
    gauge.settle()
    assert gauge.counters()["edges_in"] == 20_000
    assert gauge.edges["returned"] == 20_000
