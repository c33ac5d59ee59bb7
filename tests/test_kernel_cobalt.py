# SPDX-License-Identifier: GPL-2.0-or-later
"""Xenomai's Cobalt core in a guest: ``make check-kernels`` with a kernel called ``cobalt``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from own_kernels import booted_own
from virtual_boards import parsed

from fastenough.facts import collect
from fastenough.implementations.xenomai_user import METHODS, PROGRAM
from fastenough.virtual.board import VirtualBoard

PERIOD_NS = 2_000_000


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted_own("cobalt")


def test_the_profile_names_the_core(board: VirtualBoard) -> None:
    assert collect(board.link, ("real_time_core",))["real_time_core"]["core"] == "cobalt"


@pytest.mark.parametrize("method", METHODS)
def test_acts_and_missed_periods_make_up_what_is_charged(board: VirtualBoard, tmp_path: Path, method: str) -> None:
    program = board.link.start([PROGRAM, "timer", "--duration=1s", f"--interval={PERIOD_NS}ns", f"--method={method}",
                                "--record=-"])
    recording = parsed(list(program.lines(60.0)), tmp_path)
    assert recording.end is not None
    wakeup, corrected = list(recording.end.series.values())[:2]
    assert recording.end.outcome == "completed" and wakeup.taken > 0
    assert wakeup.taken + wakeup.missed == corrected.taken
