# SPDX-License-Identifier: GPL-2.0-or-later
"""The real-time gauge is stopped for a while: no edge is lost, none is moved, and what cannot be done ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.gauge.session import Gauge
from tests.support.gauge_simulation import Build, Follower, RealtimeGauge, pairs
from tests.support.processes import eventually

TICK_NS = 62.5


class Wire:
    """Pins whose edges the test makes itself."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r")
        self._lines.readline()

    def say(self, words: str) -> None:
        self._socket.sendall(words.encode())

    def settle(self) -> None:
        """Until each edge has come to the firmware."""
        assert eventually(lambda: self.counters()["edges_waiting"] == 0, 120)

    def counters(self) -> dict[str, int]:
        self.say("count\n")
        line = next(line for line in self._lines if line.startswith("counted "))
        return {name: int(count) for name, count in pairs(line).items()}


@contextlib.contextmanager
def stopped(process: subprocess.Popen[str]) -> Iterator[int]:
    """While inside, it does not run; the time at which it had surely stopped."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    try:
        yield time.monotonic_ns()
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("stall_ms", [400, 700, 2000])
def test_edges_made_during_a_stall_come_at_their_times(instrument: RealtimeGauge, stall_ms: int) -> None:
    """A toggle a millisecond: more edges than simavr has timers, and every period is exact."""
    wire = Wire(instrument.pins)
    with Gauge(instrument.port) as gauge:
        gauge.start_periodic(2 * 16_000, 10**7)
        with stopped(instrument.process) as begin_ns:
            time.sleep(stall_ms / 1000)
            wire.say("".join(f"in {number % 2} {begin_ns + number * 1_000_000}\n" for number in range(1, stall_ms + 1)))
        wire.settle()
        gauge.stop_and_wait()
        histogram, counted = gauge.take()[0], gauge.counters()
    falls = stall_ms // 2
    assert wire.counters()["edges_in"] == stall_ms
    assert counted.common["edges"] == falls
    assert (counted.by_series[0]["lost"], counted.common["gaps"]) == (0, 0)
    assert histogram.total == falls - 1
    assert histogram.minimum is not None and histogram.maximum is not None
    assert -1 <= histogram.minimum <= histogram.maximum <= 1


def test_edges_that_were_read_together_are_all_seen(instrument: RealtimeGauge) -> None:
    """A busy bench reads them late, all at once: their times say that they came within a microsecond."""
    wire = Wire(instrument.pins)
    with Gauge(instrument.port) as gauge:
        gauge.start_periodic(2 * 16_000, 10**7)
        now_ns = time.monotonic_ns()
        wire.say("".join(f"in {number % 2} {now_ns + number * 100}\n" for number in range(1, 201)))
        assert wire.counters()["put_off"] > 100
        wire.settle()
        gauge.stop_and_wait()
        assert gauge.counters().common["edges"] == 100


@pytest.mark.slow
def test_answers_survive_stalls(instrument: RealtimeGauge) -> None:
    board = Follower(instrument.pins)
    with Gauge(instrument.port) as gauge:
        gauge.start_response(16_000, 32_000, 16_000_000)
        for stall_s in (0.4, 0.7, 2.0):
            board.hear(30)
            with stopped(instrument.process):
                time.sleep(stall_s)
        board.hear(30)
        gauge.stop_and_wait()
        histograms, counted = gauge.take(), gauge.counters()
    assert counted.common["sent"] == board.seen == board.answered > 100
    assert sum(histogram.total for histogram in histograms.values()) == counted.common["sent"]


def test_more_edges_than_can_wait_end_the_simulation(gauge_build: Build, tmp_path: Path) -> None:
    pins = tmp_path / "pins"
    process = subprocess.Popen(
        [str(gauge_build.realtime), "--pins", str(pins), "atmega328p", str(gauge_build.firmware("atmega328p"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    process.stdout.readline()
    wire = Wire(pins)
    later_ns = time.monotonic_ns() + 3600 * 10**9
    with contextlib.suppress(OSError):
        wire.say("".join(f"in {number % 2} {later_ns + number * 100_000}\n" for number in range(70_000)))
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "the buffer is full" in errors
    assert int(pairs(out)["edges_waiting"]) == 65_536
