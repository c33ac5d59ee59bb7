# SPDX-License-Identifier: GPL-2.0-or-later
"""Costs of paths: their figures, their place in store and report, and runs that are not compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import MixedRuns, judge
from fastenough.analysis.costs import COUNTED, CostFigures, cost_figures, read_costs
from fastenough.analysis.instructions import compare_instructions
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Recording
from fastenough.recording.content import COSTS_FILE
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections.costs import section
from fastenough.store import Store
from tests.support.deterministic_runs import COUNTED as BOARD
from tests.support.deterministic_runs import EMULATOR, PATH, one_interval
from tests.support.recordings import Plan, recording, write

MODEL = "cache: L1 data 32768:4:64 LRU"
COSTS = b"100,7,5\n300,9,1\n200,8,3\n400,8,2\n"
FIGURES = [(COUNTED[0], 4, 100, 200, 300), (COUNTED[1], 4, 7, 8, 8), (COUNTED[2], 4, 1, 2, 3)]


def _run(tmp_path: Path, cost_model: str | None) -> Recording:
    profile: dict[str, Any] = BOARD
    if cost_model is not None:
        profile = BOARD | {"emulator": EMULATOR | {"cost_model": cost_model}}
    return recording(tmp_path, Plan(one_interval(PATH), "run-0", marks=("emulated",), head={"profile": profile}))


def test_figures_of_all_paths() -> None:
    assert list(cost_figures([COSTS])) == [CostFigures(*figures) for figures in FIGURES]
    both = cost_figures([COSTS, b"500,1,0\n"])
    assert [(each.paths, each.median, each.upper_quartile) for each in both] == [(5, 300, 400), (5, 8, 8), (5, 2, 3)]
    assert not cost_figures([b""])


@pytest.mark.parametrize("content", [b"1,2\n", b"1,2,3,4\n", b"1,2,-3\n", b"1,2,x\n", b"\xff\n", b"1,2,3.5\n", b"\n"])
def test_what_no_cost_model_writes_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match=COSTS_FILE):
        read_costs(content)


@pytest.mark.parametrize(("first", "second"), [(None, MODEL), (MODEL, None), (MODEL, MODEL.replace("4:64", "2:64"))])
def test_runs_of_different_models_are_not_compared(tmp_path: Path, first: str | None, second: str | None) -> None:
    runs = [_run(tmp_path, model) for model in (first, second)]
    with pytest.raises(MixedRuns, match="cost model"):
        compare_instructions(runs[:1], runs[1:])
    compare_instructions(runs[:1], [_run(tmp_path, first)])


def test_a_report_has_the_figures_and_names_the_model(tmp_path: Path) -> None:
    run = _run(tmp_path, MODEL)
    assert section(make_context([run], judge([run]))) is None
    run = replace(run, costs=lambda: COSTS)
    shown = section(make_context([run], judge([run])))
    assert shown is not None
    (table,) = shown.parts
    assert isinstance(table, ReportTable)
    assert [tuple(row[1:]) for row in table.rows] == FIGURES
    assert MODEL in table.note


def test_costs_are_stored_with_the_recording_and_checked(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    writer = store.begin()
    for line in write(tmp_path / "run.jsonl", Plan(one_interval(PATH), writer.id)).read_bytes().splitlines(True):
        writer.line(line)
    writer.attach(COSTS_FILE, COSTS)
    writer.end()
    loaded = store.load(writer.id)
    assert loaded.costs is not None and loaded.costs() == COSTS and loaded.trace is None
    path = store.path / "runs" / writer.id / COSTS_FILE
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(FastenoughError, match=COSTS_FILE):
        loaded.costs()
