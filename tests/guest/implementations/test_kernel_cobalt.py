# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Xenomai's Cobalt core in a guest: ``make check-kernels`` with a kernel called ``cobalt``."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.facts import collect
from fastenough.implementations.xenomai_user import IMPLEMENTATION, METHODS
from fastenough.link import Process
from fastenough.model import NotApplicable
from fastenough.recording import Recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from tests.support.own_kernels import booted_own, require_own_kernel
from tests.support.virtual_boards import BOOT_S, CHIP, insert, parsed, unload_module

pytestmark = pytest.mark.untimed

PROGRAM, GPIO_MODULE = IMPLEMENTATION.program, IMPLEMENTATION.module
PERIOD_NS = 2_000_000
EDGES = 200
PATIENCE_S = 60.0
STOPPED_S = 0.2
OTHER_ABI = "fastenough-probe-xenomai-other-abi"


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("cobalt")


def acting(board: VirtualBoard, *words: str) -> tuple[Process, list[bytes], Iterator[bytes]]:
    """A program whose acts have begun: its first lines, and those that will come."""
    program = board.link.start([PROGRAM, *words, "--report=100ms", "--record=-"])
    lines = program.lines(PATIENCE_S)
    return program, [next(lines), next(lines)], lines


def test_the_profile_names_the_core(board: VirtualBoard) -> None:
    assert collect(board.link, ("real_time_core",))["real_time_core"]["core"] == "cobalt"


@pytest.mark.parametrize("method", METHODS)
def test_acts_and_missed_periods_make_up_what_is_charged(board: VirtualBoard, tmp_path: Path, method: str) -> None:
    program = board.link.start(
        [PROGRAM, "timer", "--duration=1s", f"--interval={PERIOD_NS}ns", f"--method={method}", "--record=-"]
    )
    recording = parsed(list(program.lines(PATIENCE_S)), tmp_path)
    assert recording.end is not None
    wakeup, corrected = list(recording.end.series.values())[:2]
    assert recording.end.outcome == "completed" and wakeup.taken > 0
    assert wakeup.taken + wakeup.missed == corrected.taken


@pytest.mark.parametrize("method", METHODS)
def test_a_thread_that_was_stopped_fails_the_run(board: VirtualBoard, method: str) -> None:
    """However it waits: to stop, it has to leave the core, and that is counted."""
    program, _, lines = acting(board, "timer", "--until-interrupt", f"--interval={PERIOD_NS}ns", f"--method={method}")
    words = f"kill -STOP $(pidof {PROGRAM}); sleep {STOPPED_S}; kill -CONT $(pidof {PROGRAM})"
    assert board.link.run(["sh", "-c", words]).status == 0
    next(lines)
    program.signal(signal.SIGINT)
    list(lines)
    assert program.wait(PATIENCE_S) == 4
    assert b"left the real-time core" in program.stderr()


@pytest.fixture
def lines_of_rtdm(board: VirtualBoard) -> Iterator[None]:
    insert(board, build_module(board.kernel, SOURCES / "xenomai"), {"chip": CHIP})
    yield
    unload_module(board, GPIO_MODULE)


@pytest.mark.usefixtures("lines_of_rtdm")
def test_every_edge_is_seen_and_answered(board: VirtualBoard, tmp_path: Path) -> None:
    board.pins.drive(INPUT_LINE, 0)
    program, first, lines = acting(board, "response", f"--in={INPUT_LINE}", f"--out={OUTPUT_LINE}")
    before = board.pins.counts[OUTPUT_LINE]
    for number in range(EDGES):
        level = (number + 1) % 2
        board.pins.drive(INPUT_LINE, level)
        board.pins.wait(OUTPUT_LINE, level, PATIENCE_S)
    answered = board.pins.counts[OUTPUT_LINE] - before
    program.signal(signal.SIGINT)
    recording = parsed([*first, *lines], tmp_path)
    assert recording.totals[0].total == answered == EDGES


@pytest.mark.usefixtures("lines_of_rtdm")
def test_every_toggle_comes_out(board: VirtualBoard, tmp_path: Path) -> None:
    before = board.pins.counts[OUTPUT_LINE]
    program = board.link.start(
        [PROGRAM, "periodic", f"--out={OUTPUT_LINE}", "--interval=5ms", "--duration=1s", "--record=-"]
    )
    recording: Recording = parsed(list(program.lines(PATIENCE_S)), tmp_path)
    board.pins.settle()
    assert board.pins.counts[OUTPUT_LINE] - before == recording.totals[0].total > 0


def test_a_core_of_another_abi_is_refused_with_both_numbers(board: VirtualBoard) -> None:
    if board.link.which(OTHER_ABI) is None:
        pytest.skip(f"no {OTHER_ABI}: the root of this kernel has no program of another ABI")
    done = board.link.run([OTHER_ABI, "timer", "--duration=1s", "--quiet"])
    found = re.search(rb"ABI mismatch: required r(\d+), provided r(\d+)", done.stderr)
    assert done.status == 5 and found is not None, done.stderr
    assert found[1] != found[2]


def test_a_stopped_core_is_said_to_be_stopped() -> None:
    kernel = require_own_kernel("cobalt")
    with VirtualBoard(kernel, boot_timeout_s=BOOT_S, arguments="xenomai.state=stopped") as stopped:
        done = stopped.link.run([PROGRAM, "timer", "--duration=1s", "--quiet"])
        assert (done.status, b"stopped" in done.stderr) == (5, True), done.stderr
        with pytest.raises(NotApplicable, match="the Cobalt core of this kernel is stopped"):
            insert(stopped, build_module(stopped.kernel, SOURCES / "rtdm"), {"task": "timer-thread"})
