# SPDX-License-Identifier: GPL-2.0-or-later
"""``compare`` of deterministic boards: in instructions, a campaign as the set of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.analysis.instructions import LEAST_PHASES, TOO_FEW_PHASES
from fastenough.analysis.machine import INSTRUCTIONS
from fastenough.campaign import Campaign, Entry, Plan
from fastenough.cli.ab_deterministic import print_result
from fastenough.jobs.ab import AbTest
from fastenough.jobs.ab_deterministic import AbSets
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import command_line
from tests.support.deterministic_runs import COUNTED, PATH, one_interval
from tests.support.json_documents import require_valid

pytestmark = pytest.mark.untimed


def _keep(home: Path, latencies: Sequence[int], load: str = "none", campaign: str = "", phase_ns: int = 0) -> str:
    head = {"profile": COUNTED} | ({"phase_ns": phase_ns} if phase_ns else {})
    origin: dict[str, object] = {"campaign": campaign} if campaign else {}
    store, values = Store(home / "fastenough-data"), one_interval(latencies)
    return keep(store, home / "scratch", origin=origin, values=values, load=load, marks=("emulated",), head=head)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns of phases under load, the second with greater maxima."""
    home = tmp_path_factory.mktemp("phases")
    for campaign, more in (("a-1", 0), ("b-1", 5_000)):
        for phase in range(1, LEAST_PHASES + 1):
            _keep(home, [5_000, 40_000 + more + 100 * (phase % 7)], "cpu", campaign, phase)
    return home


def test_campaigns_are_compared_as_sets_of_phases(home: Path) -> None:
    document = require_valid("compare", command_line("compare", "a-1", "b-1", "--json", cwd=home).stdout)
    (maxima,) = document["maxima"]
    assert maxima["difference"] == 5_000 and maxima["significant"] and len(maxima["maxima"][0]) == LEAST_PHASES
    assert document["comparisons"] == document["paths"] == []
    said = command_line("compare", "a-1", "b-1", cwd=home).stdout
    assert "mean maximum of a phase greater (+5,000 instructions" in said and "no caches" in said


def test_single_runs_under_load_state_why_nothing_is_stated(home: Path) -> None:
    run = Store(home / "fastenough-data").runs(campaign="b-1")[0].id
    done = command_line("compare", "a-1", run, cwd=home)
    assert done.returncode == 0 and TOO_FEW_PHASES in " ".join(done.stdout.split())


def test_paths_are_compared_exactly(tmp_path: Path) -> None:
    base, other = _keep(tmp_path, PATH), _keep(tmp_path, [value + 16 for value in PATH])
    done = command_line("compare", base, other, cwd=tmp_path)
    assert "minimum +16 instructions (+0.4 %)" in done.stdout
    refused = command_line("compare", base, other, "--limit", "1ms", cwd=tmp_path)
    assert refused.returncode == 2


def test_sets_that_differ_in_more_than_their_phase_are_refused(tmp_path: Path) -> None:
    for load in ("none", "cpu"):
        _keep(tmp_path, PATH, load, "mixed-1")
    run = _keep(tmp_path, PATH)
    done = command_line("compare", "mixed-1", run, cwd=tmp_path)
    assert done.returncode == 2 and "differ in more than their phase" in done.stderr


def test_campaigns_of_other_boards_are_refused(tmp_path: Path) -> None:
    store, scratch = Store(tmp_path / "fastenough-data"), tmp_path / "scratch"
    for _ in range(2):
        keep(store, scratch, origin={"campaign": "plain-1"}, values=one_interval(PATH))
    done = command_line("compare", "plain-1", keep(store, scratch, values=one_interval(PATH)), cwd=tmp_path)
    assert done.returncode == 2 and "plain-1 is a campaign" in done.stderr


def test_a_test_of_a_change_has_the_caveats_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = _keep(tmp_path, PATH), _keep(tmp_path, PATH)
    sets = AbSets(*(Campaign(f"{run}-1", (run,), False) for run in runs))
    trial = AbTest(Plan("ab", (Entry("timer", ("none",), 1.0),)), {"swappiness": "1"}, 3)
    for as_json in (False, True):
        print_result(trial, sets, Store(tmp_path / "fastenough-data"), as_json)
    text, _, document = capsys.readouterr().out.partition("{")
    assert INSTRUCTIONS in require_valid("ab", "{" + document)["cautions"] and INSTRUCTIONS in " ".join(text.split())
