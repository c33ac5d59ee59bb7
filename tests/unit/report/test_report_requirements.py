# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of one kind with several requirements: the report shows each with its verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import Assessment, judge
from fastenough.analysis.excluded_runs import ExcludedRuns, Exclusion, Selection, judged_without
from fastenough.cli.assess import requirement_lines
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.report import write_report
from tests.support.recordings import Plan, latencies, recording

pytestmark = pytest.mark.check

SHORT_NS, LONG_NS = 20_000, 900_000


def runs_of(folder: Path, *limits_ns: int, **fields: Any) -> list[Recording]:
    """Runs of one kind, each with its own requirement."""
    return [
        recording(
            folder,
            Plan(
                latencies(place),
                run_id=f"run-{place}",
                begin_ns=place * 10**12,
                head={"requirement": {"limit_ns": limit_ns, "miss_rate": 0.0, "confidence": 0.95, **fields}},
            ),
        )
        for place, limit_ns in enumerate(limits_ns)
    ]


def verdicts(assessment: Assessment) -> dict[int, Verdict]:
    return {result.requirement.limit_ns: result.verdict for result in assessment.requirement_results}


def test_each_requirement_is_shown_with_its_verdict(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, SHORT_NS, LONG_NS)
    assessment = judge(runs)
    assert assessment.verdict is Verdict.FAIL
    write_report(runs, assessment, tmp_path / "report")
    tables = json.loads((tmp_path / "report" / "report.json").read_text())["tables"]
    shown = [tuple(row[:2]) for row in tables["requirements"]["rows"][1:]]
    assert shown == [("20 µs, no misses", "FAIL"), ("900 µs, no misses", "PASS")], "the worst first"
    header, row = tables["overview"]["rows"]
    assert {"above 20 µs", "above 900 µs"} <= set(header)
    above = [judgment.exceeded for judgment in assessment.judgments]
    assert [row[header.index("above 20 µs")], row[header.index("above 900 µs")]] == above and above[1] == 0 < above[0]
    page = (tmp_path / "report" / "index.html").read_text()
    assert page.index('id="table-requirements"') < page.index('id="table-overview"')
    assert set(re.findall(r"limit (\d+) µs", page)) >= {"20", "900"}, "reasons and figures name both limits"
    assert {entry[1] for entry in tables["shown"]["rows"][1:]} == {"20 µs, no misses", "900 µs, no misses"}
    assert requirement_lines(assessment) == ["20 µs, no misses: FAIL", "900 µs, no misses: PASS"]


def test_a_limit_of_other_runs_is_not_required_of_a_run(tmp_path: Path) -> None:
    """Runs under load none have two limits, so that each limit has a column; one under load cpu has a third."""
    requirement = {"limit_ns": 500_000, "miss_rate": 0.0, "confidence": 0.95}
    cpu = Plan(latencies(7), run_id="cpu", load="cpu", begin_ns=10**13, head={"requirement": requirement})
    runs = [*runs_of(tmp_path, SHORT_NS, LONG_NS), recording(tmp_path, cpu)]
    write_report(runs, judge(runs), tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert page.count("not required") == 3 and "no limit" not in page


def test_a_single_requirement_has_no_list(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, LONG_NS)
    assessment = judge(runs)
    write_report(runs, assessment, tmp_path / "report")
    assert assessment.requirement_results == () and requirement_lines(assessment) == []
    assert "table-requirements" not in (tmp_path / "report" / "index.html").read_text()


def test_requirements_with_one_limit_have_distinct_names(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, LONG_NS, LONG_NS)
    rare = recording(
        tmp_path,
        Plan(
            latencies(7),
            run_id="rare",
            head={"requirement": {"limit_ns": LONG_NS, "miss_rate": 0.01, "confidence": 0.95}},
        ),
    )
    lines = requirement_lines(judge([*runs, rare]))
    assert [line.rpartition(": ")[0] for line in lines] == ["900 µs, no misses", "900 µs, miss rate at most 1 in 100"]


def test_missing_runs_leave_no_requirement_passed(tmp_path: Path) -> None:
    assessment = judge(runs_of(tmp_path, SHORT_NS, LONG_NS), missing=["timer under load cpu"])
    assert verdicts(assessment) == {SHORT_NS: Verdict.FAIL, LONG_NS: Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("selection", "agree", "expected"),
    [
        (Selection.CAMPAIGN, True, (Verdict.FAIL, Verdict.INCONCLUSIVE)),
        (Selection.CAMPAIGN, False, (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)),
        (Selection.ONLY_THESE, True, (Verdict.FAIL, Verdict.PASS)),
    ],
)
def test_excluded_runs_leave_no_requirement_passed(
    tmp_path: Path, selection: Selection, agree: bool, expected: tuple[Verdict, Verdict]
) -> None:
    others = (ExcludedRuns("other", 1000, 1, 1e6, True, LONG_NS),)
    alone = judge(runs_of(tmp_path, SHORT_NS, LONG_NS))
    exclusion = Exclusion(others, agree, alone.requirement_results[:1] if agree else ())
    assessment = judged_without(alone, exclusion, selection)
    assert tuple(verdicts(assessment).values()) == expected
    withdrawn = [reason for reason in assessment.reasons if "withdrawn" in reason]
    changed = [before for before, now in zip(alone.requirement_results, expected, strict=True) if before.verdict != now]
    assert [f"{before.verdict} withdrawn" in reason for before, reason in zip(changed, withdrawn, strict=True)] == [
        True
    ] * len(changed)
    assert len(set(assessment.next_steps)) == len(assessment.next_steps) and bool(assessment.next_steps) == bool(
        changed
    )


def test_a_failure_does_not_hide_what_another_requirement_lacks(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, SHORT_NS, LONG_NS, return_time_ns=10**15)
    assessment = judge(runs)
    assert verdicts(assessment) == {SHORT_NS: Verdict.FAIL, LONG_NS: Verdict.INCONCLUSIVE}
    assert any("limit 900 µs" in reason for reason in assessment.reasons)
    assert any("limit 900 µs" in step for step in assessment.next_steps)
    assert not any("limit 20 µs" in step for step in assessment.next_steps)
    alone = [replace(run, head=replace(run.head, requirement=runs[0].head.requirement)) for run in runs]
    assert judge(alone).next_steps == (), "none after a failure"
