# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of other architectures: whatever their pins are made of, every edge is counted."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import KernelFiles, register_kernel
from fastenough.virtual.packages import cache_dir, fetch
from fastenough.virtual.pins import INPUT_LINE, LINES, OUTPUT_LINE
from fastenough.virtual.probe import PROBE
from fastenough.virtual.shared_pins import SharedPins, SharedPort
from tests.support.virtual_boards import (
    BOOT_S,
    PERIODIC,
    RESPONSE,
    booted,
    load_module,
    parsed,
    reading,
    recorded,
    since_load,
    unload_module,
)

pytestmark = pytest.mark.untimed

EDGES = 500
PATIENCE_S = 60.0
KERNELS = [
    "stock-armhf",
    *(pytest.param(name, marks=pytest.mark.matrix) for name in ("rt-amd64", "stock-amd64", "rt-armhf")),
]
"""The 32-bit one; test_experiment_virtual.py measures on x86-64."""


@pytest.fixture(scope="module", params=KERNELS)
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    yield from booted(request.param)


class Guest:
    """What QEMU and fastenough_pins.ko do at their end, in this process."""

    def __init__(self, path: Path) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(path))
        said = [socket.recv_fds(self._connection, 8, 1) for _ in range(5)]
        numbers = [struct.unpack("<q", one[0])[0] for one in said]
        assert numbers == [0, 0, -1, 1, 0], "version, its number, the memory, the bench's bell, its own"
        (memory,), (self._bench_bell,), (own,) = (one[1] for one in said[2:])
        self._memory = mmap.mmap(memory, 1 << 17)
        self._descriptors = (memory, self._bench_bell, own)
        self._changes = 0

    def word(self, place: int) -> int:
        return int(struct.unpack_from("<I", self._memory, place)[0])

    def put(self, line: int, levels: Sequence[int], ring: bool = True) -> None:
        for level in levels:
            struct.pack_into("<I", self._memory, 4096 + 4 * (self._changes % 16384), line << 1 | level)
            self._changes += 1
        struct.pack_into("<I", self._memory, 128, self._changes)
        if ring:
            os.eventfd_write(self._bench_bell, 1)

    def connect(self, name: str, timeout_s: float) -> socket.socket:
        raise AssertionError("these pins have no further socket")

    def find(self, kind: str) -> str:
        raise AssertionError("these pins have no device to be found")

    def close(self) -> None:
        self._connection.close()
        self._memory.close()
        for descriptor in self._descriptors:
            os.close(descriptor)


def of(board: VirtualBoard, task: dict[str, str | int]) -> dict[str, str | int]:
    return task | {"chip": board.kernel.machine.pins.chip}


def answered(board: VirtualBoard) -> None:
    for number in range(EDGES):
        level = (number + 1) % 2
        board.pins.drive(INPUT_LINE, level)
        board.pins.wait(OUTPUT_LINE, level, PATIENCE_S)


def test_every_edge_is_seen_and_answered_in_the_kernel(board: VirtualBoard, tmp_path: Path) -> None:
    load_module(board, of(board, RESPONSE))
    probe = reading(board)
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    before = board.pins.counts[OUTPUT_LINE]
    answered(board)
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], tmp_path)
    unload_module(board)
    assert recording.end is not None
    assert [recording.end.counters[name] for name in ("seen", "answered", "unchanged")] == [EDGES, EDGES, 0]
    assert recording.totals[0].total == EDGES == board.pins.counts[OUTPUT_LINE] - before


def test_every_edge_is_seen_and_answered_by_a_program(board: VirtualBoard, tmp_path: Path) -> None:
    program = board.link.start(
        [
            PROBE,
            "response",
            f"--chip={board.kernel.machine.pins.chip}",
            f"--in={INPUT_LINE}",
            f"--out={OUTPUT_LINE}",
            "--record=-",
        ]
    )
    lines = program.lines(PATIENCE_S)
    begun = [next(lines), next(lines)]  # the head is written before the run begins, and earlier edges do not count
    answered(board)
    program.signal(signal.SIGINT)
    recording = parsed([*begun, *lines], tmp_path)
    assert recording.totals[0].total == EDGES


def test_what_comes_before_the_guest_looks_is_one_interrupt_and_none_is_forgotten(board: VirtualBoard) -> None:
    load_module(board, of(board, RESPONSE))
    for number in range(EDGES):
        board.pins.drive(INPUT_LINE, number % 2)
    board.pins.drive(INPUT_LINE, 1)
    board.pins.wait(OUTPUT_LINE, 1, PATIENCE_S)
    board.pins.drive(INPUT_LINE, 0)
    board.pins.wait(OUTPUT_LINE, 0, PATIENCE_S)
    unload_module(board)


def test_a_periodic_output_has_as_many_edges_outside_as_inside(board: VirtualBoard, tmp_path: Path) -> None:
    board.pins.drive(INPUT_LINE, 0)
    before = board.pins.counts[OUTPUT_LINE]
    load_module(board, of(board, PERIODIC))
    recording = recorded(board, 1, tmp_path)
    unload_module(board)
    board.pins.settle()
    assert recording.end is not None
    assert board.pins.counts[OUTPUT_LINE] - before == since_load(recording.end.counters)["toggled"] > 0


def test_loaded_and_unloaded_its_log_stays_clean(board: VirtualBoard) -> None:
    """The fixture reads the kernel's log when it ends."""
    for _ in range(5):
        load_module(board, of(board, RESPONSE))
        unload_module(board)


@pytest.mark.matrix
def test_a_kernel_of_ones_own_boots_with_its_pins(tmp_path: Path) -> None:
    debian, name = fetch("rt-amd64"), f"tried-x86-{os.getpid()}"
    try:
        register_kernel(name, KernelFiles(debian.image, debian.tree, debian.headers))
        with VirtualBoard(name, boot_timeout_s=BOOT_S, snapshot=False) as own:
            assert own.link.run(["uname", "-rm"]).text == f"{debian.release} x86_64\n"
            load_module(own, of(own, RESPONSE))
            unload_module(own)
        register_kernel(name, KernelFiles(debian.image, debian.tree))
        with pytest.raises(NotApplicable, match="its headers are missing; name the folder in which it was built"):
            VirtualBoard(name)
    finally:
        (cache_dir() / "own" / name).unlink(missing_ok=True)


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[tuple[SharedPins, Guest]]:
    """Pins with a guest of the test's own behind them."""
    port = SharedPort(tmp_path)
    guest = Guest(tmp_path / "pins.sock")
    pins = port.open(guest)
    assert isinstance(pins, SharedPins)
    yield pins, guest
    pins.close()
    port.close()
    guest.close()


def test_each_change_of_an_output_is_told_once(wired: tuple[SharedPins, Guest]) -> None:
    pins, guest = wired
    guest.put(3, [1, 0])
    pins.settle()
    assert [(edge.line, edge.level) for edge in pins.take()] == [(3, 1), (3, 0)]
    pins.settle()
    assert pins.take() == []


def test_changes_that_were_overwritten_are_told_and_not_hidden(wired: tuple[SharedPins, Guest]) -> None:
    pins, guest = wired
    guest.put(OUTPUT_LINE, [1, 0] * 8193, ring=False)
    with pytest.raises(FastenoughError, match="changed more than 16384 times before the bench read them"):
        pins.settle()
    with pytest.raises(FastenoughError, match="too busy"):
        pins.drive(INPUT_LINE, 1)


def test_each_edge_of_an_input_is_counted_once(wired: tuple[SharedPins, Guest]) -> None:
    pins, guest = wired
    for level in (1, 1, 0, 0, 1, 0, 1):
        pins.drive(INPUT_LINE, level)
    pins.drive(7, 1)
    assert (guest.word(0), guest.word(32), guest.word(64), guest.word(32 + 28)) == (0x81, 3, 2, 1)
    with pytest.raises(BadInput, match=f"no input line {LINES}"):
        pins.drive(LINES, 1)


def test_a_port_to_which_nobody_came_is_closed(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    SharedPort(tmp_path).close()
    assert set(Path("/proc/self/fd").iterdir()) == before
