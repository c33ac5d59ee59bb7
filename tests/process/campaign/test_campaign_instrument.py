# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign with an instrument, without a guest: a real-time gauge beside a task on this machine.

Interrupted or killed, it goes on where it was; own loads, warm-up and repetition are as in every other campaign.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastenough.board.local import LocalBoard
from fastenough.campaign import Campaign, Progress, StopRequest, measure, read_plan, run_campaign
from fastenough.implementations import IMPLEMENTATIONS
from fastenough.implementations.task import Task
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.store import Store
from tests.support.gauge_simulation import Build, Follower, RealtimeGauge, realtime_gauge
from tests.support.own_swappiness import OwnSwappiness
from tests.support.paper_gauge import PaperGauge
from tests.support.presence import present
from tests.support.processes import eventually, start_bench
from tests.support.stand_in import StandIn

PLAN = """
name = "beside"
board = "local"
instrument = "{port}"
self-test = "self-test.json"
implementations = ["stand-in"]
duration = "2s"
warm-up = "200ms"
loads = ["none", "mine"]
[[load]]
name = "mine"
commands = [["sh", "-c", "while :; do :; done"]]
[[run]]
probe = "response"
parameters = {{min = "1ms", max = "5ms", interval = "20ms", allow-difference = true}}
repeat = 2
"""


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered for each of these tests only: other tests list all implementations."""
    monkeypatch.setitem(IMPLEMENTATIONS, StandIn.name, StandIn())


@pytest.fixture
def instrument(gauge_build: Build, tmp_path: Path) -> Iterator[RealtimeGauge]:
    with realtime_gauge(gauge_build, tmp_path) as running:
        Follower(running.pins)
        yield running


@pytest.fixture
def plan(instrument: RealtimeGauge, tmp_path: Path) -> Path:
    (tmp_path / "self-test.json").write_text('{"passed": true, "minimum": {"0": 0}, "maximum": {"0": 0}}')
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(port=instrument.port))
    return path


def _run(plan: Path, store: Store, probe: str, **options: Any) -> Campaign:
    return run_campaign(
        read_plan(plan), store, journal=store.path / "journal", opened=lambda name: LocalBoard(probe=probe), **options
    )


def _kinds(recordings: list[Recording]) -> list[tuple[bool, str]]:
    return [(recording.head.instrument is not None, str(recording.outcome)) for recording in recordings]


def test_both_recordings_of_every_run_are_kept(plan: Path, tmp_path: Path, probe_binary: str) -> None:
    store = Store(tmp_path / "store")
    campaign = _run(plan, store, probe_binary)
    recordings = [store.load(run) for run in campaign.runs]
    assert _kinds(recordings) == [(True, "completed"), (False, "completed")] * 4
    assert [recording.head.load.name for recording in recordings[::2] if recording.head.load] == ["none", "mine"] * 2
    for outside, own in zip(recordings[::2], recordings[1::2], strict=True):
        assert outside.end is not None
        assert outside.head.instrument and outside.head.instrument["self_test"]["passed"]
        assert outside.end.counters["edges_answered"] == own.totals[0].total > 0
        assert outside.end.load and outside.end.load.ran and outside.head.profile
        assert outside.totals[0].total > 20
        assert outside.head.begin.mono_ns >= own.intervals[0].end_mono_ns, "a stimulus came before the board's run"
        assert {outside.head.implementation, own.head.implementation} == {"stand-in"}
    assert store.verify() == {}


def test_a_long_interval_of_the_board_delays_the_instrument_for_a_limited_time(
    plan: Path, tmp_path: Path, probe_binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_START_TIMEOUT_S", 0.3)
    text = plan.read_text().replace('loads = ["none", "mine"]', "").replace("repeat = 2", "")
    plan.write_text(text.replace("allow-difference", 'report = "1m", allow-difference'))
    store = Store(tmp_path / "store")
    outside, own = map(store.load, _run(plan, store, probe_binary).runs)
    assert (outside.outcome, own.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert len(own.intervals) == 1 and outside.head.begin.mono_ns < own.intervals[0].end_mono_ns


def test_a_stop_before_the_board_has_an_interval_ends_both_recordings(
    plan: Path, tmp_path: Path, probe_binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a task whose first interval would take a minute, and a bench that would wait for it."""
    monkeypatch.setattr(measure, "_START_TIMEOUT_S", 1e6)
    plan.write_text(plan.read_text().replace("allow-difference", 'report = "1m", allow-difference'))
    store, stopping, await_start = Store(tmp_path / "store"), StopRequest(), measure._Run._await_start

    def stop_and_wait(run: measure._Run, task: Task) -> None:
        threading.Timer(0.2, stopping.request).start()
        await_start(run, task)
        assert stopping.requested and task.running

    monkeypatch.setattr(measure._Run, "_await_start", stop_and_wait)
    stopped = _run(plan, store, probe_binary, stopping=stopping)
    assert stopped.stopped
    assert [store.load(run).outcome for run in stopped.runs] == [Outcome.ABORTED, Outcome.ABORTED]


PERIODIC = (
    PLAN.partition("duration")[0]
    + """
duration = "1500ms"
[[run]]
probe = "periodic"
parameters = {{period = "2ms", timeout = "1s", interval = "20ms", allow-difference = true}}
"""
)


def test_a_stall_that_lasts_to_the_end_of_a_run_is_lost(tmp_path: Path, probe_binary: str) -> None:
    """The board falls silent for the last half second, which is shorter than the time-out."""
    (tmp_path / "self-test.json").write_text('{"passed": true, "minimum": {"0": 0}, "maximum": {"0": 0}}')
    paper, store = PaperGauge(lambda rng: rng.randint(-40, 40)), Store(tmp_path / "store")
    path = tmp_path / "plan.toml"
    path.write_text(PERIODIC.format(port=paper.port))

    def fall_silent(progress: Progress) -> None:
        if progress.phase == "measuring":
            paper.silence_board()

    try:
        campaign = _run(path, store, probe_binary, on_progress=fall_silent)
    finally:
        paper.close()
    recording = store.load(campaign.runs[0])
    assert (recording.outcome, recording.lost(0)) == (Outcome.COMPLETED, 1)
    assert recording.end is not None
    assert 0 < present(recording.end.counters["task_started_ns"], "task_started_ns") < recording.duration_ns


def test_settings_are_read_once_after_the_instrument_has_ended(tmp_path: Path, probe_binary: str) -> None:
    """The board makes no edge while they are read, and both recordings state the same."""
    (tmp_path / "self-test.json").write_text('{"passed": true, "minimum": {"0": 0}, "maximum": {"0": 0}}')
    paper, store = PaperGauge(lambda rng: rng.randint(-40, 40)), Store(tmp_path / "store")
    path, phases, running = tmp_path / "plan.toml", [""], list[bool]()
    path.write_text(PERIODIC.format(port=paper.port) + "[settings]\nswappiness = 10\n")

    def on_read() -> None:
        if phases[-1] == "measuring":
            names = [command.split()[0] for command in paper.commands]
            running.append("stop" not in names[names.index("periodic") :])

    link = OwnSwappiness(on_read)
    try:
        campaign = run_campaign(
            read_plan(path),
            store,
            lambda progress: phases.append(progress.phase),
            journal=store.path / "journal",
            opened=lambda name: LocalBoard(link, probe_binary),
        )
    finally:
        paper.close()
    assert running == [False]
    ends = [present(store.load(run).end, "end") for run in campaign.runs]
    assert [[setting.in_effect for setting in end.settings or () if setting.name == "swappiness"] for end in ends] == [
        ["10"],
        ["10"],
    ]
    assert not any(end.changes for end in ends)


@pytest.mark.slow
def test_interrupted_it_goes_on_where_it_was(plan: Path, tmp_path: Path, probe_binary: str) -> None:
    store = Store(tmp_path / "store")
    stopping = StopRequest()

    def stop_in_second(progress: Progress) -> None:
        if progress.run == 2 and progress.phase == "measuring" and not stopping.requested:
            stopping.request()

    stopped = _run(plan, store, probe_binary, on_progress=stop_in_second, stopping=stopping)
    assert stopped.stopped
    outcomes = [str(store.load(run).outcome) for run in stopped.runs]
    assert outcomes == ["completed", "completed", "aborted", "aborted"], "of the instrument and the board, in turn"
    resumed = _run(plan, store, probe_binary, resume=True)
    assert resumed.id == stopped.id
    assert resumed.runs[:2] == stopped.runs[:2]
    assert _kinds([store.load(run) for run in resumed.runs]) == [(True, "completed"), (False, "completed")] * 4


_BENCH = """
import sys
sys.path.insert(0, ".")
from tests.process.campaign.test_campaign_instrument import *
from tests.process.campaign.test_campaign_instrument import _run
IMPLEMENTATIONS[StandIn.name] = StandIn()
_run(Path(sys.argv[1]), Store(Path(sys.argv[2])), sys.argv[3],
     on_progress=lambda progress: print(progress.phase, progress.run, flush=True))
"""


@pytest.mark.slow
def test_killed_in_mid_run_what_was_finished_is_kept_and_the_rest_is_marked(
    plan: Path, tmp_path: Path, probe_binary: str
) -> None:
    bench = start_bench(_BENCH, str(plan), str(tmp_path / "store"), probe_binary)
    assert bench.stdout is not None
    while bench.stdout.readline() != "measuring 2\n":
        assert bench.poll() is None, bench.communicate()
    bench.send_signal(signal.SIGKILL)
    bench.communicate()
    store = Store(tmp_path / "store")
    assert eventually(lambda: not any(run.state == "running" for run in store.runs()))
    assert [run.state for run in store.runs()] == ["ended", "ended", "cut-off", "cut-off"]
    resumed = _run(plan, store, probe_binary, resume=True)
    assert [store.load(run).outcome for run in resumed.runs] == [Outcome.COMPLETED] * 8
    assert {run.id for run in store.runs()[:2]} == set(resumed.runs[:2])
