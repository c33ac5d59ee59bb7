# SPDX-License-Identifier: GPL-2.0-or-later
"""The deterministic board: a run repeats to the byte, idle and under load, and another kernel argument shows."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from fastenough.analysis import judge
from fastenough.analysis.machine import INSTRUCTIONS
from fastenough.board import open_board
from fastenough.campaign import Entry, Plan, Progress, read_plan, run_campaign
from fastenough.campaign.expand import phases_ns
from fastenough.hunt.extent import TrialCount
from fastenough.hunt.trials import TrialRequest
from fastenough.jobs.hunt import Hunt, make_hunt
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording.wakeups import is_monitor
from fastenough.settings import Settings
from fastenough.store import Store
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Background, Beginning, Command, DeterministicGuest, GuestRun, emulator_of
from fastenough.virtual.deterministic_link import DeterministicLink
from fastenough.virtual.probe import PROBE
from tests.support.cli_calls import command_line
from tests.support.json_documents import require_valid
from tests.support.tools import require
from tests.support.virtual_boards import BOOT_S

pytestmark = pytest.mark.untimed

TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=200ms", "--record=-"))
READERS = Background(
    (("sh", "-c", "while :; do cat /proc/stat /proc/self/maps >/dev/null; done"),), ("/var/tmp/readers",), 0.1
)
RUNS = 5
PLAN = """
name = "paths"
question = "How long are the paths?"
board = "deterministic"
configurations = ["stock"]
duration = "100ms"
warm-up = "50ms"
repeat = 2
loads = ["readers"]
[settings]
timer-migration = 0
[[load]]
name = "readers"
commands = [["sh", "-c", "while :; do cat /proc/stat /proc/self/maps >/dev/null; done"]]
cpu-share = 0.3
[[run]]
probe = "timer"
parameters = { interval = "1ms" }
"""


def _boot(arguments: str = "", background: Background | None = None, phase_ns: int = 0) -> GuestRun:
    beginning = Beginning(phase_ns=phase_ns)
    return DeterministicGuest(find_kernel("stock"), arguments).boot([TIMER], background, beginning)


def _recording(run: GuestRun) -> bytes:
    (done,) = run.results(BOOT_S).commands
    assert done.status == 0, done.stderr
    return done.stdout


def _samples(recording: bytes) -> int:
    end = json.loads(recording.splitlines()[-1])
    taken: int = end["series"][0]["taken"]
    return taken


@pytest.mark.check
def test_a_run_repeats_to_the_byte_and_another_argument_changes_it() -> None:
    once, again, other = map(_recording, [_boot(), _boot(), _boot("highres=off")])
    assert once == again
    assert _samples(once) == 200
    assert other != once


def _without_id(store: Store, run: str) -> bytes:
    with store.opened(run) as stream:
        return zstandard.ZstdDecompressor().stream_reader(stream).read().replace(run.encode(), b"")


def test_a_campaign_repeats_to_the_byte_under_load(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    store = Store(tmp_path / "store")
    runs = run_campaign(read_plan(tmp_path / "plan.toml"), store).runs
    recording = store.load(runs[0])
    once, again = (_without_id(store, run) for run in runs)
    assert once == again
    head, end = recording.head, recording.end
    assert end is not None and end.outcome is Outcome.COMPLETED and end.load is not None and end.load.ran
    assert [setting.in_effect for setting in head.settings if setting.name == "timer-migration"] == ["0"]
    assert head.marks >= {"emulated"} and head.profile is not None
    assert head.profile["emulator"] == emulator_of(find_kernel("stock").machine)
    assessment = judge([recording], Requirement(10_000_000))
    assert assessment.verdict is Verdict.INCONCLUSIVE and INSTRUCTIONS in assessment.cautions


@pytest.mark.matrix
def test_the_monitor_beside_a_run_repeats_to_the_byte(tmp_path: Path) -> None:
    require("clang")
    plan = Plan(
        "watched", (Entry("timer", ("none",), 0.1, {"interval": ("1ms",)}, repeat=2),), boards=("deterministic",)
    )
    store = Store(tmp_path / "store")
    runs = run_campaign(replace(plan, monitor=True), store).runs
    recordings = [store.load(run) for run in runs]
    assert [recording.outcome for recording in recordings] == [Outcome.COMPLETED] * 4
    once, again = (recording for recording in recordings if is_monitor(recording.head))
    assert _without_id(store, once.run_id) == _without_id(store, again.run_id)
    (station,) = (series for series in once.series if series.name == "expiry-to-return")
    assert once.totals[station.id].total == 101, "one more than the probe's 100 values"


@pytest.mark.matrix
def test_a_monitor_alone_repeats_to_the_byte(tmp_path: Path) -> None:
    require("clang")
    words = ["monitor", "--policy", "any", "--duration", "300ms", "--board", "deterministic", "--store", "store"]
    for _ in range(2):
        done = command_line(*words, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    store = Store(tmp_path / "store")
    once, again = (store.load(run.id) for run in store.runs())
    assert once.outcome is Outcome.COMPLETED and once.head.marks >= {"emulated"}
    assert _without_id(store, once.run_id) == _without_id(store, again.run_id)
    (station,) = (series for series in once.series if series.name == "waking-to-running")
    assert once.totals[station.id].total > 0, "tasks of the kernel ran"


def _part_of_a_hunt(store: Store, trials: int) -> list[str]:
    """The first trials of a hunt; their runs."""
    entry = Entry("timer", ("none",), 0.1, {"interval": ("1ms",), "report": ("100ms",)}, warm_up_s=0.2)
    plan = Plan("hunt", (entry,), boards=("deterministic",))
    hunt = Hunt(plan, TrialCount(38), only=("switch", "flock"), fixed=("none",))
    begun: set[int] = set()

    def on_progress(progress: Progress, ask: TrialRequest) -> None:
        is_new = progress.run not in begun
        begun.add(progress.run)
        if is_new and len(begun) == trials + 1:  # a second signal would not wait
            os.kill(os.getpid(), signal.SIGTERM)

    hunted = make_hunt(hunt, store, on_progress, opened=open_board)
    assert hunted.signal == signal.SIGTERM and not hunted.failed
    return list(hunted.runs)


@pytest.mark.matrix
def test_the_trials_of_a_hunt_repeat_to_the_byte(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    once, again = (_part_of_a_hunt(store, 3) for _ in range(2))
    assert len(once) == len(again) == 3
    assert [_without_id(store, run) for run in once] == [_without_id(store, run) for run in again]
    heads = [store.load(run).head for run in once]
    assert len({head.phase_ns for head in heads}) == 3 and all(head.marks >= {"emulated"} for head in heads)
    loads = [head.load.name for head in heads if head.load is not None]
    assert loads[:2] == ["none", "none"] and loads[2].startswith("hunt-")


def test_a_kernel_of_debian_has_no_events_for_a_bound(tmp_path: Path) -> None:
    done = command_line("bound", "--board", "deterministic", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1) and "CONFIG_PREEMPT_TRACER=y" in done.stderr, (
        done.stderr
    )


@pytest.mark.matrix
def test_a_phase_begins_later_and_is_another_recording() -> None:
    recordings = [_recording(_boot(background=READERS, phase_ns=phase_ns)) for phase_ns in phases_ns(2)]
    begins = [json.loads(recording.splitlines()[0])["begin"]["mono_ns"] for recording in recordings]
    assert begins[0] > begins[1]
    assert len({recording.partition(b'"type":"interval"')[2] for recording in recordings}) == 2


@pytest.mark.matrix
def test_two_boards_of_one_name_are_used_at_once_and_leave_nothing() -> None:
    with open_board("deterministic").boot("stock") as first, open_board("deterministic").boot("stock") as second:
        directories = [booted.link.own_directory for booted in (first, second)]
        with Settings(first.link), Settings(second.link):
            assert len({path for path in directories if path is not None and path.is_dir()}) == 2
    assert not any(path is not None and path.exists() for path in directories)


@pytest.mark.matrix
def test_a_setting_is_in_effect_where_the_command_runs() -> None:
    path = "/proc/sys/kernel/timer_migration"
    link = DeterministicLink(DeterministicGuest(find_kernel("stock")), "deterministic")
    link.survey([path], [])
    assert link.read(path) == b"1\n"
    link.write(path, b"0")
    assert link.read(path) == b"0\n"
    assert list(link.start(["cat", path]).lines()) == [b"0\n"]


@pytest.mark.matrix
def test_an_argument_without_effect_lengthens_no_path(tmp_path: Path) -> None:
    words = ["--board", "deterministic", "--duration", "100ms", "--json", "--", "timer", "interval=1ms"]
    done = command_line("ab", "--boot", "stock,stock x=a", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = require_valid("ab", done.stdout)
    (path,) = document["paths"]
    differences = {figure["name"]: figure["difference"] for figure in path["figures"]}
    assert differences["minimum"] == differences["median"] == 0 and path["n"] == [100, 100]


@pytest.mark.matrix
def test_an_x86_64_kernel_repeats_to_the_byte_under_load() -> None:
    guest = DeterministicGuest(find_kernel("stock-amd64"))
    once, again = (_recording(guest.boot([TIMER], READERS)) for _ in range(2))
    assert once == again and _samples(once) == 200


@pytest.mark.matrix
@pytest.mark.parametrize("background", [None, READERS], ids=["idle", "load"])
def test_five_runs_have_one_hash(background: Background | None) -> None:
    hashes = {hashlib.sha256(_recording(_boot(background=background))).hexdigest() for _ in range(RUNS)}
    assert len(hashes) == 1
