# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor's one object runs unchanged on every kernel of the virtual bench, which are of another architecture."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.campaign.monitoring import find_monitor
from fastenough.model import Outcome
from fastenough.recording import Recording, read_recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.kernels import KERNELS
from fastenough.virtual.probe import PROBE
from tests.support.monitored import TIMER_STATIONS
from tests.support.virtual_boards import booted, every_kernel, require_kernel

pytestmark = [pytest.mark.untimed, pytest.mark.timeout(1200)]
ACTS = 60
"""Of the task that is watched, one each 20 ms."""
WATCHED = [name for name, origin in KERNELS.items() if origin.arch in ("arm64", "amd64")]
"""For other guests the monitor is not built."""


@pytest.fixture(scope="module", params=every_kernel("rt", "stock", among=WATCHED))
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    if shutil.which("clang") is None:
        pytest.skip("clang is missing")
    require_kernel(request.param)
    yield from booted(request.param)


def _recording(lines: list[bytes], path: Path) -> Recording:
    path.write_bytes(b"".join(lines))
    return read_recording(path)


@pytest.fixture(scope="module")
def watched(board: VirtualBoard, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    """What the monitor saw of a probe's task, and what the task saw itself."""
    folder = tmp_path_factory.mktemp("kernels")
    program = find_monitor(board.link)
    monitor = board.link.start(
        [program, "monitor", "--noise", "--comm=fastenough-prob", "--until-interrupt", "--duration=60s", "--record=-"]
    )
    stream = monitor.lines(60.0)
    seen = [next(stream)]
    task = [
        *board.link.start(
            [
                PROBE,
                "timer",
                "--interval=20ms",
                f"--loops={ACTS}",
                "--affinity=0",
                "--threads=1",
                "--allow-difference",
                "--record=-",
            ]
        ).lines(60.0)
    ]
    monitor.signal(2)
    seen += stream
    assert monitor.wait(60.0) == 0, monitor.stderr()
    return _recording(seen, folder / "monitor"), _recording(task, folder / "task")


def _count(recording: Recording, name: str) -> int:
    return sum(recording.totals[series.id].total for series in recording.named(name))


def test_it_sees_the_wake_ups_of_the_task(watched: tuple[Recording, Recording]) -> None:
    """The start is a wake-up too; an act that is late by a whole period in the emulated guest does not sleep."""
    monitor, task = watched
    assert monitor.outcome is Outcome.COMPLETED, monitor.reasons
    assert _count(task, "wakeup") == ACTS
    assert monitor.end is not None
    reasons = sum(monitor.end.counters.get(f"monitor_{name}") or 0 for name in ("unmatched", "dropped", "suppressed"))
    seen = _count(monitor, "expiry-to-running")
    assert seen + reasons >= ACTS // 2 and seen <= ACTS + 1


def test_its_stations_add_up(watched: tuple[Recording, Recording]) -> None:
    monitor, _ = watched
    parts = sum(monitor.totals[series.id].sum for name in TIMER_STATIONS for series in monitor.named(name))
    assert parts == sum(monitor.totals[series.id].sum for series in monitor.named("expiry-to-running")) > 0


def test_it_sees_noise(watched: tuple[Recording, Recording]) -> None:
    monitor, _ = watched
    assert _count(monitor, "noise-interrupt") > ACTS
    assert _count(monitor, "noise-softirq") > 0
