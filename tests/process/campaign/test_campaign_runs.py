# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns with the real probe: everything is stored, nothing is left behind, and a stopped one goes on."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fastenough.board.base import checked_profile
from fastenough.board.local import LocalBoard
from fastenough.campaign import Campaign, Entry, Plan, Progress, StopRequest, run_campaign
from fastenough.campaign.board_name import name_in_runs
from fastenough.facts import FACTS
from fastenough.link import LocalLink, Process
from fastenough.link.guard import descendants
from fastenough.loads import Expectation, Load
from fastenough.model import BadInput, FastenoughError, Outcome
from fastenough.recording import Recording
from fastenough.recording.head import LoadProof
from fastenough.store import Store
from tests.support.own_swappiness import OwnSwappiness
from tests.support.presence import present
from tests.support.privileges import own_mounts
from tests.support.processes import ROOT, eventually, start_bench

PARAMETERS: dict[str, tuple[Any, ...]] = {"interval": ("1ms",), "report": ("200ms",), "allow-difference": (True,)}
OWN_BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
BUSY = Load("busy", "this test", ("sh",), (("sh", "-c", "while :; do :; done"),), Expectation(cpu_share=0.001))
"""At a nice value of 10 it gets little CPU time beside other users of the machine: 0.1 % is enough."""
IDLE = Load("idle", "this test", ("sleep",), (("sleep", "1000"),), Expectation(cpu_share=0.5))


def _plan(*loads: str, duration_s: float = 1.0, **parameters: Any) -> Plan:
    known = PARAMETERS | {name: (value,) for name, value in parameters.items()}
    return Plan("test", (Entry("timer", loads, duration_s, known),), loads={"busy": BUSY, "idle": IDLE})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def _run(store: Store, plan: Plan, probe: str, **options: Any) -> Campaign:
    return run_campaign(
        plan, store, journal=store.path / "journal", opened=lambda name: LocalBoard(probe=probe), **options
    )


def _adds_up(recording: Recording) -> None:
    """The invariant, in every recording any test makes."""
    assert recording.end is not None
    for number, said in recording.end.series.items():
        assert said.stored + said.lost == said.taken
        assert recording.totals[number].total == said.stored


@pytest.mark.parametrize(
    ("address", "boot_id", "name"),
    [
        ("local", "other", "vm"),
        ("ssh://board", OWN_BOOT, "vm"),
        ("ssh://root@board:22", OWN_BOOT, "vm"),
        ("ssh://board", "other", "ssh://board"),
        ("ssh://root@board:2222", "other", "ssh://board:2222"),
        ("ssh://board", None, "ssh://board"),
        ("labgrid:board", OWN_BOOT, "labgrid:board"),
    ],
)
def test_a_machine_has_one_name_however_it_is_reached(address: str, boot_id: str | None, name: str) -> None:
    assert name_in_runs(address, {"hostname": "vm", "boot_id": boot_id}) == name


@pytest.mark.parametrize(
    ("configuration", "preemption", "taken"),
    [
        ("rt", "preempt-rt", True),
        ("6.12-rt1", "voluntary", False),
        ("rt skew_tick=1", "preempt", False),
        ("stock", "preempt-rt", False),
        ("stock", "none", True),
        ("sort", "none", True),
        ("rt", None, True),
    ],
)
def test_a_configuration_is_held_against_the_running_kernel(
    configuration: str, preemption: str | None, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = {"release": "6.1", "version": "", "preemption": preemption}
    monkeypatch.setattr("fastenough.board.base.collect", lambda link, names: {"kernel": kernel})
    if taken:
        assert checked_profile(LocalLink(), configuration)["kernel"] == kernel
    else:
        with pytest.raises(BadInput, match=f"configuration {configuration}: .* 6.1 .* {preemption}"):
            checked_profile(LocalLink(), configuration)


def _proof(recording: Recording) -> LoadProof:
    return present(present(recording.end, "end").load, "proof of the load")


def test_every_run_is_measured_and_stored(store: Store, probe_binary: str, lasting_facts: None) -> None:
    seen: list[Progress] = []
    campaign = _run(store, _plan("none", "busy"), probe_binary, on_progress=seen.append)
    assert not campaign.stopped
    quiet, loaded = (store.load(run) for run in campaign.runs)
    for recording in (quiet, loaded):
        assert recording.outcome is Outcome.COMPLETED
        assert recording.head.run_id in campaign.runs
        assert set(present(recording.head.profile, "profile")) == {fact.name for fact in FACTS} | {"absent"}
        assert len(present(recording.head.profile_sha256, "hash of the profile")) == 64
        _adds_up(recording)
    assert present(quiet.head.load, "load").name == "none"
    assert present(loaded.head.load, "load").commands == BUSY.commands
    proof = _proof(loaded)
    assert proof.ran
    assert present(proof.cpu_time_s, "CPU time") > 0
    assert all(interval.load is not None and interval.load.processes for interval in loaded.intervals)
    assert all(interval.load is None for interval in quiet.intervals)
    assert quiet.head.profile_sha256 == loaded.head.profile_sha256
    phases = [progress.phase for progress in seen]
    assert phases[0] == "profile"
    assert phases[-1] == "ended"
    assert any(progress.worst_ns.get("wakeup", 0) > 0 for progress in seen)
    assert {progress.run for progress in seen} == {1, 2}
    assert seen[0].remaining_s > seen[-1].remaining_s
    assert [run.load for run in store.runs()] == ["none", "busy"]
    assert store.verify() == {}


def test_a_load_that_did_not_run_fails_the_run(store: Store, probe_binary: str) -> None:
    campaign = _run(store, _plan("idle"), probe_binary)
    recording = store.load(campaign.runs[0])
    assert recording.outcome is Outcome.FAILED
    assert recording.end is not None
    assert "load idle too weak" in recording.end.reasons[0]
    assert _proof(recording).ran is False
    _adds_up(recording)


def test_a_missing_tool_is_not_applicable_and_the_rest_goes_on(
    store: Store, probe_binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "sleep", "chrt"):
        found = LocalLink().which(tool)
        if found:
            (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    campaign = _run(store, _plan("cpu", "none"), probe_binary)
    missing, quiet = (store.load(run) for run in campaign.runs)
    assert missing.outcome is Outcome.NOT_APPLICABLE
    assert missing.end is not None
    assert "apt-get install stress-ng" in missing.end.reasons[0]
    assert missing.head.profile is not None
    assert quiet.outcome is Outcome.COMPLETED


@pytest.mark.slow
def test_resuming_does_what_is_left(store: Store, probe_binary: str) -> None:
    plan = _plan("none", "busy", "none")
    stopping = StopRequest()

    def stop_in_second(progress: Progress) -> None:
        if progress.run == 2 and progress.worst_ns and not stopping.requested:
            stopping.request()

    stopped = _run(store, plan, probe_binary, on_progress=stop_in_second, stopping=stopping)
    assert stopped.stopped
    assert [store.load(run).outcome for run in stopped.runs] == [Outcome.COMPLETED, Outcome.ABORTED]
    _adds_up(store.load(stopped.runs[1]))
    resumed = _run(store, plan, probe_binary, resume=True)
    assert resumed.id == stopped.id
    assert resumed.runs[0] == stopped.runs[0]
    assert [store.load(run).outcome for run in resumed.runs] == [Outcome.COMPLETED] * 3
    assert len(store.runs()) == 4
    fresh = _run(store, _plan("none"), probe_binary, resume=True)
    assert fresh.id != resumed.id


@pytest.mark.untimed
@pytest.mark.slow
def test_what_the_probe_refuses_ends_the_campaign(store: Store, probe_binary: str) -> None:
    for wrong in ({"interval": "0us"}, {"no-such-option": 1}, {"priority": 100}, {"affinity": 4000}):
        with pytest.raises(BadInput) as caught:
            _run(store, _plan("busy", **wrong), probe_binary)
        assert "\n" not in str(caught.value)
    assert store.runs() == []
    assert descendants(os.getpid()) == []


def test_what_the_probe_refuses_of_a_later_run_costs_that_run_alone(store: Store, probe_binary: str) -> None:
    """Hours lie behind it: it is kept with the probe's reason, the rest is measured, and ``resume`` repeats it."""
    plan = Plan("test", (Entry("timer", ("none",), 0.2, PARAMETERS | {"interval": ("1ms", "0us", "2ms")}),))
    campaign = _run(store, plan, probe_binary)
    assert [store.load(run).outcome for run in campaign.runs] == [
        Outcome.COMPLETED,
        Outcome.FAILED,
        Outcome.COMPLETED,
    ]
    assert "interval" in store.load(campaign.runs[1]).reasons[0]
    resumed = _run(store, plan, probe_binary, resume=True)
    assert resumed.id == campaign.id and resumed.runs[1] != campaign.runs[1]
    assert resumed.runs[::2] == campaign.runs[::2]


def test_a_probe_that_is_not_there(store: Store) -> None:
    with pytest.raises(BadInput, match="no such program"):
        _run(store, _plan("none"), "/nowhere/fastenough-probe")


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("echo 'no GPIO here' >&2; exit 5", Outcome.NOT_APPLICABLE, "no GPIO here"),
        ("echo 'lost my way' >&2; exit 4", Outcome.FAILED, "status 4: lost my way"),
        ("kill -SEGV $$", Outcome.FAILED, "status 139"),
    ],
)
def test_a_probe_that_says_nothing(store: Store, tmp_path: Path, body: str, outcome: Outcome, reason: str) -> None:
    probe = tmp_path / "probe"
    probe.write_text(f"#!/bin/sh\n{body}\n")
    probe.chmod(0o755)
    campaign = _run(store, _plan("none"), str(probe))
    recording = store.load(campaign.runs[0])
    assert recording.outcome is outcome
    assert recording.end is not None
    assert reason in recording.end.reasons[0]


def test_a_probe_of_another_kind(store: Store, tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_text("#!/bin/sh\necho T: 0 Min: 3\n")
    probe.chmod(0o755)
    campaign = _run(store, _plan("busy"), str(probe))
    recording = store.load(campaign.runs[0])
    assert recording.outcome is Outcome.FAILED
    assert recording.end is not None and "invalid recording line" in recording.end.reasons[0]
    assert descendants(os.getpid()) == []


def test_a_run_whose_probe_is_killed_has_failed(store: Store, probe_binary: str) -> None:
    def kill_probe(progress: Progress) -> None:
        if progress.worst_ns:
            for pid in descendants(os.getpid()):
                with suppress(FileNotFoundError):
                    if Path(f"/proc/{pid}/exe").resolve() == Path(probe_binary).resolve():
                        os.kill(pid, signal.SIGKILL)

    campaign = _run(store, _plan("none", duration_s=60.0), probe_binary, on_progress=kill_probe)
    recording = store.load(campaign.runs[0])
    assert recording.outcome is Outcome.FAILED and "status 137" in recording.reasons[0]
    assert recording.intervals
    assert [run.state for run in store.runs()] == ["ended"]


def test_a_machine_without_a_free_process_costs_one_run(
    store: Store, probe_binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Sequence[str]] = []
    start = LocalLink.start

    def refuse_first(link: LocalLink, argv: Sequence[str], **options: Any) -> Process:
        begun.append(argv)
        if len(begun) == 1:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return start(link, argv, **options)

    monkeypatch.setattr(LocalLink, "start", refuse_first)
    campaign = _run(store, _plan("none", "none"), probe_binary)
    failed, measured = (store.load(run) for run in campaign.runs)
    assert failed.outcome is Outcome.FAILED and os.strerror(errno.EAGAIN) in failed.reasons[0]
    assert measured.outcome is Outcome.COMPLETED


_BENCH = """
import sys
sys.path.insert(0, ".")
from tests.process.campaign.test_campaign_runs import *
from tests.process.campaign.test_campaign_runs import _plan, _run
store = Store(Path(sys.argv[1]))
_run(store, _plan("busy", "none", "busy", duration_s=float(sys.argv[3])), sys.argv[2], resume=True,
     on_progress=lambda progress: print(progress.phase, progress.run, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_kill_9_at_any_time(tmp_path: Path, probe_binary: str, seed: int) -> None:
    bench = start_bench(_BENCH, str(tmp_path), probe_binary, "1.0")
    assert bench.stdout is not None
    bench.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.0, 3.5))
    tree = descendants(bench.pid)
    bench.send_signal(signal.SIGKILL)
    bench.communicate()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree))
    store = Store(tmp_path)
    begun = store.runs()
    assert {run.state for run in begun} <= {"ended", "cut-off"}
    for run in begun:
        assert store.load(run.id).head.run_id == run.id
    campaign = _run(store, _plan("busy", "none", "busy", duration_s=1.0), probe_binary, resume=True)
    assert [store.load(run).outcome for run in campaign.runs] == [Outcome.COMPLETED] * 3
    assert {run.id for run in begun if run.state == "ended"} <= set(campaign.runs)
    assert store.verify() == {}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_in_good_order(tmp_path: Path, probe_binary: str, number: signal.Signals) -> None:
    bench = start_bench(_BENCH, str(tmp_path), probe_binary, "60.0")
    assert bench.stdout is not None
    while not bench.stdout.readline().startswith("measuring 1"):
        pass
    bench.stdout.readline()
    tree = descendants(bench.pid)
    bench.send_signal(number)
    _, complaint = bench.communicate(timeout=60)
    assert bench.returncode == 0, complaint
    assert not any(Path(f"/proc/{pid}").exists() for pid in tree)
    store = Store(tmp_path)
    [run] = store.runs()
    assert run.outcome == "aborted"
    _adds_up(store.load(run.id))


_FULL_DISK = """
import sys
sys.path.insert(0, ".")
from tests.process.campaign.test_campaign_runs import *
from tests.process.campaign.test_campaign_runs import _plan, _run
store = Store(Path(sys.argv[1]), index_url="sqlite://")
room = Path(sys.argv[1], "ballast")
room.write_bytes(bytes(200_000))

def shrink(progress):
    if progress.worst_ns:
        with room.open("ab") as stream:
            try:
                while True:
                    os.write(stream.fileno(), bytes(4096))
            except OSError:
                pass

try:
    _run(store, _plan("busy", duration_s=60.0), sys.argv[2], on_progress=shrink)
except FastenoughError as error:
    assert "No space left" in str(error), error
    assert "\\n" not in str(error)
assert descendants(os.getpid()) == []
[run] = Store(Path(sys.argv[1]), index_url="sqlite://").runs()
assert run.state == "cut-off", run
assert store.load(run.id).intervals
print("good")
"""


def test_full_disk_ends_the_campaign_and_keeps_what_there_was(tmp_path: Path, probe_binary: str) -> None:
    script = f'mount -t tmpfs -o size=2m,mode=700 none {tmp_path} && exec "$0" -c "$1" {tmp_path} {probe_binary}'
    completed = subprocess.run(
        [*own_mounts(as_user=True), "sh", "-c", script, sys.executable, _FULL_DISK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert completed.stdout.startswith("good"), completed.stderr


def test_settings_of_a_plan_are_in_every_head(store: Store, probe_binary: str) -> None:
    plan = Plan("set", (Entry("timer", ("none",), 1.0, PARAMETERS),), settings={"timer-threads": 99})
    campaign = _run(store, plan, probe_binary)
    entries = store.load(campaign.runs[0]).head.settings
    assert any(entry.name.startswith("timer-threads") for entry in entries)
    with pytest.raises(BadInput, match="rt-ceiling"):
        _run(store, Plan("set", plan.entries, settings={"rt-ceiling": 100}), probe_binary)


def test_a_setting_that_changes_between_runs_breaks_all_later_ones(store: Store, probe_binary: str) -> None:
    plan = Plan("set", (Entry("timer", ("none",), 0.5, PARAMETERS, repeat=3),), settings={"swappiness": 10})
    link = OwnSwappiness()

    def change(progress: Progress) -> None:
        if progress.run == 2 and progress.phase == "measuring":
            link.value = b"40"

    campaign = run_campaign(
        plan,
        store,
        change,
        journal=store.path / "journal",
        opened=lambda name: LocalBoard(link, probe_binary),
    )
    changes = [present(store.load(run).end, "end").changes for run in campaign.runs]
    assert [[(change.name, change.before, change.after) for change in of_run] for of_run in changes] == [
        [],
        [("swappiness", "10", "40")],
        [("swappiness", "10", "40")],
    ]
    assert link.value == b"60"


def test_a_setting_of_the_input_pin_applies_to_runs_without_pins(store: Store, probe_binary: str) -> None:
    """For runs with pins it is made late; no run ignores it."""
    pins = Entry("periodic", ("none",), 0.2, {"chip": ("none",), "out": (1,)})
    plan = Plan("set", (Entry("timer", ("none",), 0.2, PARAMETERS), pins), settings={"irq-threads": 50})
    campaign = _run(store, plan, probe_binary)
    for run in campaign.runs:
        entries = store.load(run).head.settings
        assert any(entry.name == "irq-threads" and entry.requested in (50, "fifo:50") for entry in entries)


def test_a_second_campaign_waits_its_turn(store: Store, probe_binary: str) -> None:
    complaints: list[str] = []

    def second(progress: Progress) -> None:
        if progress.phase == "ended":
            with pytest.raises(FastenoughError) as caught:
                _run(store, _plan("none"), probe_binary)
            complaints.append(str(caught.value))

    _run(store, _plan("none"), probe_binary, on_progress=second)
    assert ["another fastenough is measuring" in complaint for complaint in complaints] == [True]
