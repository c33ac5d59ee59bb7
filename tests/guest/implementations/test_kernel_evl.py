# SPDX-License-Identifier: GPL-2.0-or-later
"""The EVL core in a guest: ``make check-kernels`` with a kernel called ``evl``."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.facts import collect
from fastenough.implementations.evl_user import IMPLEMENTATION, METHODS
from fastenough.link.modules import insert_module
from fastenough.model import NotApplicable
from fastenough.recording import Recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from tests.support.own_kernels import booted_own
from tests.support.virtual_boards import insert, parsed

pytestmark = pytest.mark.untimed

PROGRAM, GPIO_MODULE = IMPLEMENTATION.program, IMPLEMENTATION.module
PERIOD_NS = 2_000_000
EDGES = 100
OTHER_ABI = "fastenough-probe-evl-other-abi"


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("evl")


@pytest.fixture
def lines(board: VirtualBoard) -> Iterator[None]:
    path = f"/tmp/{GPIO_MODULE}.ko"
    board.link.write(path, build_module(board.kernel, SOURCES / "evl").read_bytes())
    insert_module(board.link, path, [f"chip={board.kernel.machine.pins.chip}"])
    yield
    assert board.link.run(["rmmod", GPIO_MODULE]).status == 0


def _timer(board: VirtualBoard, tmp_path: Path, method: str, *more: str) -> Recording:
    program = board.link.start(
        [PROGRAM, "timer", f"--interval={PERIOD_NS}ns", f"--method={method}", "--record=-", *more]
    )
    return parsed(list(program.lines(60.0)), tmp_path)


def test_the_profile_names_the_core(board: VirtualBoard) -> None:
    assert collect(board.link, ("real_time_core",))["real_time_core"]["core"] == "evl"


@pytest.mark.parametrize("method", METHODS)
def test_acts_and_missed_periods_make_up_what_is_charged(board: VirtualBoard, tmp_path: Path, method: str) -> None:
    recording = _timer(board, tmp_path, method, "--duration=1s")
    assert recording.end is not None
    wakeup, corrected = list(recording.end.series.values())[:2]
    assert recording.end.outcome == "completed" and wakeup.taken > 0, recording.end
    assert wakeup.taken + wakeup.missed == corrected.taken
    assert (recording.totals[0].minimum or 0) > -PERIOD_NS // 2


@pytest.mark.parametrize("method", METHODS)
def test_a_thread_that_linux_had_meanwhile_fails_the_run(board: VirtualBoard, tmp_path: Path, method: str) -> None:
    """A signal of Linux makes it a thread of Linux, which is no measurement of the core."""
    program = board.link.start(
        [PROGRAM, "timer", f"--interval={PERIOD_NS}ns", f"--method={method}", "--duration=3s", "--record=-"]
    )
    lines = program.lines(60.0)
    head = next(lines)
    stop = f"p=$(pidof {PROGRAM}); sleep 0.5; kill -STOP $p; sleep 0.2; kill -CONT $p"
    assert board.link.run(["sh", "-c", stop]).status == 0
    recording = parsed([head, *lines], tmp_path)
    assert recording.end is not None and recording.end.outcome == "failed", recording.end
    assert any("left the real-time core" in reason for reason in recording.end.reasons), recording.end.reasons


@pytest.mark.usefixtures("lines")
def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    before = board.pins.counts[OUTPUT_LINE]
    program = board.link.start(
        [PROGRAM, "periodic", f"--out={OUTPUT_LINE}", "--interval=5ms", "--loops=101", "--record=-"]
    )
    recording = parsed(list(program.lines(60.0)), tmp_path)
    board.pins.settle()
    assert board.pins.counts[OUTPUT_LINE] - before == recording.totals[0].total == 102


@pytest.fixture
def stopped(board: VirtualBoard) -> Iterator[None]:
    (state,) = board.link.run(["sh", "-c", "echo /sys/devices/virtual/*/control/state"]).text.split()
    board.link.write(state, b"stop")
    yield
    board.link.write(state, b"start")


@pytest.mark.usefixtures("stopped")
def test_a_stopped_core_is_said_to_be_stopped(board: VirtualBoard) -> None:
    done = board.link.run([PROGRAM, "timer", "--duration=1s", "--quiet"])
    assert (done.status, b"the EVL core of this kernel is stopped" in done.stderr) == (5, True), done.stderr
    with pytest.raises(NotApplicable, match="the EVL core of this kernel is stopped"):
        insert(board, build_module(board.kernel, SOURCES / "oob"), {"task": "timer-thread"})


def test_a_core_of_another_abi_is_refused_with_both_numbers(board: VirtualBoard) -> None:
    if board.link.which(OTHER_ABI) is None:
        pytest.skip(f"no {OTHER_ABI}: the root of this kernel has no program of another ABI")
    done = board.link.run([OTHER_ABI, "timer", "--duration=1s", "--quiet"])
    found = re.search(rb"the core has ABI (\d+) to (\d+), the library needs (\d+)", done.stderr)
    assert done.status == 5 and found is not None, done.stderr
    oldest, newest, wanted = map(int, found.groups())
    assert newest == int(board.link.read("/sys/devices/virtual/evl/control/abi"))
    assert oldest <= newest and not oldest <= wanted <= newest


@pytest.mark.usefixtures("lines")
def test_every_edge_is_answered_out_of_band(board: VirtualBoard, tmp_path: Path) -> None:
    board.pins.drive(INPUT_LINE, 0)
    board.pins.take()
    before = board.pins.counts[OUTPUT_LINE]
    program = board.link.start(
        [PROGRAM, "response", f"--in={INPUT_LINE}", f"--out={OUTPUT_LINE}", "--until-interrupt", "--record=-"]
    )
    lines = program.lines(60.0)
    begun = [next(lines), next(lines)]  # the head is written before the run begins, and earlier edges do not count
    for number in range(EDGES):
        level = (number + 1) % 2
        board.pins.drive(INPUT_LINE, level)
        board.pins.wait(OUTPUT_LINE, level, 60.0)
    program.signal(signal.SIGINT)
    recording = parsed([*begun, *lines], tmp_path)
    assert recording.end is not None and recording.end.outcome == "completed", recording.end
    assert recording.totals[0].total == EDGES == board.pins.counts[OUTPUT_LINE] - before
