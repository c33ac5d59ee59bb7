# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU that is switched off in mid-run: its samples are another CPU's, and the run says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.link.base import Link
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.probe import install
from tests.support.virtual_boards import booted, parsed

pytestmark = pytest.mark.untimed

ONLINE = "/sys/devices/system/cpu/cpu1/online"


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted("stock")


def _lines(link: Link, again: bool) -> tuple[list[bytes], int]:
    """A run of both CPUs; the second is switched off after its first interval, and on again where asked."""
    process = link.start(
        [
            install(link),
            "timer",
            "-i",
            "10ms",
            "-D",
            "6s",
            "-a",
            "0,1",
            "--report",
            "500ms",
            "--record",
            "-",
            "--allow-difference",
        ]
    )
    lines = []
    for line in process.lines(60.0):
        lines.append(line)
        seq = json.loads(line).get("seq")
        if seq == 0:
            link.write(ONLINE, b"0")
        if seq == 3 and again:
            link.write(ONLINE, b"1")
    link.write(ONLINE, b"1")
    return lines, process.wait(20.0)


@pytest.mark.parametrize("again", [False, True], ids=["for good", "for a while"])
def test_a_cpu_switched_off_in_mid_run_breaks_the_run(board: VirtualBoard, tmp_path: Path, again: bool) -> None:
    lines, status = _lines(board.link, again)
    recording = parsed(lines, tmp_path)
    assert (recording.outcome, status) == (Outcome.FAILED, 4)
    assert recording.end is not None
    assert {change.cpu for change in recording.end.changes} == {1}
    steal = [interval.counters["steal_ns"] for interval in recording.intervals]
    assert steal[0] is not None and None in steal[1:], "what a CPU that is off has lost cannot be read"
    assert all(value is None or value >= 0 for value in steal)
    assert judge([recording], Requirement(10**9)).verdict is Verdict.BROKEN
