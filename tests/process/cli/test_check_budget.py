# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough check`` with the baseline of a deterministic board: each path has a budget of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fastenough.analysis.gate import Budget, Growth, Limit
from fastenough.jobs.check import check
from fastenough.jobs.limits import Limits, read_limits
from fastenough.model import BadInput, Verdict
from fastenough.recording import Recording
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import command_line
from tests.support.deterministic_runs import COUNTED, PATH, one_interval
from tests.support.json_documents import require_valid
from tests.support.junit_rules import faults
from tests.support.recordings import PROFILE, Plan, RunFields, recording, write

LIMITS = '[[limit]]\nprobe = "timer"\nload = "none"\npath = "minimum"\nlonger-by = "100"\n'


def _run(folder: Path, name: str, longer: int = 0, load: str = "none", **profile: object) -> Recording:
    head = {"profile": COUNTED | profile}
    latencies = [value + longer for value in PATH]
    return recording(folder, Plan(one_interval(latencies), f"run-{name}", load=load, marks=("emulated",), head=head))


def _verdict(folder: Path, asked: Budget | Growth, runs: Sequence[Recording]) -> tuple[Verdict, str]:
    base, new = runs
    checked = check([new], [base], Limits((Limit("limit 1", asked),)), Store(folder / "store"))
    assert checked.verdict is checked.limits[0].verdict
    return checked.verdict, checked.limits[0].reason


@pytest.mark.parametrize(
    ("budget", "longer", "verdict"),
    [
        (Budget("minimum", 320), 320, Verdict.PASS),
        (Budget("minimum", 319), 320, Verdict.FAIL),
        (Budget("minimum", 0), 0, Verdict.PASS),
        (Budget("minimum", 0), -16, Verdict.PASS),
        (Budget("minimum", more_share=0.08), 320, Verdict.PASS),
        (Budget("minimum", more_share=0.07), 320, Verdict.FAIL),
        (Budget("maximum", more_share=0.07), 320, Verdict.PASS),
    ],
)
def test_a_path_is_within_its_budget_or_not(tmp_path: Path, budget: Budget, longer: int, verdict: Verdict) -> None:
    found, reason = _verdict(tmp_path, budget, (_run(tmp_path, "1"), _run(tmp_path, "2", longer)))
    assert found is verdict
    if longer == 320:
        assert "+320 instructions (+7.0 %)" in reason or budget.figure == "maximum"


def test_what_has_no_path_is_undecided(tmp_path: Path) -> None:
    loaded = _run(tmp_path, "1", load="cpu"), _run(tmp_path, "2", load="cpu")
    assert _verdict(tmp_path, Budget("minimum", 9_999), loaded)[0] is Verdict.INCONCLUSIVE
    idle = _run(tmp_path, "3"), _run(tmp_path, "4")
    assert _verdict(tmp_path, Growth(0.5, more_ns=9e9), idle)[0] is Verdict.INCONCLUSIVE
    plain = [recording(tmp_path, Plan(one_interval(PATH), f"run-{name}", head={"profile": PROFILE})) for name in "56"]
    assert _verdict(tmp_path, Budget("minimum", 9_999), plain)[0] is Verdict.INCONCLUSIVE


def test_a_run_that_cannot_be_trusted_is_within_no_budget(tmp_path: Path) -> None:
    lost = Plan(one_interval(PATH), "run-2", marks=("emulated",), head={"profile": COUNTED}, lost=3)
    runs = _run(tmp_path, "1"), recording(tmp_path, lost)
    assert _verdict(tmp_path, Budget("minimum", 9_999), runs)[0] is Verdict.BROKEN


@pytest.mark.untimed
def test_the_gate_names_the_instructions(tmp_path: Path) -> None:
    store, head = Store(tmp_path / "fastenough-data"), {"profile": COUNTED}
    more: RunFields = {"marks": ("emulated",), "head": head}
    write(tmp_path / "base.jsonl", Plan(one_interval(PATH), "base", marks=("emulated",), head=head))
    run = keep(store, tmp_path / "scratch", values=one_interval([value + 320 for value in PATH]), **more)
    (tmp_path / "limits.toml").write_text(LIMITS)
    words = ["check", run, "--baseline", "base.jsonl", "--limits", "limits.toml", "--junit", "check.xml"]
    done = command_line(*words, "--markdown", "check.md", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    document = require_valid("check", done.stdout)
    assert document["verdict"] == "FAIL"
    assert document["paths"][0]["figures"][0]["difference"] == 320 and document["comparisons"] == []
    content = (tmp_path / "check.xml").read_bytes()
    assert not faults(content) and ElementTree.fromstring(content).find(".//failure") is not None
    assert "+320 instructions" in (tmp_path / "check.md").read_text()
    (tmp_path / "limits.toml").write_text(LIMITS.replace("100", "320"))
    passed = command_line(*words, cwd=tmp_path)
    assert passed.returncode == 0 and "no caches" in passed.stdout and "+320 instructions (+7.0 %)" in passed.stdout


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ('path = "minimum"\nlonger-by = "100"', Budget("minimum", 100)),
        ('path = "mean"\nlonger-by = "2%"', Budget("mean", more_share=0.02)),
        ('path = "p99"\nlonger-by = "2%"', "minimum, median, mean, maximum"),
        ('path = "mean"\nlonger-by = "5us"', "number of instructions"),
        ('path = "mean"\nlonger-by = "-1"', "number of instructions"),
        ('path = "mean"', "longer-by is missing"),
        ('longer-by = "2%"', "path is missing"),
        ('path = "mean"\nlonger-by = "2%"\nconfidence = "99%"', "unknown key 'confidence'"),
    ],
)
def test_budgets_are_read_from_the_file(tmp_path: Path, text: str, budget: Budget | str) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(f"[[limit]]\n{text}\n")
    if isinstance(budget, Budget):
        assert read_limits(path).limits[0].criterion == budget
        return
    with pytest.raises(BadInput, match=budget):
        read_limits(path)
