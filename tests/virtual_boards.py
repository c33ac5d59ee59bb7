# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of module and virtual bench share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fastenough.recording import Recording, read_recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.gauge import build_gauge
from fastenough.virtual.packages import fetch
from fastenough.virtual.pins import CHIP, INPUT_LINE, OUTPUT_LINE

RESPONSE = {"task": "response", "chip": CHIP, "in_line": INPUT_LINE, "out_line": OUTPUT_LINE}
PERIODIC = {"task": "periodic", "chip": CHIP, "out_line": OUTPUT_LINE, "period_ns": 5_000_000}
DEVICE = "/dev/fastenough"


def require_simulated_gauge() -> None:
    """Fails with the reason where this machine has no instrument or no kernel for the virtual bench."""
    build_gauge()
    fetch("stock")


def booted(kernel: str) -> Iterator[VirtualBoard]:
    """A board for a fixture, whose kernel must have nothing to complain of when it ends."""
    with VirtualBoard(kernel) as board:
        yield board
        trouble = [line for line in board.kernel_log() if any(word in line for word in ("BUG", "Oops", "WARNING"))]
        assert not trouble


def parsed(lines: list[bytes], place: Path) -> Recording:
    """The recording that these lines are; the reader checks each line and that everything adds up."""
    path = place / "recording.jsonl"
    path.write_bytes(b"".join(lines))
    return read_recording(path)


def recorded(board: VirtualBoard, seconds: float, place: Path) -> Recording:
    """What the module's device gives until ``duration_ms`` is over."""
    lines = list(board.link.start(["cat", DEVICE]).lines(seconds + 60.0))
    return parsed(lines, place)


def leave_output_low(board: VirtualBoard) -> None:
    """The chip remembers the level of a line that it no longer drives, and shows it when it drives it again."""
    board.pins.drive(INPUT_LINE, 0)
    board.load_module(RESPONSE)
    board.unload_module()
    board.pins.settle()
    board.pins.take()


def counted(said: list[str]) -> dict[str, int]:
    """The counters a module says in leaving."""
    return {name: int(number) for line in said for name, _, number in [line.split(": ")[-1].partition("=")]}
