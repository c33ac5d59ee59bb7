# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that dies in the middle of a run: the run has failed, and says why in the kernel's own last words."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.board import virtual as board_module
from fastenough.campaign import Plan, Progress, read_plan, run_campaign
from fastenough.link import BoardGone
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.store import Store
from fastenough.virtual.board import VirtualBoard
from tests.support.virtual_boards import require_simulated_gauge

SHIPPED = Path(__file__).resolve().parents[3] / "campaigns" / "brown-martin.toml"


def panic(board: VirtualBoard) -> None:
    with suppress(BoardGone):
        board.link.run(["sh", "-c", r"printf '\033[31mred\007\n' >/dev/console; echo c >/proc/sysrq-trigger"])


def killed(board: VirtualBoard) -> None:
    os.kill(board.qemu.pid, signal.SIGKILL)


class Dying:
    """Watches the progress and lets the first board die in the middle of the first run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, death: Callable[[VirtualBoard], None]) -> None:
        monkeypatch.setattr("fastenough.virtual.gauge._COUNT_S", 3600.0)  # an instrument without a board is not awaited
        self.boards: list[VirtualBoard] = []
        self._death: Callable[[VirtualBoard], None] | None = death
        monkeypatch.setattr(board_module, "VirtualBoard", self._boot)

    def _boot(self, kernel: str, arguments: str = "") -> VirtualBoard:
        self.boards.append(VirtualBoard(kernel, arguments=arguments))
        return self.boards[-1]

    def __call__(self, progress: Progress) -> None:
        if progress.phase == "measuring" and self._death is not None:
            self._death(self.boards[-1])
            self._death = None


def plan(folder: Path, **changes: str) -> Plan:
    text = SHIPPED.read_text()
    for key, value in {"duration": '"3s"', **changes}.items():
        text, count = re.subn(rf"(?m)^{key} = [^#\n]*", f"{key} = {value} ", text)
        assert count == 1
    (folder / "plan.toml").write_text(text)
    return read_plan(folder / "plan.toml")


def runs(store: Store) -> list[Recording]:
    """In the order of the plan: the instrument's before the board's own."""
    return [store.load(run.id) for run in sorted(store.runs(), key=lambda run: run.position or 0)]


def died(store: Store) -> tuple[Recording, Recording, list[Recording]]:
    """What instrument and board recorded of the run in which it died, and all that followed."""
    outside, own, *rest = runs(store)
    said = [(recording.head.probe, recording.outcome, recording.end) for recording in (outside, own)]
    assert outside.head.instrument and not own.head.instrument, said
    return outside, own, rest


def failed_with(recording: Recording) -> list[str]:
    assert recording.end is not None
    assert recording.outcome is Outcome.FAILED
    assert recording.totals[0].total > 0
    return [str(reason) for reason in recording.end.reasons]


@pytest.mark.parametrize(
    ("implementation", "configurations"),
    [
        ("linux-kernel", ["stock", "rt"]),
        pytest.param("linux-user", ["stock"], marks=pytest.mark.matrix),
    ],
)
def test_a_panic_fails_the_run_with_the_kernels_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: str, configurations: list[str]
) -> None:
    require_simulated_gauge()
    store = Store(tmp_path / "store")
    campaign = run_campaign(
        plan(tmp_path, configurations=json.dumps(configurations), implementations=f'["{implementation}"]'),
        store,
        Dying(monkeypatch, panic),
    )
    outside, own, rest = died(store)
    assert {run.state for run in store.runs()} == {"ended"}
    for recording in (outside, own):
        said = " ".join(failed_with(recording))
        assert "the virtual board is gone" in said
        assert "Kernel panic - not syncing: sysrq triggered crash" in said
        assert said.isprintable() and len(said) < 4000
    assert outside.end is not None
    assert (outside.end.counters["edges_answered"] is None) == (implementation == "linux-kernel")
    assert judge([outside], Requirement(10**9)).verdict is not Verdict.PASS
    outcomes = {
        (recording.head.configuration.name, recording.outcome) for recording in rest if recording.head.configuration
    }
    assert outcomes == {("stock", Outcome.FAILED), *((name, Outcome.COMPLETED) for name in configurations[1:])}
    assert not campaign.stopped


def test_a_killed_qemu_fails_the_run_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_simulated_gauge()
    store = Store(tmp_path / "store")
    run_campaign(
        plan(tmp_path, configurations='["stock"]', implementations='["linux-kernel"]'),
        store,
        Dying(monkeypatch, killed),
    )
    outside, own, _ = died(store)
    for recording in (outside, own):
        assert failed_with(recording)[1] == "QEMU was killed by signal 9"
