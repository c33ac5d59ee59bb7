# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's report: its question and the answer first, then evidence, details and appendix."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.campaign import parse_plan
from fastenough.model import Requirement
from fastenough.recording import Recording
from fastenough.report import write_report
from fastenough.report.context import Note, note_of
from tests.support.browser import faults_of, found_in
from tests.support.recordings import Plan as Recorded
from tests.support.recordings import latencies, recording

pytestmark = pytest.mark.untimed

LOADS = ("none", "cpu", "io", "vm", "hdd", "full")
PLAN = """
name = "matrix"
title = "Worst-case latency under six loads"
question = "Is this board <fast> enough for 200 µs, & under which load is it worst?"
loads = ["none", "cpu", "io", "vm", "hdd", "full"]
[settings]
rt-throttling = -1
[[run]]
probe = "timer"
parameters = {interval = "1ms"}
requirement = {limit = "200us"}
"""
_SEEN = """
const at = name => document.querySelector(name).getBoundingClientRect(), root = document.documentElement;
return {question: at("#question").bottom, word: at(".verdict .word").bottom, table: at("#table-overview").bottom,
        figure: at("#figure-overview svg").bottom, page: root.scrollWidth, width: root.clientWidth,
        order: [...document.querySelectorAll(".part")].map(e => e.getBoundingClientRect().top)}"""


def _note(text: str = PLAN) -> Note:
    return note_of("matrix-20260101T000000Z-abcd", parse_plan(text.encode(), "this test"))


def _runs(folder: Path) -> list[Recording]:
    return [
        recording(folder, Recorded(latencies(seed, intervals=6, per_interval=500), run_id=f"run-{load}", load=load))
        for seed, load in enumerate(LOADS)
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("note")
    runs = _runs(folder)
    write_report(runs, judge(runs, Requirement(200_000)), folder / "report", note=_note())
    return folder / "report" / "index.html"


@pytest.mark.slow
def test_the_parts_come_in_their_order(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r'class="part" id="part-([a-z-]+)"', text) == ["evidence", "details", "appendix"]
    assert "<h1>Worst-case latency under six loads</h1>" in text
    assert "Is this board &lt;fast&gt; enough for 200 µs, &amp; under which load is it worst?" in text
    places = [
        text.index(mark)
        for mark in (
            'id="question"',
            "Next steps",
            'id="percentiles"',
            'id="checks"',
            'id="planned"',
            'id="runs"',
            'id="plan"',
        )
    ]
    assert places == sorted(places)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_headings_go_down_one_by_one(page: Path) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])\b", page.read_text())]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_what_was_planned_and_the_plan_itself_are_in_it(page: Path) -> None:
    text = page.read_text()
    for said in (
        "timer interval=1ms",
        "200 µs, no misses",
        "rt-throttling = -1",
        "table A.2",
        "requirement = {limit = &#34;200us&#34;}",
    ):
        assert said in text, said
    said = json.loads((page.parent / "report.json").read_text())["campaign"]
    assert said["question"].startswith("Is this board <fast>")


def test_without_a_question_it_asks_what_was_measured() -> None:
    text = "\n".join(line for line in PLAN.splitlines() if not line.startswith(("title", "question")))
    assert _note(text).title == "matrix"
    assert _note(text).question == "What is the latency measured by timer under the loads none, cpu, io, vm, hdd, full?"


@pytest.mark.slow
def test_who_states_no_limit_is_told_how_to(tmp_path: Path) -> None:
    runs = _runs(tmp_path)
    write_report(runs, judge(runs), tmp_path / "report", note=_note())
    summary = (tmp_path / "report" / "index.html").read_text().partition('id="part-')[0]
    assert "requirement = {limit = " in summary.partition("Next steps")[2]


@pytest.mark.slow
def test_other_reports_have_no_question(tmp_path: Path) -> None:
    runs = _runs(tmp_path)
    write_report(runs, judge(runs), tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    assert 'id="question"' not in text and "requirement = {limit = " not in text and "<h2" in text


@pytest.mark.parametrize(("width", "height"), [(1400, 1000), (390, 1700)])
def test_question_and_answer_are_on_the_first_screen(page: Path, tmp_path: Path, width: int, height: int) -> None:
    seen = found_in(page, tmp_path, _SEEN, width=width, height=height)
    assert 0 < seen["question"] < seen["word"] < seen["table"] <= height
    assert seen["figure"] <= height
    assert seen["page"] <= seen["width"]
    assert seen["order"] == sorted(seen["order"])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1400, True), (390, False)])
def test_axe_finds_nothing(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    assert faults_of(page, tmp_path, width=width, dark=dark) == []
