# SPDX-License-Identifier: GPL-2.0-or-later
"""On a kernel without BTF type information, its own histograms replace the monitor, or one line gives the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.board import Booted
from fastenough.campaign import monitoring
from fastenough.campaign.expand import RunSpec
from fastenough.campaign.monitoring import PROBES_NAME, _monitor_parameters
from fastenough.implementations import Act, Value
from fastenough.jobs.monitor import monitor_run
from fastenough.model import Configuration, NotApplicable, Outcome
from fastenough.recording.wakeups import MONITOR
from fastenough.settings.tracing import INSTANCE
from fastenough.store import Store
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.probe import PROBE
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed


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
    with monitor_run("virtual", here, Act(MONITOR, {"report": "500ms"}, 3.0), store) as watched:
        board.link.run([PROBE, "timer", "--interval=20ms", "--loops=20", "--quiet", "--allow-difference"], 60.0)
        watched.finish()
        assert board.link.exists(INSTANCE)
    assert not board.link.exists(INSTANCE)
    recording = store.load("last")
    assert recording.outcome is Outcome.COMPLETED
    assert (recording.head.probe, recording.head.parameters["by"]) == (MONITOR, "kernel histograms")
    assert {series.name for series in recording.series} == {"runnable-to-running"}
    assert sum(recording.totals[series.id].total for series in recording.series) > 10


def test_a_run_knows_its_own_task_by_name(board: VirtualBoard, tmp_path: Path) -> None:
    """Asked as beside a run: nobody else's wake-ups are counted, of whom there are many in a guest with real time."""
    store, acts = Store(tmp_path), 20
    here = Booted(board.link, Configuration("here"), PROBE)
    own = _monitor_parameters(
        RunSpec(0, "timer", {"report": "500ms", "policy": "fifo", "priority": 90}, "none", 1.0), PROBES_NAME
    )
    for parameters, least, most in ((own, acts // 2, acts + 10), ({**own, "comm": "nobody"}, 0, 0)):
        with monitor_run("virtual", here, Act(MONITOR, parameters, 3.0), store) as watched:
            board.link.run(
                [
                    PROBE,
                    "timer",
                    "--interval=20ms",
                    f"--loops={acts}",
                    "--quiet",
                    "--allow-difference",
                    "--affinity=0",
                    "--threads=1",
                ],
                60.0,
            )
            watched.finish()
        recording = store.load("last")
        assert recording.head.parameters["comm"] == parameters["comm"]
        assert least <= sum(recording.totals[series.id].total for series in recording.series) <= most


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"pid": 1}, "does not support --pid"),
        ({"comm": "a*"}, "name that contains one of"),
        ({"policy": "other"}, "does not support --policy"),
    ],
)
def test_what_they_cannot_tell_is_said(
    board: VirtualBoard, tmp_path: Path, parameters: dict[str, Value], said: str
) -> None:
    here = Booted(board.link, Configuration("here"), PROBE)
    with (
        pytest.raises(NotApplicable, match=said),
        monitor_run("virtual", here, Act(MONITOR, parameters, 1.0), Store(tmp_path)),
    ):
        pass
