# SPDX-License-Identifier: GPL-2.0-or-later
"""A GPIO chip that is reached by two names is one chip; two chips of one label are two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import BadInput
from fastenough.settings import Settings
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install
from tests.support.virtual_boards import CHIP, booted, insert, unload_module

pytestmark = pytest.mark.machines

FIRST = "/dev/gpiochip-main"
"""Sorts before the kernel's own name."""
LAST = "/dev/gpiochip9"


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    for each in booted("stock"):
        install(each.link)
        yield each


@pytest.fixture(
    params=[
        f"ln -s gpiochip0 {FIRST}",
        f"ln -s gpiochip0 {LAST}",
        f"ln -s gpiochip77 {FIRST}",
        f"cp -a /dev/gpiochip0 {FIRST}; ln -s gpiochip0 {LAST}",
    ]
)
def two_names(board: VirtualBoard, request: pytest.FixtureRequest) -> Iterator[str]:
    assert board.link.run(["sh", "-c", request.param]).status == 0
    yield request.param
    board.link.run(["rm", "-f", FIRST, LAST])


def toggled(board: VirtualBoard, *chip: str) -> tuple[int, int, bytes]:
    """How the periodic task on that chip ended, and how often the line was seen to move."""
    before = board.pins.counts[OUTPUT_LINE]
    done = board.link.run(
        [PROBE, "periodic", *chip, f"--out={OUTPUT_LINE}", "--interval=5ms", "--loops=20"], timeout_s=30.0
    )
    board.pins.settle()
    return done.status, board.pins.counts[OUTPUT_LINE] - before, done.stderr


def names_that_exist(board: VirtualBoard) -> list[str]:
    return [path for path in board.link.glob("/dev/gpiochip*") if board.link.run(["test", "-c", path]).status == 0]


def test_a_chip_with_two_names_is_one(board: VirtualBoard, two_names: str) -> None:
    names = [CHIP, "gpiochip0", *names_that_exist(board)]
    for chip in ([], *([f"--chip={name}"] for name in names)):
        status, edges, said = toggled(board, *chip)
        assert (status, said) == (0, b""), (two_names, chip)
        assert edges >= 20


def test_two_chips_are_two(board: VirtualBoard, tmp_path: Path) -> None:
    """One that is called like the other by its label, too, is not taken for it."""
    insert(board, build_module(board.kernel, Path(__file__).parents[2] / "sources/blind_chip"), {"label": CHIP})
    try:
        for chip in ([], [f"--chip={CHIP}"]):
            status, edges, said = toggled(board, *chip)
            assert (status, edges) == (2, 0)
            assert b"there are 2 GPIO chips" in said
        assert toggled(board, "--chip=gpiochip0")[0] == 0
        with Settings(board.link, tmp_path / "journal") as settings, pytest.raises(BadInput, match="2 GPIO chips"):
            settings.apply("pin", f"{CHIP}/{INPUT_LINE}=in")
    finally:
        unload_module(board, "blind_chip")
