# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's firmware measures the module in a real kernel, and both count the same edges."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from virtual_boards import PERIODIC, RESPONSE, booted, counted

from fastenough.link.gauge import Gauge
from fastenough.link.virtual.board import VirtualBoard

TICKS_PER_MS = 16_000


@pytest.fixture(scope="module", params=["stock", "rt"])
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    for wired in booted(request.param):
        wired.wire_gauge()
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
