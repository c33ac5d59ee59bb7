# SPDX-License-Identifier: GPL-2.0-or-later
"""Something with time left is shown whatever takes its time: a boot, a run, the runs read, the report made."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.board import AS_BOOTED, Booted
from fastenough.board.local import LocalBoard
from fastenough.campaign import Entry, Plan, Progress, RunSpec, run_campaign
from fastenough.campaign.progress import Clock
from fastenough.jobs.assess import Question, judge_and_report
from fastenough.model import FastenoughError
from fastenough.report import write_report
from fastenough.store import Store
from tests.support.recordings import Plan as Recorded
from tests.support.recordings import latencies, recording
from tests.support.terminal import Terminal, screen

BOOT_S, OVERHEAD_S = 20.0, 2.5
"""What is guessed before anything was seen."""


def _runs(*configurations: str) -> list[RunSpec]:
    return [
        RunSpec(position, "timer", {}, "none", 10.0, configuration=configuration)
        for position, configuration in enumerate(configurations)
    ]


def test_boots_are_part_of_the_time_left_and_are_learned() -> None:
    clock = Clock(_runs("stock", "stock", "rt"))
    assert clock.remaining_s() == 2 * BOOT_S + 3 * (10 + OVERHEAD_S)
    clock.begin()
    assert clock.later_s() == BOOT_S + 3 * (10 + OVERHEAD_S) < clock.remaining_s()
    clock.end()
    assert clock.remaining_s() < 3 * (10 + OVERHEAD_S) + 1, "a boot has been seen to take no time"
    clock.begin()
    clock.end()
    assert clock.remaining_s() < 2 * 10 + 1, "and a run to take none beyond its measuring"
    for _ in range(3):
        clock.skip()
    assert clock.remaining_s() == 0


def test_a_step_that_takes_longer_takes_nothing_from_those_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(0, 1000)
    monkeypatch.setattr("fastenough.campaign.progress.time.monotonic", lambda: float(next(now)))
    clock = Clock(_runs("rt"))
    clock.begin()
    assert clock.remaining_s() == clock.later_s() == 10 + OVERHEAD_S


def test_what_is_measured_as_it_is_found_is_not_booted() -> None:
    assert Clock(_runs(AS_BOOTED, AS_BOOTED)).remaining_s() == 2 * (10 + OVERHEAD_S)


@dataclass(frozen=True)
class _Booting(LocalBoard):
    """This machine under several names, one of which never comes up."""

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        if configuration == "never":
            raise FastenoughError("it does not come up")
        with super().boot(configuration) as booted:
            yield booted


def test_a_campaign_tells_how_much_is_left_of_its_boots_and_runs(tmp_path: Path, probe_binary: str) -> None:
    seen: list[Progress] = []
    entry = Entry("timer", ("none",), 1.0, {"interval": ("1ms",), "allow-difference": (True,)})
    run_campaign(
        Plan("boots", (entry,), configurations=("one", "never", "two")),
        Store(tmp_path / "store"),
        seen.append,
        journal=tmp_path / "journal",
        opened=lambda name: _Booting(probe=probe_binary),
    )
    assert [progress.run for progress in seen if progress.phase == "booting"] == [1, 2, 3]
    assert seen[0].phase == "booting" and seen[0].later_s == 2 * BOOT_S + 3 * (1 + OVERHEAD_S)
    assert all(progress.later_s <= progress.remaining_s for progress in seen)
    ended = [progress.remaining_s for progress in seen if progress.phase in ("booting", "ended")]
    assert ended == sorted(ended, reverse=True)
    assert ended[-1] == 0


def test_a_report_says_how_much_of_it_is_made(tmp_path: Path) -> None:
    shares: list[float] = []
    one = recording(tmp_path, Recorded(latencies(1, intervals=3)))
    write_report([one], judge([one]), tmp_path / "report", shares.append)
    assert shares == sorted(shares) and shares[0] == 0 and 0.9 < shares[-1] < 1 and len(shares) > 10


def test_what_is_done_after_the_runs_is_told_step_by_step(tmp_path: Path) -> None:
    steps: list[tuple[str, Callable[[], float]]] = []
    one = recording(tmp_path, Recorded(latencies(1, intervals=3)))
    judge_and_report(
        [one],
        Question(None, 0.95),
        Store(tmp_path / "store"),
        tmp_path / "report",
        on_step=lambda what, share: steps.append((what, share)),
    )
    assert [(what, round(share(), 1)) for what, share in steps] == [("judging", 0), ("making the report", 1)]


@pytest.mark.slow
def test_a_person_sees_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "fastenough-data")
    writer = store.begin({})
    recording(tmp_path, Recorded(latencies(1, intervals=3), run_id=writer.id))
    for line in (tmp_path / f"{writer.id}.jsonl").read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    with Terminal("report", writer.id, cwd=tmp_path) as terminal:
        status, said = terminal.end()
    assert status in (0, 3), said
    for step in ("reading the runs", "judging", "making the report"):
        assert any(step in line for line in screen(said)), said
