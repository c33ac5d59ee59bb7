# SPDX-License-Identifier: GPL-2.0-or-later
"""A resumed hunt takes a stored trial only for the load that it had, and none after a damaged one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fastenough.board import AS_BOOTED, Booted
from fastenough.campaign import Entry, Plan
from fastenough.campaign.runner import ChangedSystem
from fastenough.campaign.stop import StopRequest
from fastenough.hunt.extent import SearchTime
from fastenough.jobs import hunt as hunting
from fastenough.jobs.hunt import BoardCapacity, Hunt, HuntResult, _HuntCampaign, make_hunt
from fastenough.jobs.hunt_report import conclude_hunt
from fastenough.link import FakeLink
from fastenough.model import Configuration
from fastenough.report.document import Text
from fastenough.store import Store
from tests.support import recordings

PLAN = Plan("hunt", (Entry("timer", ("none",), 4.0, {"interval": ("1ms",)}),), boards=("local",))


@dataclass
class _Bench:
    """Stands in for the board; it stops the hunt in the trial with the number ``last``.

    ``measured``: position and requested load of each trial.  ``loads``: loads that trials have instead, by position.
    ``kernel``: the release that the board runs, unknown if empty.
    """

    folder: Path
    last: int = 0
    measured: list[tuple[int, str]] = field(default_factory=list)
    loads: dict[int, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    kernel: str = ""
    name: str = "local"

    def configurations(self) -> tuple[str, ...]:
        return (AS_BOOTED,)

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(FakeLink({}), Configuration(configuration, self.kernel or None), "probe")

    def measure(
        self,
        plan: Plan,
        trials: _HuntCampaign,
        progress: Callable[[object], None],
        *,
        stopping: StopRequest,
        **more: object,
    ) -> object:
        load, writer = plan.entries[0].loads[0], trials.begin()
        self.measured.append((trials.position, load))
        if trials.position >= self.last:
            stopping.request(signal.SIGINT)
            writer.end()
            return SimpleNamespace(stopped=True, signal=signal.SIGINT, runs=())
        values = [[np.full(100, 5_000 + trials.position)]]
        load = self.loads.get(trials.position, load)
        plan_of_run = recordings.Plan(
            values,
            run_id=writer.id,
            load=load,
            views=("wakeup_corrected",),
            marks=self.marks,
            head={"board": self.name},
        )
        content = recordings.write(self.folder / "scratch", plan_of_run).read_bytes()
        if self.kernel:
            content = content.replace(b'"kernel_release":null', f'"kernel_release":"{self.kernel}"'.encode())
        for line in content.splitlines(keepends=True):
            writer.line(line)
        writer.end()
        return SimpleNamespace(stopped=False, signal=0, runs=(writer.id,))

    def hunt(self, store: Store, last: int, *, resume: bool = False) -> HuntResult:
        self.last, self.measured = last, []
        hunt = Hunt(PLAN, SearchTime(1800.0), fixed=("none", "cpu"))
        return make_hunt(hunt, store, lambda progress, ask: None, opened=lambda name: self, resume=resume)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Bench:
    bench = _Bench(tmp_path)
    monkeypatch.setattr(hunting, "run_campaign", bench.measure)
    monkeypatch.setattr(hunting, "examine_board", lambda *others: BoardCapacity(1, ("cpu", "fifo", "pipe"), 700 << 20))
    monkeypatch.setattr(hunting, "block_maxima", lambda recording, turns: [30_000] * 16 * turns)
    return bench


def _damage(store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bad block of the disk does, which changes no time of the file, so that the index does not notice."""
    monkeypatch.setattr(Store, "_refresh", lambda store: None)
    recording = store.path / "runs" / run_id / "recording.jsonl.zst"
    recording.chmod(0o600)
    recording.write_bytes(recording.read_bytes()[:-7])


def test_stored_trials_are_used_up_to_a_damaged_one(
    tmp_path: Path, bench: _Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    first = bench.hunt(store, 5)
    assert [position for position, _ in bench.measured] == [0, 1, 2, 3, 4, 5] and len(first.runs) == 5
    requested = dict(bench.measured)
    _damage(store, first.runs[2], monkeypatch)
    again = bench.hunt(store, 3, resume=True)
    assert (again.failed, again.runs[:2], again.signal) == (0, first.runs[:2], signal.SIGINT)
    assert bench.measured == [(2, requested[2]), (3, requested[3])]
    bench.hunt(store, 5, resume=True)
    assert [position for position, _ in bench.measured] == [3, 4, 5], "those after the damaged one are older than it"


def test_a_stored_trial_of_another_load_and_those_after_it_are_not_used(tmp_path: Path, bench: _Bench) -> None:
    store, bench.loads = Store(tmp_path / "store"), {3: "full"}
    first = bench.hunt(store, 5)
    bench.loads = {}
    again = bench.hunt(store, 4, resume=True)
    assert again.runs[:3] == first.runs[:3] and [position for position, _ in bench.measured] == [3, 4]


def test_a_hunt_is_resumed_only_on_the_system_of_its_trials(tmp_path: Path, bench: _Bench) -> None:
    """The kernel may have been upgraded between the two parts of the hunt."""
    store, bench.kernel = Store(tmp_path / "store"), "6.1.0-30-amd64"
    first = bench.hunt(store, 3)
    bench.kernel = "6.1.0-31-amd64"
    with pytest.raises(ChangedSystem, match=r"kernel 6\.1\.0-31-amd64, .* had 6\.1\.0-30-amd64; .*omit --resume"):
        bench.hunt(store, 5, resume=True)
    assert not bench.measured
    bench.kernel = "6.1.0-30-amd64"
    assert bench.hunt(store, 5, resume=True).runs[:3] == first.runs
    assert [position for position, _ in bench.measured] == [3, 4, 5]


def test_a_hunt_stopped_in_its_first_trial_is_no_failure(tmp_path: Path, bench: _Bench) -> None:
    hunted = bench.hunt(Store(tmp_path / "store"), 0)
    assert (hunted.signal, hunted.runs) == (signal.SIGINT, ())


@pytest.mark.parametrize("marks", [(), ("emulated",)])
def test_a_hunt_on_an_emulated_board_has_its_caveat(tmp_path: Path, bench: _Bench, marks: tuple[str, ...]) -> None:
    store, bench.marks = Store(tmp_path / "store"), marks
    caveats = ("emulated: timing is not meaningful",) if marks else ()
    assert bench.hunt(store, 3).cautions == caveats
    resumed = bench.hunt(store, 3, resume=True)
    assert resumed.cautions == caveats
    section = conclude_hunt(resumed, None, "nothing worse", store)
    assert [part.lines for part in section.parts if isinstance(part, Text)] == ([caveats] if caveats else [])
