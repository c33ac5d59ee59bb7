# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told of a hunt: each trial is counted where it belongs, and who delays under what was found is named."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import judge, words
from fastenough.board.local import LocalBoard
from fastenough.campaign import Entry, Plan
from fastenough.hunt.phases import CONFIRMATION_TURNS
from fastenough.hunt.recipes import description_of
from fastenough.hunt.search import Search
from fastenough.hunt.trials import Phase
from fastenough.jobs.hunt_report import cause_sentence, monitor_load, with_all_trials
from fastenough.loads import Expectation, Load
from fastenough.recording.culprits import UNKNOWN
from fastenough.report.conclusions import hunt_section
from fastenough.report.document import Preformatted, ReportTable, Section
from fastenough.store import Store
from tests.support.hunt_machines import Kind, Machine, searched
from tests.support.recordings import Plan as Recorded
from tests.support.recordings import recording

pytestmark = pytest.mark.untimed

HOG = (
    "chrt",
    "-f",
    "95",
    "taskset",
    "-c",
    "0",
    "sh",
    "-c",
    "while :; do turn=0; while [ $turn -lt 50000 ]; do turn=$((turn + 1)); done; sleep 0.2; done",
)


def _tables(section: Section) -> dict[str, ReportTable]:
    return {leaf.name: leaf for leaf in section.leaves() if isinstance(leaf, ReportTable)}


def test_each_trial_is_told_where_it_belongs() -> None:
    search, made = searched()
    section = hunt_section(search, made, "something was found", 'name = "hunt-1"\n', "who it was")
    tables = _tables(section)
    phases = {row[0]: (row[1], row[2]) for row in tables["hunt-phases"].rows}
    assert sum(trials for trials, _ in phases.values()) == len(made)
    assert sum(failed for _, failed in phases.values()) == sum(not one.block_maxima_ns for one in made) > 0
    assert phases[Phase.HALVING][0] == sum(row[1] for row in tables["hunt-halving"].rows)
    assert phases[Phase.FIXED][0] == sum(row[1] for row in tables["hunt-fixed"].rows)
    found = search.result or search.unreduced
    assert found is not None
    assert description_of(search.space, found.recipe) in {row[0] for row in tables["hunt-confirming"].rows}
    told = [row[3:] for table in tables.values() if len(table.columns) == 6 for row in table.rows if row[3] is not None]
    assert told and all(least <= mean <= greatest for least, mean, greatest in told)
    assert [leaf.text for leaf in section.leaves() if isinstance(leaf, Preformatted)] == ['name = "hunt-1"\n']


def test_where_nothing_was_found_no_recipe_is_told() -> None:
    space = Machine(Kind(), 1).space
    section = hunt_section(Search(space, ("none",), CONFIRMATION_TURNS, random.Random(1)), [], "nothing", "", "")
    assert list(_tables(section)) == ["hunt-phases"] and not any(
        isinstance(one, Preformatted) for one in section.leaves()
    )


def test_the_headline_names_the_maximum_of_all_trials(tmp_path: Path) -> None:
    _, made = searched()
    greatest_ns = max(max(trial.block_maxima_ns) for trial in made if trial.block_maxima_ns)
    calm, worse = (
        judge([recording(tmp_path, Recorded([[np.array([5_000] * 999 + [at])] * 12]))])
        for at in (5_001, greatest_ns + 1)
    )
    assert words.latency(greatest_ns) in with_all_trials(calm, made).headline
    assert with_all_trials(worse, made) == worse and with_all_trials(calm, []) == calm


def test_one_outlier_is_not_the_cause_of_the_others() -> None:
    often, once = [("task often", 1_000_000)] * 18, [("task once", 90_000_000)]
    said = cause_sentence([*often, *once, (UNKNOWN, 1_000_000)])
    assert said.startswith("task often is blamed for 18 of the 20 ") and "17 % of their time" in said
    assert said.partition("; the largest share of the time is due to ")[2].startswith("task once: 1 of them, and 83 %")
    assert "largest share" not in cause_sentence([*often, ("task once", 1)])
    assert not cause_sentence([(UNKNOWN, 5)]) and not cause_sentence([])


@pytest.mark.matrix
def test_the_culprit_under_what_was_found_is_named(tmp_path: Path, probe_binary: Path) -> None:
    hog = Load("hog", "a task above the probe's priority", ("chrt", "taskset"), (HOG,), Expectation(cpu_share=0.001))
    entry = Entry("timer", ("none",), 1.0, {"interval": ("1ms",), "affinity": ("0",), "priority": (80,)})
    plan = Plan("hunt", (entry,), boards=("local",))
    watched = monitor_load(
        plan, hog, Store(tmp_path / "store"), lambda progress: None, opened=lambda name: LocalBoard()
    )
    assert re.search(r"\btask sh( is blamed for|: \d+ of them)", watched.cause), (
        "by count, or by time where others disturb it too"
    )
    assert watched.cause in watched.load.source
    assert len(watched.runs) == 2
