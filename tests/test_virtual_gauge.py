# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's firmware measures the module in a real kernel, and both count the same edges."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from virtual_boards import PERIODIC, RESPONSE, booted, counted

from fastenough.link.gauge import Gauge
from fastenough.link.virtual.board import VirtualBoard
from fastenough.model import NotApplicable

TICKS_PER_MS = 16_000


@pytest.fixture(scope="module", params=["stock", "rt"])
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    for wired in booted(request.param):
        try:
            wired.wire_gauge()
        except NotApplicable as reason:
            pytest.skip(str(reason))
        yield wired


def test_response_is_measured_from_outside(board: VirtualBoard) -> None:
    assert board.gauge is not None
    board.load_module(RESPONSE)
    with Gauge(board.gauge.terminal) as gauge:
        sent_before = board.gauge.edges["sent"]
        gauge.start_response(TICKS_PER_MS, 3 * TICKS_PER_MS, 500 * TICKS_PER_MS, seed=1)
        time.sleep(4.0)
        gauge.stop()
        time.sleep(1.0)
        sent = board.gauge.edges["sent"] - sent_before
        histograms, counters = gauge.take(), gauge.counters()
    inside = counted(board.unload_module())
    stored = sum(histogram.total for histogram in histograms.values())
    print(f"{board.kernel.release}: gauge sent {counters.common['sent']}, board {inside}, gauge stored {stored}")
    assert counters.common["sent"] == sent == inside["seen"] == inside["answered"] == stored > 100


def test_periodic_is_measured_from_outside(board: VirtualBoard) -> None:
    assert board.gauge is not None
    board.load_module({**PERIODIC, "period_ns": 5_000_000})
    with Gauge(board.gauge.terminal) as gauge:
        gauge.start_periodic(10 * TICKS_PER_MS, 500 * TICKS_PER_MS)
        time.sleep(3.0)
        gauge.stop()
        time.sleep(0.5)
        histograms = gauge.take()
    inside = counted(board.unload_module())
    stored = sum(histogram.total for histogram in histograms.values())
    print(f"{board.kernel.release}: board {inside}, gauge stored {stored}")
    assert 100 < stored <= inside["toggled"] // 2


def test_no_edge_is_lost_while_the_gauge_is_stopped(board: VirtualBoard) -> None:
    """For two seconds in the middle; the board goes on, and each of its edges is counted."""
    assert board.gauge is not None
    with Gauge(board.gauge.terminal) as gauge:
        gauge.start_periodic(10 * TICKS_PER_MS, 500 * TICKS_PER_MS)
        returned = board.gauge.edges["returned"]
        board.load_module({**PERIODIC, "period_ns": 5_000_000})
        time.sleep(1.0)
        os.kill(board.gauge.pid, signal.SIGSTOP)
        time.sleep(2.0)
        os.kill(board.gauge.pid, signal.SIGCONT)
        time.sleep(1.0)
        inside = counted(board.unload_module())
        board.gauge.settle()
        gauge.rest()
        counters = gauge.counters()
        stored = gauge.take()[0].total
    print(f"{board.kernel.release}: board {inside}, gauge {counters}, simulator {board.gauge.counters()}")
    returned = board.gauge.edges["returned"] - returned
    assert returned - inside["toggled"] in (0, 1)  # one more where the module has made the pin low
    assert counters.common["edges"] in (returned // 2, (returned + 1) // 2)
    assert counters.common["edges"] == stored + counters.lost(0) + 1 > 300
    assert not board.gauge.fault()
