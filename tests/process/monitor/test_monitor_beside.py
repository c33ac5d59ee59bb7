# SPDX-License-Identifier: GPL-2.0-or-later
"""A monitor beside a run: its recording is a run of its own, and whatever becomes of it, the run is what it is."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from fastenough.analysis import judge
from fastenough.campaign import Campaign, Entry, Plan, monitoring, read_plan, run_campaign
from fastenough.campaign.monitoring import PROBES_NAME
from fastenough.cli.report import probe_of
from fastenough.implementations import Act
from fastenough.link import Link
from fastenough.model import NotApplicable, Outcome, Requirement, Verdict
from fastenough.recording.wakeups import MONITOR, is_monitor
from fastenough.settings import SETTINGS, Setting
from fastenough.settings.setting import Requested, Step
from fastenough.store import Store
from tests.support.monitor_recordings import Watched, watched
from tests.support.paper_monitor import install
from tests.support.recordings import Plan as Recorded
from tests.support.recordings import quiet, recording

LIMIT = Requirement(1_000_000)
HISTOGRAMS = "wakeup-histograms"


def _plan() -> Plan:
    entry = Entry("timer", ("none",), 1.0, {"interval": ("1ms",), "policy": ("other",), "latency": ("off",)}, repeat=2)
    return Plan("beside", (entry,), boards=("local",), monitor=True)


def _measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, program: Path | None, told: list[str]
) -> tuple[Store, Campaign]:
    if program is not None:
        monkeypatch.setattr(monitoring, "find_monitor", lambda link: str(program))
    store = Store(folder / "store")
    return store, run_campaign(plan, store, tell=told.append)


@pytest.mark.slow
def test_each_run_has_the_monitors_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    store, campaign = _measured(tmp_path, monkeypatch, _plan(), install(tmp_path), told)
    kept = [store.load(run) for run in campaign.runs]
    assert [one.head.probe for one in kept] == ["timer", "monitor"] * 2
    assert all(one.outcome is Outcome.COMPLETED for one in kept) and told == []
    for run, beside in zip(kept[::2], kept[1::2], strict=True):
        assert beside.head.load == run.head.load and beside.head.requirement is None
        assert beside.head.board == run.head.board and beside.head.profile == run.head.profile
        assert beside.head.parameters["said"] == "--policy=other --comm=fastenough-prob --until-interrupt --record=-"
        assert beside.duration_ns > 0
    listed = [run for run in store.runs() if run.probe == "monitor"]
    titles = [(summary.planned or ())[summary.position or 0] for summary in listed]
    assert [title.endswith("the monitor beside it") for title in titles] == [True, True]
    for summary in listed:
        recording = store.load(summary.id)
        totals = [recording.totals[series.id] for series in recording.named("expiry-to-return")]
        assert summary.worst_ns == max(total.maximum or 0 for total in totals)
        assert summary.samples == sum(total.total for total in totals)


def test_the_threads_of_a_run_are_watched_and_no_other_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe_binary: Path, monitor_binary: Path
) -> None:
    """Another probe of the usual name and the same policy acts ten times as often."""
    if subprocess.run([monitor_binary, "-q", "--comm=none", "-D", "10ms"], capture_output=True, check=False).returncode:
        pytest.skip("no monitor can run here")
    other = subprocess.Popen(
        [
            probe_binary,
            "timer",
            "-i",
            "100us",
            "--policy=other",
            "--latency=off",
            "--until-interrupt",
            "--record",
            tmp_path / "other",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        store, campaign = _measured(tmp_path, monkeypatch, _plan(), monitor_binary, [])
        others = {int(folder.name) for folder in Path(f"/proc/{other.pid}/task").iterdir()}
    finally:
        other.send_signal(signal.SIGINT)
        assert other.wait(20) == 0
    kept = [store.load(run) for run in campaign.runs]
    for run, beside in zip(kept[::2], kept[1::2], strict=True):
        wakeups = sum(beside.totals[series.id].total for series in beside.named("expiry-to-return"))
        acts = sum(run.totals[series.id].total for series in run.named("wakeup"))
        assert 0.5 * acts <= wakeups <= 1.5 * acts
        assert beside.head.parameters["comm"] == PROBES_NAME
        pids = {event.culprit["task_pid"] for event in beside.events if event.culprit and "task_pid" in event.culprit}
        assert pids and len(others) > 1 and not pids & others


def _refuse_instances(link: Link, requested: Requested) -> list[Step]:
    """A kernel that cannot count wake-ups into histograms."""
    raise NotApplicable("no histograms here")


def test_without_type_information_the_histograms_are_settings_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign holds the board, so that no other journal can be opened for them."""
    monkeypatch.setattr(monitoring, "TYPES", "/sys/kernel/btf/none")
    monkeypatch.setitem(cast(dict[str, Setting], SETTINGS), HISTOGRAMS, Setting(HISTOGRAMS, "", _refuse_instances))
    lines: list[str] = []
    entry = Entry("timer", ("none",), 1.0, {"interval": ("1ms",), "allow-difference": (True,)})
    store = Store(tmp_path / "store")
    campaign = run_campaign(replace(_plan(), entries=(entry,)), store, tell=lines.append)
    monitors = [kept for run in campaign.runs if is_monitor((kept := store.load(run)).head)]
    assert [monitor.outcome for monitor in monitors] == [Outcome.NOT_APPLICABLE], lines
    assert "no histograms here" in monitors[0].reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refusing", "outcome", "said"),
    [
        ((5, "needs root"), Outcome.NOT_APPLICABLE, "needs root"),
        ((4, "it broke"), Outcome.FAILED, "it broke"),
        (None, Outcome.FAILED, "status 3"),
    ],
)
def test_a_fault_of_the_monitor_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: tuple[int, str] | None, outcome: Outcome, said: str
) -> None:
    """It refuses to start, or dies before its end."""
    told: list[str] = []
    monitor = install(tmp_path, refusing=refusing, dying=refusing is None)
    store, campaign = _measured(tmp_path, monkeypatch, _plan(), monitor, told)
    kept = [store.load(run) for run in campaign.runs]
    assert [one.outcome for one in kept] == [Outcome.COMPLETED, outcome] * 2
    assert said in kept[1].reasons[0]
    assert len(told) == 1 and said in told[0], "the same fault is told once"


@pytest.mark.slow
def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed, a campaign of which one run is missing makes that one and its monitor's."""
    store, first = _measured(tmp_path, monkeypatch, _plan(), install(tmp_path), [])
    again = run_campaign(_plan(), store, resume=True)
    assert again.id != first.id and len(again.runs) == 4, "a whole one is not resumed"
    assert run_campaign(Plan(**{**_plan().__dict__, "monitor": False}), store, resume=True).id not in (
        first.id,
        again.id,
    ), "without the monitor it is another plan"


def test_who_sees_nothing_in_five_minutes_is_not_stuck() -> None:
    assert monitoring._silence_s(Act(MONITOR, {"report": "5min"})) > 300


def test_a_plan_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('name = "p"\nmonitor = true\n[[run]]\nprobe = "timer"\n')
    assert read_plan(tmp_path / "plan.toml").monitor


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_what_the_monitor_saw_is_judged_by_no_limit(tmp_path: Path, outcome: str) -> None:
    """Its tail is far beyond the limit, or its recording failed: a PASS stands as without it, and so does the n."""
    runs = [recording(tmp_path, Recorded(quiet(name), run_id=name)) for name in ("one", "two")]
    beside = watched(tmp_path, Watched(long={"runnable-to-running": 50_000_000}, outcome=outcome))
    alone, both = judge(runs, LIMIT), judge([*runs, beside], LIMIT)
    assert alone.verdict is Verdict.PASS and both == alone
    assert judge([beside], LIMIT).verdict is not Verdict.PASS


def test_a_load_that_only_the_monitor_saw_is_missing(tmp_path: Path) -> None:
    run = recording(tmp_path, Recorded(quiet("one"), run_id="one"))
    beside = watched(tmp_path, Watched(load="io"))
    assert judge([run, beside], LIMIT, loads=["none", "io"]).verdict is Verdict.INCONCLUSIVE


def test_a_limit_needs_no_probe_named_beside_a_monitor(tmp_path: Path) -> None:
    run = recording(tmp_path, Recorded(quiet("one"), run_id="one"))
    assert probe_of([run, watched(tmp_path, Watched())], None) == "timer"
