# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the kernel does not tell its types, its own histograms stand in for the monitor, or one line says why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_boards import booted

from fastenough.board import Booted
from fastenough.campaign import monitoring
from fastenough.implementations import Act
from fastenough.jobs.monitor import watching
from fastenough.model import Configuration, NotApplicable, Outcome
from fastenough.recording.wakeups import MONITOR
from fastenough.settings.instance import INSTANCE
from fastenough.store import Store
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.probe import PROBE


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted("rt")


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels of the virtual bench tell their types: look for them where they are not."""
    monkeypatch.setattr(monitoring, "TYPES", "/sys/kernel/btf/none")


def test_histograms_stand_in(board: VirtualBoard, tmp_path: Path) -> None:
    store = Store(tmp_path)
    here = Booted(board.link, Configuration("here"), PROBE)
    with watching("virtual", here, Act(MONITOR, {"report": "500ms"}, 3.0), store) as watched:
        board.link.run([PROBE, "timer", "--interval=20ms", "--loops=20", "--quiet", "--allow-difference"], 60.0)
        watched.finish()
        assert board.link.exists(INSTANCE)
    assert not board.link.exists(INSTANCE)
    recording = store.load("last")
    assert recording.outcome is Outcome.COMPLETED
    assert (recording.head.probe, recording.head.parameters["by"]) == (MONITOR, "kernel histograms")
    assert {series.name for series in recording.series} == {"runnable-to-running"}
    assert sum(recording.totals[series.id].total for series in recording.series) > 10


def test_what_they_cannot_tell_is_said(board: VirtualBoard, tmp_path: Path) -> None:
    here = Booted(board.link, Configuration("here"), PROBE)
    with (pytest.raises(NotApplicable, match="know no --comm"),
          watching("virtual", here, Act(MONITOR, {"comm": "robot"}, 1.0), Store(tmp_path))):
        pass
