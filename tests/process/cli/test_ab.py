# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough ab`` on this machine: runs take turns, and the setting is put back however it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.analysis.paired import Effect, Effects, Pair, TailRate, order_of_arms
from fastenough.board import open_board
from fastenough.campaign import Entry, Plan
from fastenough.cli.ab import conclusion, how_ended
from fastenough.jobs.ab import AbRuns, AbTest, make_ab_test
from fastenough.model import BadInput
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.huge_pages import HUGE_PAGES, other_value
from tests.support.json_documents import require_valid
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.processes import eventually

FREQUENCY = Path("/sys/devices/system/cpu/cpu0/cpufreq")


def words(*more: str) -> list[str]:
    return ["ab", "--set", f"transparent-huge-pages={other_value()}", *more]


def test_the_quantile_and_the_rate_each_have_their_own_finding() -> None:
    """The quantile became greater and the rate smaller: both are said, each beside its own figures."""
    greater = Effect(0.99, 5e3, 1.117e6, 1.112e6, 1.0e6, 1.2e6, 0.001, significant=True)
    rarer = TailRate(2e6, 0.01, 0.001, -0.009, -0.012, -0.006, 0.001, significant=True)
    both = Effects("wakeup", 12, (100, 100), (greater,), rarer, ((1.0,), (1.0,)), 0.95, (), ())
    quantile, _, rate = conclusion(both, "X").partition("; ")
    assert "greater" in quantile and "1,112" in quantile and "smaller" not in quantile
    assert "less often" in rate and "1,112" not in rate
    assert "; " not in conclusion(replace(both, tail=None), "X")


@pytest.mark.parametrize(("evidence", "is_decided"), [(19.9, False), (20.1, True)])
def test_the_end_names_rounds_and_evidence(evidence: float, is_decided: bool) -> None:
    effects = Effects("wakeup", 8, (100, 100), (), None, ((1.0,), (1.0,)), 0.95, (), (), evidence=evidence)
    assert effects.is_decided == is_decided
    said = how_ended(effects, 4, 8)
    assert said.startswith("decided") == is_decided
    assert all(figure in said for figure in ("4 of at most 8", str(evidence), "20 decides"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--", "timer"], "no change to test"),
        (["--boot", "stock,rt", "--", "timer"], "does not boot by itself"),
        (["--boot", "stock", "--board", "deterministic", "--", "timer"], "give two configurations"),
        (["--boot", "stock,stock x=a", "--board", "deterministic", "--rounds", "3", "--", "timer"], "remove it"),
        (["--boot", "stock,stock x=a", "--board", "deterministic", "--resume", "--", "timer"], "remove it"),
    ],
)
def test_a_test_without_a_change_or_with_useless_options_is_refused(
    tmp_path: Path, more: list[str], said: str, probe_binary: Path
) -> None:
    done = command_line("ab", *more, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "fastenough-data" / "runs").exists()


def test_pairs_of_a_deterministic_board_are_refused(tmp_path: Path) -> None:
    plan = Plan("ab", (Entry("timer", ("none",), 1.0),), boards=("deterministic:stock",))
    with pytest.raises(BadInput, match="repeats the first"):
        make_ab_test(
            AbTest(plan, {"swappiness": "1"}, 3), Store(tmp_path), lambda progress, label: None, opened=open_board
        )


@needs_root("it changes settings")
def test_runs_take_turns_and_the_setting_is_put_back(tmp_path: Path, probe_binary: Path, huge_pages: None) -> None:
    before, wanted = HUGE_PAGES.read_text(), other_value()
    done = command_line(
        *words("--rounds", "3", "--duration", "400ms", "--json", "--", "timer", "interval=400us"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert HUGE_PAGES.read_text() == before
    said = require_valid("ab", done.stdout)
    store = Store(tmp_path / "fastenough-data")
    runs = [store.load(run) for run in said["runs"]]
    set_ = [[one.in_effect for one in run.head.settings if one.name == "transparent-huge-pages"] for run in runs]
    order = said["order"]
    assert set_ == [[wanted] if arm == "B" else [] for arm in order]
    assert order == list(order_of_arms(said["campaign"], 3, 0))
    summaries = store.runs(campaign=said["campaign"])
    assert [run.id for run in sorted(summaries, key=lambda run: run.position or 0)] == said["runs"]
    assert [title.rpartition(", ")[2][:2] for title in present(summaries[0].planned, "plan")] == [
        f"{arm}:" for arm in order
    ]
    assert said["rounds"] == {"done": 3, "planned": 3}
    assert said["decided"] == (said["effects"]["evidence"] >= 20)
    assert [effect["quantile"] for effect in said["effects"]["effects"]] == [0.5, 0.95, 0.99]
    assert "transparent-huge-pages=" in said["conclusion"]
    marks = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(marks) == 12
    first = order.index("B")
    assert marks[first].startswith(f"[{first + 1}/12] timer, load none, B: transparent-huge-pages=")


@pytest.mark.slow
@needs_root("it changes settings")
def test_a_trial_ends_with_the_round_that_decides_it(tmp_path: Path, probe_binary: Path, huge_pages: None) -> None:
    """And stays as it ended: who resumes it measures nothing more."""
    plan = Plan("ab", (Entry("timer", ("none",), 0.2, {"interval": ("1ms",)}),), boards=("local",))
    trial, store, looks = AbTest(plan, {"transparent-huge-pages": other_value()}, 5), Store(tmp_path), []

    def decided(pairs: Sequence[Pair]) -> bool:
        looks.append(len(pairs))
        return len(pairs) >= 8

    def make(resume: bool) -> AbRuns:
        return make_ab_test(
            trial, store, lambda progress, side: None, opened=open_board, decided=decided, resume=resume
        )

    made = make(resume=False)
    assert (made.rounds, len(made.runs), len(made.order), looks) == (4, 16, 16, [6, 8])
    assert make(resume=True) == made and len(store.runs()) == 16


@needs_root("it would measure")
@pytest.mark.skipif(FREQUENCY.exists(), reason="this machine has governors")
def test_what_this_machine_cannot_change_is_not_applicable(tmp_path: Path, probe_binary: Path) -> None:
    done = command_line("ab", "--set", "governor=performance", "--", "timer", cwd=tmp_path)
    assert done.returncode == 5
    assert done.stderr.startswith("fastenough: not applicable: ") and done.stderr.endswith("(no cpufreq driver)\n")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("fastenough-data/runs/*"))


@pytest.mark.untimed
@pytest.mark.slow
@needs_root("it changes settings")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "governor"), "is not NAME=VALUE"),
        (("--set", "no-such=1"), "unknown setting 'no-such'"),
        (("--set", "transparent-huge-pages=some"), "use one of always, madvise, never"),
        (("--set", "transparent-huge-pages=never", "--set", "transparent-huge-pages=always"), "given twice"),
        (("--set", "transparent-huge-pages={now}"), "is already in effect"),
        (("--set", "transparent-huge-pages=never", "--load", "none,cpu"), "give one name"),
        (("--set", "transparent-huge-pages=never", "--rounds", "2"), "--rounds"),
        ((), "--set"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path, probe_binary: Path, huge_pages: None, arguments: tuple[str, ...], said: str
) -> None:
    now = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]
    done = command_line("ab", *(word.format(now=now) for word in arguments), "--", "timer", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@needs_root("it changes settings")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_setting_is_put_back_however_it_ends(
    tmp_path: Path, probe_binary: Path, huge_pages: None, number: signal.Signals
) -> None:
    """In the midst of a run that has it; after SIGKILL by whoever measures next, or by doctor."""
    before, wanted = HUGE_PAGES.read_text(), other_value()
    process = subprocess.Popen(
        [sys.executable, "-m", "fastenough", *words("--duration", "5s", "--", "timer")],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    runs = tmp_path / "fastenough-data" / "runs"
    assert eventually(
        lambda: (
            process.poll() is not None
            or (f"[{wanted}]" in HUGE_PAGES.read_text() and any(runs.glob("*/recording.jsonl")))
        ),
        90,
    )
    assert process.poll() is None, "it ended before the setting was made"
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == (-number if number is signal.SIGKILL else 128 + number), (out, errors)
    if number is signal.SIGKILL:
        assert HUGE_PAGES.read_text() != before
        restored = command_line("doctor", "--restore", cwd=tmp_path)
        assert "transparent_hugepage" in restored.stdout + restored.stderr
    assert HUGE_PAGES.read_text() == before


@pytest.mark.slow
@needs_root("it changes settings")
def test_a_trial_that_was_killed_goes_on(tmp_path: Path, probe_binary: Path, huge_pages: None) -> None:
    """Whole pairs stay, the one that was cut is made again, and all runs are one trial."""
    before = HUGE_PAGES.read_text()
    command = words("--rounds", "3", "--duration", "300ms", "--json", "--", "timer", "interval=1ms")
    again = [command[0], "--resume", *command[1:]]
    assert "omit --resume" in command_line(*again, cwd=tmp_path).stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "fastenough", *command],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    store = Store(tmp_path / "fastenough-data")
    runs = store.path / "runs"
    assert eventually(lambda: process.poll() is not None or len(list(runs.glob("*/run.json"))) >= 6, 90)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGSTOP)
    refused = command_line(*again, cwd=tmp_path)
    assert refused.returncode in (2, 4) and re.search("by another bench|another fastenough", refused.stderr)
    process.kill()
    process.communicate()
    ended = sum(run.outcome == "completed" for run in store.runs())
    whole = ended // 2 * 2
    kept = [run.id for run in store.runs() if run.position is not None and run.position < whole]
    assert 4 <= whole < 12
    done = command_line(*again, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert HUGE_PAGES.read_text() == before
    said = json.loads(done.stdout)
    made = {run.id: run for run in store.runs()}
    assert said["runs"][:whole] == kept and [made[run].position for run in said["runs"]] == list(range(12))
    assert {run.campaign for run in made.values()} == {said["campaign"]} and 12 < len(made) < 15
    assert said["runs"] == sorted(said["runs"]), "no run of a pair is older than those of the pair before"
    assert [line.partition("]")[0] for line in done.stderr.splitlines() if line.startswith("[")] == [
        f"[{run}/12" for run in range(whole + 1, 13)
    ]
    assert json.loads(command_line(*again, cwd=tmp_path).stdout) == said, "what is whole is told again"
