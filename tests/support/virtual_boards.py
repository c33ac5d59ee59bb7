# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of module and virtual bench share."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from fastenough.link import Process
from fastenough.link.modules import insert_module
from fastenough.model import FastenoughError
from fastenough.recording import Recording, read_recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.gauge import build_gauge
from fastenough.virtual.kernels import KERNELS
from fastenough.virtual.machines import MACHINES
from fastenough.virtual.module import build_module
from fastenough.virtual.packages import GUEST_ARCH, fetch
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install

CHIP = MACHINES[GUEST_ARCH].pins.chip
RESPONSE: dict[str, str | int] = {"task": "response", "chip": CHIP, "in_line": INPUT_LINE, "out_line": OUTPUT_LINE}
PERIODIC: dict[str, str | int] = {"task": "periodic", "chip": CHIP, "out_line": OUTPUT_LINE, "period_ns": 5_000_000}
DEVICE = "/dev/fastenough"
OWN_KERNELS = [name for name, origin in KERNELS.items() if not origin.suite and origin.arch == GUEST_ARCH]
"""Those of this machine's own release of Debian, for the machine that guests are."""
ONE_OF_EACH = ("rt", "stock-6.12")
"""Both models of preemption, and both versions."""
BOOT_S = 240.0
"""A guest needs some ten seconds of a CPU to come up: a busy machine gives it those in minutes."""
_SINCE = "_since_load"
_QUIET_S = 0.5
_PATIENCE_S = 60.0


def require_simulated_gauge() -> None:
    """Fails with the reason where this machine has no instrument or no kernel for the virtual bench."""
    build_gauge()
    fetch("stock")


def every_kernel(*first: str, among: Iterable[str] = KERNELS, checked: str = "") -> list[ParameterSet]:
    """Parameters of a test: the kernels ``first`` in the tier of the test, all the others in ``make bench``.

    ``checked``: the one that ``make check`` tries, of a test that is otherwise slow.
    """
    others = (name for name in among if name not in first)
    return [
        *(pytest.param(name, marks=[pytest.mark.check] if name == checked else []) for name in first),
        *(pytest.param(name, marks=pytest.mark.matrix) for name in others),
    ]


def require_kernel(name: str) -> None:
    """Fetches a kernel of the virtual bench; skips with the reason where it is another release's and cannot be had."""
    try:
        fetch(name)
    except FastenoughError as reason:
        if name in OWN_KERNELS:
            raise
        pytest.skip(f"there is no kernel {name}: {reason}")


def booted(kernel: str) -> Iterator[VirtualBoard]:
    """A board for a fixture, whose kernel must have nothing to complain of when it ends."""
    with VirtualBoard(kernel, boot_timeout_s=BOOT_S) as board:
        install(board.link)
        yield board
        log = board.link.run(["dmesg"]).text.splitlines()
        trouble = [line for line in log if any(word in line for word in ("BUG", "Oops", "WARNING"))]
        assert not trouble


def insert(board: VirtualBoard, module: Path, parameters: Mapping[str, str | int] | None = None) -> None:
    """Insert a module built on the bench; raises FastenoughError with the module's own words when it refuses."""
    place = f"/tmp/{module.name}"
    board.link.write(place, module.read_bytes())
    try:
        insert_module(board.link, place, [f"{name}={value}" for name, value in (parameters or {}).items()])
    except OSError as error:
        raise FastenoughError(f"{module.name} was refused: {error.strerror}") from error


def load_module(board: VirtualBoard, parameters: Mapping[str, str | int]) -> None:
    """Insert fastenough.ko."""
    insert(board, build_module(board.kernel), parameters)


def unload_module(board: VirtualBoard, name: str = "fastenough") -> None:
    """Take a module out; raises FastenoughError."""
    done = board.link.run(["rmmod", name], timeout_s=30.0)
    if done.status:
        raise FastenoughError(f"{name} could not be taken out: {done.stderr.decode().strip()}")


def parsed(lines: list[bytes], place: Path) -> Recording:
    """The recording that these lines are; the reader checks each line and that everything adds up."""
    path = place / "recording.jsonl"
    path.write_bytes(b"".join(lines))
    return read_recording(path)


def reading(board: VirtualBoard, *options: str) -> Process:
    """The probe, recording the module's task; at the end it stops it."""
    return board.link.start([PROBE, "kernel", "--record=-", *options])


def recorded(board: VirtualBoard, seconds: float, place: Path, *options: str) -> Recording:
    """What the module's task measures in that time."""
    lines = list(reading(board, f"--duration={seconds}s", *options).lines(seconds + 60.0))
    return parsed(lines, place)


def quiet(board: VirtualBoard) -> None:
    """Until the guest has answered all that it was told, however busy this machine is."""
    known = -1
    while known != (known := board.pins.counts[OUTPUT_LINE]):
        time.sleep(_QUIET_S)
        board.link.run(["true"], _PATIENCE_S)
        board.pins.settle()


def leave_output_low(board: VirtualBoard) -> None:
    """The chip remembers the level of a line that it no longer drives, and shows it when it drives it again."""
    board.pins.drive(INPUT_LINE, 0)
    load_module(board, RESPONSE)
    unload_module(board)
    board.pins.settle()
    board.pins.take()


def since_load(counters: Mapping[str, int | None]) -> dict[str, int]:
    """What the module's task has counted since it was loaded, by the counters of a recording's end."""
    return {
        name.removesuffix(_SINCE): count
        for name, count in counters.items()
        if name.endswith(_SINCE) and count is not None
    }


def counted(board: VirtualBoard) -> dict[str, int]:
    """What the module's task has counted since it was loaded; it is stopped, and the module taken out."""
    *_, end = reading(board, "--duration=1ms").lines(60.0)
    unload_module(board)
    return since_load(json.loads(end)["counters"])
