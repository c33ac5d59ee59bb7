# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit --measure`` on this machine: a delay that exists only while a setting has one value is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fastenough.analysis.change_effects import effect_of, judge_effects
from fastenough.analysis.paired import LEAST_OF_ORDER
from fastenough.board.base import Booted
from fastenough.board.local import LocalBoard
from fastenough.campaign import Entry, Plan, run_campaign
from fastenough.cli.audit_measure import MeasureArguments
from fastenough.jobs.ab import AbTest, make_ab_test
from fastenough.jobs.audit import AuditTrials, conclude_trials, report_trials
from fastenough.jobs.job_store import stored_conclusions
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.json_documents import require_valid
from tests.support.privileges import needs_root
from tests.support.processes import eventually

STATISTICS = Path("/proc/sys/vm/stat_interval")
SIZE_US = 3000
SHARE = 3 / 8
"""Of all time: 3 ms of each 8 ms, in half of which a task is late by more than half of it.  This is much more than
what other users of the machine take, so that one disturbed run does not hide it."""
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
while True:
    time.sleep(0.005)
    with open(sys.argv[2]) as file:
        delaying = file.read() == sys.argv[3]
    end_ns = time.perf_counter_ns() + int(sys.argv[4]) * 1000
    while delaying and time.perf_counter_ns() < end_ns:
        pass
"""
"""Takes its CPU for so many µs every 8 ms, above the probe's priority, as long as the file holds a value."""

pytestmark = [
    needs_root("it changes settings"),
    pytest.mark.skipif(not STATISTICS.exists() or int(STATISTICS.read_text()) >= 10, reason="it is changed already"),
]


@contextmanager
def delaying(cpus: Iterable[int]) -> Iterator[None]:
    """On these CPUs, while the setting has the value that it has now."""
    found = [
        subprocess.Popen(
            [sys.executable, "-c", HOG, str(cpu), str(STATISTICS), STATISTICS.read_text(), str(SIZE_US)],
            stdout=subprocess.PIPE,
        )
        for cpu in cpus
    ]
    try:
        assert all(process.stdout is not None and process.stdout.readline() for process in found)
        yield
    finally:
        for process in found:
            process.kill()
            process.wait()


@pytest.fixture
def delayed_cpu() -> Iterator[int]:
    """A CPU that is delayed; one, since the others run the tests beside this one."""
    cpu = min(os.sched_getaffinity(0))
    with delaying([cpu]):
        yield cpu


@dataclass(frozen=True)
class TwoKernels:
    """This machine, which delays tasks when it is booted as "slow"."""

    name: str = "local"

    def configurations(self) -> tuple[str, ...]:
        return ("slow", "quick")

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        cpus = os.sched_getaffinity(0) if configuration == "slow" else ()
        with delaying(cpus), LocalBoard().boot(configuration) as booted:
            yield booted


def words(*more: str) -> list[str]:
    return ["audit", "--measure", "--only", "stat-interval", "--loads", "none", "--rounds", "3", *more]


def test_an_injected_delay_is_found_and_everything_is_put_back(
    tmp_path: Path, probe_binary: Path, delayed_cpu: int
) -> None:
    """Runs of 800 values are judged at 95 %: at 99 %, one stall of the whole machine would outweigh the hogs."""
    before = STATISTICS.read_text()
    measure = words("--duration", "800ms", "--interval", "1ms", "--cpus", str(delayed_cpu))
    done = command_line(*measure, "--emit", "files", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert STATISTICS.read_text() == before
    measured = require_valid("audit", done.stdout)["measured"]
    (single,) = measured["single"]
    effect, tail = single["effect"], single["tail"]
    assert single["change"] == measured["best"] == {"stat-interval": "120"} and (
        effect["significant"] or tail["significant"]
    )
    assert effect["quantile"] == 0.95 and effect["lower_ns"] / 1000 <= -0.7 * SIZE_US
    assert SHARE / 4 < tail["without"] < 1.5 * SHARE and tail["with_change"] < tail["without"] / 2
    assert measured["combined"] == [] and "stat-interval=120" in measured["conclusions"][0]
    (repeated,) = measured["repeated"]
    runs = Store(tmp_path / "fastenough-data").runs()
    assert [sum(run.campaign == each["campaign"] for run in runs) for each in (single, repeated)] == [12, 12]
    written = (tmp_path / "files" / "90-fastenough.conf").read_text()
    line = written.splitlines().index("vm.stat_interval = 120")
    said = " ".join(written.splitlines()[line - 5 : line]).replace("# ", "")
    assert "Effect: under load none: 95 % smaller" in said or "Effect: under load none: rate of values above" in said


def test_only_the_cpus_that_are_named_are_measured(tmp_path: Path, probe_binary: Path) -> None:
    asked = MeasureArguments("local", ("none",), 3, 200_000_000, "1ms", (), True, False, cpus="0")
    store = Store(tmp_path / "store")
    (made,) = run_campaign(asked.plan, store).runs
    assert {series.cpu for series in store.load(made).series} == {0}


@pytest.mark.slow
def test_what_is_booted_is_tried_as_a_setting_is(tmp_path: Path, probe_binary: Path) -> None:
    store = Store(tmp_path / "store")
    plan = Plan(
        "audit",
        (Entry("timer", ("none",), 1.0, {"interval": ("500us",)}),),
        boards=("local",),
        configurations=("slow",),
    )

    trial = AbTest(plan, {}, 3, booted="quick", least_of_order=LEAST_OF_ORDER)
    made = make_ab_test(trial, store, lambda progress, side: None, opened=lambda name: TwoKernels())
    (tried,) = judge_effects([effect_of(made.pairs(store.load), {"boot": "quick"}, "none", made.campaign)])
    assert tried.helps and tried.name == "boot=quick"
    unsaid = replace(tried, effect=None, tail=None, reasons=("too few rounds",))
    measured = AuditTrials((tried, unsaid))
    section = conclude_trials(measured, ["it helps"], store)
    report_trials(measured, section, store, tmp_path / "report")
    assert [one.lead for one in stored_conclusions(store, [made.runs[0]])] == [section.lead] == ["It helps."]
    row, other = json.loads((tmp_path / "report" / "report.json").read_text())["tables"]["tried-1"]["rows"][1:]
    assert (row[0], row[2]) == ("boot=quick", 6) and row[5] < 0
    assert row[8] in ("smaller", "may be equal")  # the maximum is also that of the whole machine's stalls
    assert other[-1] == "too few rounds"
    assert "It helps." in (tmp_path / "report" / "index.html").read_text()
    runs = [store.load(run.id) for run in sorted(store.runs(), key=lambda run: run.position or 0)]
    booted = [run.head.configuration.name for run in runs if run.head.configuration is not None]
    assert booted == [{"A": "slow", "B": "quick"}[arm] for arm in made.order]


def test_after_kill_9_the_next_one_puts_it_back(tmp_path: Path, probe_binary: Path) -> None:
    before = STATISTICS.read_text()
    process = subprocess.Popen(
        [sys.executable, "-m", "fastenough", *words("--duration", "5s")],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    runs = tmp_path / "fastenough-data" / "runs"
    assert eventually(
        lambda: (
            process.poll() is not None or (STATISTICS.read_text() != before and any(runs.glob("*/recording.jsonl")))
        ),
        90,
    )
    assert process.poll() is None, "it ended before the setting was made"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert STATISTICS.read_text() != before
    again = command_line("audit", "--measure", "--only", "kernel-module", cwd=tmp_path)
    assert "restored settings" in again.stderr and "stat_interval" in again.stderr.splitlines()[0]
    assert STATISTICS.read_text() == before
    assert "stat-interval" in again.stderr.splitlines()[1], "it is a finding again, so that --resume goes on"


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "stat-interval"), "require --measure"),
        (("--measure", "--only", "governor"), "no finding of this system is fixed by that setting"),
        (("--measure", "--rounds", "2"), "--rounds"),
        (("--measure", "--cpus", "all"), "not a list of CPUs"),
        (("--cpus", "0"), "require --measure"),
        (("--measure", "--boot", "rt"), "two or more configurations"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    if "governor" in arguments and Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        pytest.skip("this machine has governors")
    done = command_line("audit", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_where_files_are_there_already_nothing_is_measured_for_them(tmp_path: Path, probe_binary: Path) -> None:
    assert command_line("audit", "--emit", "files", cwd=tmp_path).returncode == 0
    done = command_line(*words("--emit", "files"), cwd=tmp_path)
    assert done.returncode == 2 and "exists; name an empty folder" in done.stderr
    assert not (tmp_path / "fastenough-data").exists()
