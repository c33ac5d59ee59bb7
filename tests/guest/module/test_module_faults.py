# SPDX-License-Identifier: GPL-2.0-or-later
"""fastenough.ko where the machine is awkward: outputs that cannot be read back, memory that cannot be had."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import FastenoughError, Outcome
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import SOURCES, build_module
from tests.support.virtual_boards import booted, counted, insert, load_module, recorded, unload_module

pytestmark = pytest.mark.untimed

HERE = Path(__file__).parents[2] / "sources"
BLIND: dict[str, str | int] = {"task": "response", "chip": "blind", "in_line": 0, "out_line": 1}
INPUT_LEVEL = "/sys/module/blind_chip/parameters/input"
OUTPUT_LEVEL = "/sys/module/blind_chip/parameters/output"


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted("stock")


@pytest.mark.parametrize("idle", [0, 1])
def test_the_first_edge_counts_where_outputs_cannot_be_read_back(board: VirtualBoard, idle: int) -> None:
    insert(board, build_module(board.kernel, HERE / "blind_chip"), {"input": idle})
    try:
        load_module(board, BLIND)
        for turn in range(1, 4):
            board.link.write(INPUT_LEVEL, str((idle + turn) % 2).encode())
        assert int(board.link.read(OUTPUT_LEVEL)) == (idle + 3) % 2
        counters = counted(board)
    finally:
        unload_module(board, "blind_chip")
    assert counters == {"seen": 3, "answered": 3, "unchanged": 0}


def test_an_input_that_cannot_be_read_is_refused(board: VirtualBoard) -> None:
    """Its errors would be taken for a level."""
    insert(board, build_module(board.kernel, HERE / "blind_chip"), {"input": -5})
    try:
        with pytest.raises(FastenoughError, match=r"in: line 0 of 'blind' is not available: error -5"):
            load_module(board, BLIND)
    finally:
        unload_module(board, "blind_chip")


@pytest.fixture(scope="module")
def scarce(board: VirtualBoard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module, on a machine that has no memory left for its device once it is loaded."""
    folder = tmp_path_factory.mktemp("scarce") / "module"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("inject"))
    shutil.copy(HERE / "scarce_memory.h", folder)
    with (folder / "Kbuild").open("a") as kbuild:
        kbuild.write("CFLAGS_device.o := -include $(src)/scarce_memory.h\n")
    return build_module(board.kernel, folder)


def test_no_interval_is_lost_when_memory_runs_out(board: VirtualBoard, scarce: Path, tmp_path: Path) -> None:
    insert(board, scarce, {"task": "timer-handler", "period_ns": 1_000_000})
    recording = recorded(board, 1.0, tmp_path, "--report=50ms")
    unload_module(board)
    assert recording.outcome is Outcome.COMPLETED
    intervals = recording.intervals
    assert len(intervals) > 1
    assert [one.begin_mono_ns for one in intervals[1:]] == [one.end_mono_ns for one in intervals[:-1]]
