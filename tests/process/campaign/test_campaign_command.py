# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough campaign``: what a plan comes to, and a campaign that is cut, looked at and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastenough.campaign import expand, on_board, plan_sha256, read_plan
from fastenough.model import Configuration, Outcome
from fastenough.store import Store
from fastenough.store.campaign import planned_runs
from fastenough.store.summary import RunSummary
from tests.support.cli_calls import command_line, environment
from tests.support.json_documents import require_valid
from tests.support.processes import ROOT, eventually
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed

PLAN = """
name = "three"
title = "Three runs"
question = "Does it go on?"
duration = "{duration}"
[[run]]
probe = "timer"
repeat = 3
parameters = {{interval = "1ms", report = "100ms", allow-difference = true, affinity = 0}}
"""
BY_HAND = """
name = "by-hand"
configurations = ["stock", "rt"]
duration = "200ms"
{more}
[[run]]
probe = "timer"
parameters = {{interval = "1ms", allow-difference = true, affinity = 0}}
"""
ANY_KERNEL = '[[configuration]]\nname = "rt"\nkernel = "*"\n'


def _plan(folder: Path, text: str = PLAN, **words: str) -> Path:
    (folder / "plan.toml").write_text(text.format(**{"duration": "200ms", "more": "", **words}))
    return folder


def _status(folder: Path) -> dict[str, Any]:
    said = command_line("campaign", "status", "--json", cwd=folder)
    assert said.returncode == 0, said.stderr
    document: dict[str, Any] = json.loads(said.stdout)
    return document


def _states(folder: Path) -> list[str]:
    return [run["state"] for run in _status(folder)["runs"]]


def test_a_plan_is_told_and_nothing_is_measured(tmp_path: Path, probe_binary: str) -> None:
    more = 'configurations = ["stock", "rt"]\nloads = ["none", "cpu"]\n'
    folder = _plan(tmp_path, PLAN.replace("[[run]]", f"{more}[[run]]"), duration="10m")
    said = command_line("campaign", "plan", "plan.toml", "--board", "virtual", cwd=folder)
    assert said.returncode == 0, said.stderr
    for words in (
        "three: Three runs",
        "Does it go on?",
        "board virtual: stock, rt",
        "none, cpu",
        "12 runs: measuring time 2 h 00 min",
    ):
        assert words in said.stdout
    told = json.loads(command_line("campaign", "plan", "plan.toml", "--board", "virtual", "--json", cwd=folder).stdout)
    assert len(told["runs"]) == 12 and told["measured_s"] == 7200.0 < told["expected_s"]
    assert sorted(path.name for path in folder.iterdir()) == ["plan.toml"]


@pytest.mark.slow
def test_run_and_resume_print_what_their_schemas_say(tmp_path: Path, probe_binary: str) -> None:
    folder = _plan(tmp_path)
    run, resumed = (command_line("campaign", word, "plan.toml", "--json", cwd=folder) for word in ("run", "resume"))
    for word, said in (("run", run), ("resume", resumed)):
        assert said.returncode == 0, said.stderr
        document = require_valid(f"campaign {word}", said.stdout)
        assert [each["outcome"] for each in document["runs"]] == [Outcome.COMPLETED.value] * 3
        assert document["stopped"] is False


@pytest.mark.parametrize(
    ("board", "listed"), [("deterministic", "stock"), ("deterministic:rt", "rt"), ("virtual:rt", "as-booted")]
)
def test_a_deterministic_board_is_listed_with_its_kernel(board: str, listed: str, tmp_path: Path) -> None:
    said = command_line("campaign", "plan", "quick", "--board", board, cwd=tmp_path).stdout
    assert f"board {board}: {listed}\n" in said


def test_a_plan_that_comes_with_fastenough_is_known_by_its_name(tmp_path: Path, probe_binary: str) -> None:
    named, whole = (
        command_line("campaign", "plan", plan, "--json", cwd=tmp_path)
        for plan in ("quick", str(ROOT / "campaigns" / "quick.toml"))
    )
    assert named.returncode == 0, named.stderr
    assert named.stdout == whole.stdout and json.loads(named.stdout)["name"] == "quick"
    unknown = command_line("campaign", "plan", "quik", cwd=tmp_path)
    assert unknown.returncode == 2 and "no file quik" in unknown.stderr
    assert "shipped plans: at91, " in unknown.stderr
    (tmp_path / "quick").write_text(PLAN.format(duration="1s", more=""))
    assert "three: Three runs" in command_line("campaign", "plan", "quick", cwd=tmp_path).stdout, "a file comes first"


@pytest.mark.slow
def test_a_killed_campaign_is_looked_at_and_gone_on_with(tmp_path: Path, probe_binary: str) -> None:
    folder = _plan(tmp_path, duration="2s")
    bench = subprocess.Popen(
        [sys.executable, "-m", "fastenough", "campaign", "run", "plan.toml"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert bench.stderr is not None
    assert b"[1/3]" in bench.stderr.readline()
    runs = folder / "fastenough-data" / "runs"

    def second_records() -> bool:
        return len(list(runs.iterdir())) == 2 and [p.stat().st_size > 0 for p in runs.glob("*/recording.jsonl")] == [
            True
        ]

    assert eventually(second_records)
    bench.send_signal(signal.SIGKILL)
    bench.communicate()
    before = _status(folder)
    assert before["states"] == {"done": 1, "interrupted": 1, "open": 1}
    assert "killed" in before["runs"][1]["reason"]
    said = command_line("campaign", "status", cwd=folder)
    assert "resume with: fastenough campaign resume" in said.stdout
    (folder / "plan.toml").unlink()
    resumed = command_line("campaign", "resume", cwd=folder)
    assert resumed.returncode == 0, resumed.stderr
    after = _status(folder)
    assert after["campaign"] == before["campaign"] and after["states"] == {"done": 3}
    assert after["runs"][0] == before["runs"][0]
    assert after["runs"][1]["interrupted"] == 1
    again = command_line("campaign", "resume", cwd=folder)
    assert again.returncode == 0 and "is complete" in again.stderr


def test_what_another_bench_measures_is_left_to_it(tmp_path: Path, probe_binary: str) -> None:
    plan = read_plan(_plan(tmp_path) / "plan.toml")
    plan = on_board(plan, "local")
    store = Store(tmp_path / "fastenough-data")
    store.begin({"campaign": "three-1", "plan_sha256": plan_sha256(plan, expand(plan)), "position": 0, "positions": 3})
    said = command_line("campaign", "resume", "plan.toml", cwd=tmp_path)
    assert said.returncode == 2 and "three-1 is being measured by another process" in said.stderr


def test_resume_says_what_there_is_not(tmp_path: Path, probe_binary: str) -> None:
    folder = _plan(tmp_path)
    (folder / "fastenough-data" / "runs").mkdir(parents=True)
    for words, complaint in (
        ((), "name the plan file"),
        (("plan.toml",), "no campaign of this plan"),
        (("plan.toml", "--booted", "rt"), "no such configuration in the plan"),
    ):
        said = command_line("campaign", "resume", *words, cwd=folder)
        assert said.returncode == 2 and complaint in said.stderr and said.stderr.count("\n") == 1
    for words, complaint in (((), "contains no campaign"), (("x",), "no campaign in")):
        said = command_line("campaign", "status", *words, cwd=folder)
        assert said.returncode == 2 and complaint in said.stderr and said.stderr.count("\n") == 1


def _stored(store: Store, *runs: tuple[int, str, str | None, str | None]) -> None:
    """Summaries as a campaign of five would have left them: position, state, outcome, reason."""
    for number, (position, state, outcome, reason) in enumerate(runs):
        summary = RunSummary(
            f"run-{number}",
            state,
            outcome,
            reason,
            campaign="five-1",
            position=position,
            positions=5,
            planned=("a", "b", "c", "d", "e"),
        )
        store._index.put([(summary, "")])


def test_every_state_is_told_with_its_reason(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _stored(
        store,
        (0, "cut-off", None, None),
        (0, "cut-off", None, None),
        (0, "ended", Outcome.COMPLETED, None),
        (1, "ended", Outcome.NOT_APPLICABLE, "no such tool"),
        (2, "ended", Outcome.FAILED, "the load died"),
        (3, "cut-off", None, None),
    )
    assert [
        (run.position, run.title, run.state, run.run, run.interrupted) for run in planned_runs(store, "five-1")
    ] == [
        (1, "a", "done", "run-2", 2),
        (2, "b", "not applicable", "run-3", 0),
        (3, "c", "failed", "run-4", 0),
        (4, "d", "interrupted", "run-5", 0),
        (5, "e", "open", None, 0),
    ]
    reasons = [run.reason for run in planned_runs(store, "five-1")]
    assert reasons[1:3] == ["no such tool", "the load died"] and "killed" in reasons[3] and not reasons[4]


@pytest.mark.slow
def test_what_is_changed_by_hand_needs_a_terminal(tmp_path: Path, probe_binary: str) -> None:
    """Nobody is asked twice, and the same kernel under another name is not believed."""
    folder = _plan(tmp_path, BY_HAND)
    said = command_line("campaign", "run", "plan.toml", cwd=folder)
    assert said.returncode == 2 and said.stderr.count("\n") == 1
    assert "local must be booted manually as stock, and there is no terminal" in said.stderr
    first = command_line("campaign", "run", "plan.toml", "--booted", "stock", cwd=folder)
    assert first.returncode == 2 and "campaign resume --booted rt" in first.stderr
    assert _states(folder) == ["done", "open"]
    same = command_line("campaign", "resume", "--booted", "rt", cwd=folder)
    assert same.returncode == 2 and "command line as stock" in same.stderr
    assert _states(folder) == ["done", "open"]
    _plan(tmp_path, BY_HAND, more=ANY_KERNEL)
    meant = command_line("campaign", "resume", "plan.toml", "--booted", "rt", cwd=folder)
    assert meant.returncode == 0, meant.stderr
    assert _states(folder) == ["done", "done"]
    [one, other] = [
        Store(folder / "fastenough-data").load(run["run"]).head.configuration for run in _status(folder)["runs"]
    ]
    assert isinstance(one, Configuration) and isinstance(other, Configuration)
    assert (one.name, other.name) == ("stock", "rt") and one.kernel_release == other.kernel_release


@pytest.mark.slow
def test_at_a_terminal_a_person_is_asked_until_it_fits(tmp_path: Path, probe_binary: str) -> None:
    folder = _plan(tmp_path, BY_HAND)
    with Terminal("campaign", "run", "plan.toml", cwd=folder, columns=200) as terminal:
        terminal.until(lambda said: "boot local as stock, then press Enter" in said)
        terminal.type("\n")
        terminal.until(lambda said: "boot local as rt, then press Enter" in said)
        terminal.type("\n")
        terminal.until(lambda said: said.count("boot local as rt, then press Enter") == 2)
        assert any("command line as stock" in line for line in screen(terminal.said))
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end()[0] == 130
    assert _states(folder) == ["done", "open"]


@pytest.mark.parametrize("where", ["campaign", "run"])
def test_the_machine_of_the_bench_is_not_rebooted(tmp_path: Path, probe_binary: str, where: str) -> None:
    folder = _plan(tmp_path, BY_HAND, more='[[configuration]]\nname = "rt"\nselect = ["true"]\n')
    words = ("campaign", "run", "plan.toml") if where == "campaign" else ("run", "--plan", "plan.toml")
    said = command_line(*words, cwd=folder)
    assert said.returncode == 2 and "does not reboot the machine" in said.stderr and said.stderr.count("\n") == 1
