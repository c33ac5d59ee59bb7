# SPDX-License-Identifier: GPL-2.0-or-later
"""Who looks again until it passes is judged more strictly each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from recordings import Plan, recording

from fastenough.analysis import judge
from fastenough.jobs.assess import Question, judge_and_report
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.building import Added, completed_head
from fastenough.store import Store
from fastenough.store.looks import LOOKS_FILE

LIMIT = Requirement(200_000)


def test_looks_are_counted_until_one_passes(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number, verdict in enumerate((Verdict.INCONCLUSIVE, Verdict.BROKEN, Verdict.FAIL, Verdict.PASS)):
        assert store.looks_before("question", [f"run-{number}"]) == (0, 1, 1, 2)[number]
        store.note_look("question", [f"run-{number}"], verdict)
    assert store.looks_before("question", ["later"]) == 0, "a pass ends the question"
    assert store.looks_before("question", ["run-3"]) == 2, "the same runs judged again are the same look"
    assert store.looks_before("another", ["run-9"]) == 0
    assert Store(store.path).looks_before("question", ["run-2"]) == 1, "it is on disk"


def test_what_is_no_look_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.note_look("question", ["a"], Verdict.FAIL)
    with (store.path / LOOKS_FILE).open("ab") as stream:
        stream.write(b'rubbish\n[1]\n{"question": 5}\n')
    assert store.looks_before("question", ["b"]) == 1
    (store.path / LOOKS_FILE).unlink()
    (store.path / LOOKS_FILE).symlink_to("/etc/passwd")
    assert store.looks_before("question", ["b"]) == 0
    store.note_look("question", ["b"], Verdict.FAIL)


def _run(folder: Path, run_id: str, seconds: int) -> Recording:
    return recording(folder, Plan([[np.full(1000, 5000)] * seconds], run_id=run_id, views=("wakeup_corrected",)))


def test_a_further_look_needs_more_and_says_so(tmp_path: Path) -> None:
    store, question = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    short, long = _run(tmp_path, "short", 12), _run(tmp_path, "long", 17)
    first = judge_and_report([short], question, store, tmp_path / "report").assessment
    second = judge_and_report([long], question, store, tmp_path / "report").assessment
    assert judge([long], LIMIT).verdict is Verdict.PASS, "17 s would have been enough at the first look"
    assert (first.verdict, second.verdict) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    assert "97.5 %" in " ".join(second.cautions) and "97.5 %" in " ".join(second.reasons)
    other = Question(replace(LIMIT, limit_ns=300_000), 0.95)
    assert judge_and_report([long], other, store, tmp_path / "report").assessment.verdict is Verdict.PASS


def test_the_bench_says_in_the_head_how_much_was_planned() -> None:
    line = {"series": [{"period_ns": 1_000_000}, {}], "parameters": {}, "settings": [], "marks": []}
    assert completed_head(line, "id", Added(planned_ns=10**10))["planned_n"] == 10_000
    assert "planned_n" not in completed_head(line | {"parameters": {"loops": 5}}, "id", Added(planned_ns=10**10))
    assert "planned_n" not in completed_head(line | {"series": [{}]}, "id", Added(planned_ns=10**10))
