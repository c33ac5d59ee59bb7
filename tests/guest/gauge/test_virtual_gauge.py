# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's firmware measures the module in a real kernel, and both count the same edges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.gauge.session import Gauge
from fastenough.virtual.board import VirtualBoard
from tests.support.cli_calls import ROOT
from tests.support.processes import eventually
from tests.support.virtual_boards import PERIODIC, RESPONSE, booted, counted, leave_output_low, load_module

TICKS_PER_MS = 16_000
TIMEOUT = 1000 * TICKS_PER_MS
ENOUGH = 100
PATIENCE_S = 120.0
"""A guest on a busy machine may be very slow: what is waited for is what it has done."""


@pytest.fixture(scope="module", params=[pytest.param("stock", marks=pytest.mark.check), "rt"])
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    for wired in booted(request.param):
        wired.wire_gauge()
        yield wired


def test_response_is_measured_from_outside(board: VirtualBoard) -> None:
    assert board.gauge is not None
    load_module(board, RESPONSE)
    with Gauge(board.gauge.terminal) as gauge:
        sent_before = board.gauge.edges["sent"]
        gauge.start_response(TICKS_PER_MS, 3 * TICKS_PER_MS, TIMEOUT, seed=1)
        assert eventually(lambda: sum(map(gauge.counters().stored, (0, 1))) > ENOUGH, PATIENCE_S)
        gauge.stop_and_wait()
        board.gauge.settle()
        sent = board.gauge.edges["sent"] - sent_before
        histograms, counters = gauge.take(), gauge.counters()
    inside = counted(board)
    stored = sum(histogram.total for histogram in histograms.values())
    print(f"{board.kernel.release}: gauge sent {counters.common['sent']}, board {inside}, gauge stored {stored}")
    assert counters.common["sent"] == stored + counters.lost(0) + counters.lost(1) > ENOUGH
    assert counters.common["sent"] + counters.common["resync_edges"] == sent == inside["seen"] == inside["answered"]


def test_periodic_is_measured_from_outside(board: VirtualBoard) -> None:
    assert board.gauge is not None
    load_module(board, {**PERIODIC, "period_ns": 5_000_000})
    with Gauge(board.gauge.terminal) as gauge:
        gauge.start_periodic(10 * TICKS_PER_MS, TIMEOUT)
        assert eventually(lambda: gauge.counters().stored(0) > ENOUGH, PATIENCE_S)
        gauge.stop_and_wait()
        histograms = gauge.take()
    inside = counted(board)
    stored = sum(histogram.total for histogram in histograms.values())
    print(f"{board.kernel.release}: board {inside}, gauge stored {stored}")
    assert ENOUGH < stored <= inside["toggled"] // 2


def test_no_edge_is_lost_while_the_gauge_is_stopped(board: VirtualBoard) -> None:
    """For two seconds in the middle; the board goes on, and each of its edges is counted."""
    assert board.gauge is not None
    leave_output_low(board)
    with Gauge(board.gauge.terminal) as gauge:
        gauge.start_periodic(10 * TICKS_PER_MS, TIMEOUT)
        edges = board.gauge.edges
        returned = edges["returned"]
        load_module(board, {**PERIODIC, "period_ns": 5_000_000})
        assert eventually(lambda: edges["returned"] - returned > 2 * ENOUGH, PATIENCE_S)
        os.kill(board.gauge.pid, signal.SIGSTOP)
        time.sleep(2.0)
        assert eventually(lambda: edges["returned"] - returned > 4 * ENOUGH, PATIENCE_S)
        os.kill(board.gauge.pid, signal.SIGCONT)
        assert eventually(lambda: edges["returned"] - returned > 6 * ENOUGH, PATIENCE_S)
        inside = counted(board)
        board.gauge.settle()
        gauge.stop_and_wait()
        counters = gauge.counters()
        stored = gauge.take()[0].total
    print(f"{board.kernel.release}: board {inside}, gauge {counters}, simulator {board.gauge.counters()}")
    returned = board.gauge.edges["returned"] - returned
    assert returned - inside["toggled"] in (0, 1)  # one more where the module has made the pin low
    assert counters.common["edges"] in (returned // 2, (returned + 1) // 2)
    assert counters.common["edges"] == stored + counters.lost(0) + 1 > 2 * ENOUGH
    assert not board.gauge.fault()


def test_a_killed_bench_leaves_nothing_of_its_gauge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = (
        "import time; from fastenough.board import open_board; board = open_board('virtual').boot('stock'); "
        "board.__enter__().wire_gauge(); print(flush=True); time.sleep(60)"
    )
    bench = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert bench.stdout is not None
    bench.stdout.readline()
    bench.send_signal(signal.SIGKILL)
    bench.wait()
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert [path.name.startswith("fastenough-board-") for path in tmp_path.iterdir()] == [True]
    with VirtualBoard("stock"):
        assert not list(tmp_path.glob(f"fastenough-board-{bench.pid}-*"))
    assert list(tmp_path.iterdir()) == []
