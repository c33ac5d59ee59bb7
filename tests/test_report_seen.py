# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as it is seen: on a desk, on a telephone, in the dark, on paper, and by a screen reader."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import faults_of, found_in, printed
from recordings import Plan, latencies, recording

from fastenough.analysis import judge
from fastenough.model import Requirement
from fastenough.report import write_report

LOADS = ("none", "cpu", "io", "vm", "hdd", "full")
_PLACES = """
const at = name => { const e = document.querySelector(name); return e ? e.getBoundingClientRect() : null };
const root = document.documentElement;
return {table: at("#table-overview"), figure: at("#figure-overview svg"), page: root.scrollWidth,
        width: root.clientWidth, right: Math.max(...[...document.querySelectorAll("section .half svg")].map(
            e => e.getBoundingClientRect().right))}"""
_COLOURS = """
const said = name => getComputedStyle(document.querySelector(name));
return {paper: said("body").backgroundColor, ink: said("h1").color,
        ground: said("#figure-overview svg path").fill, text: said("#figure-overview svg text").fill}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six loads; one of them with missed periods, with events and their culprits."""
    folder = tmp_path_factory.mktemp("seen")
    runs = [recording(folder, Plan(latencies(seed, intervals=6, per_interval=500), run_id=f"run-{load}", load=load,
                                   events=({"kind": "max", "series": 1, "value": 3_000, "culprit": {"comm": "dd"}},)))
            for seed, load in enumerate(LOADS)]
    write_report(runs, judge(runs, Requirement(200_000)), folder / "report")
    return folder / "report" / "index.html"


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (800, 1300), (390, 1500)])
def test_the_first_screen_has_table_and_figure(page: Path, tmp_path: Path, width: int, height: int) -> None:
    seen = found_in(page, tmp_path, _PLACES, width=width, height=height)
    assert 0 < seen["table"]["top"] < seen["table"]["bottom"] <= height
    assert 0 < seen["figure"]["top"] < seen["figure"]["bottom"] <= height
    assert seen["page"] <= seen["width"] and seen["right"] <= seen["width"]


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (800, True), (390, False)])
def test_axe_finds_nothing(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    assert faults_of(page, tmp_path, width=width, dark=dark) == []


def test_axe_finds_nothing_in_a_broken_experiment(tmp_path: Path) -> None:
    """With the tables of an instrument, with what failed, and with what is folded."""
    runs = [recording(tmp_path, Plan([[values]], run_id=name, views=("response",), outcome=outcome, reasons=("broke",),
                                     series={"labels": {"edge": "falling"}},
                                     head={"probe": "response", "configuration": name, "instrument": {"name": "uno"}}))
            for name, values, outcome in (("stock", np.arange(5000, 9000), "completed"),
                                          ("rt", np.arange(4000, 5000), "failed"))]
    write_report(runs, judge(runs), tmp_path / "report")
    assert faults_of(tmp_path / "report" / "index.html", tmp_path, width=1280, dark=False) == []


def test_axe_would_find_something(page: Path, tmp_path: Path) -> None:
    """So that nothing found means that it looked."""
    (tmp_path / "spoilt.html").write_text(
        page.read_text().replace("<h2>", "<h4>").replace("</h2>", "</h4>").replace(' role="img"', ' role="nothing"'))
    found = {fault.partition(":")[0] for fault in faults_of(tmp_path / "spoilt.html", tmp_path, width=1280, dark=False)}
    assert {"heading-order", "aria-roles"} <= found


def _brightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_the_dark_page_has_dark_figures(page: Path, tmp_path: Path) -> None:
    light, dark = (found_in(page, tmp_path, _COLOURS, dark=dark) for dark in (False, True))
    for part in ("paper", "ground"):
        assert _brightness(light[part]) > 200 and _brightness(dark[part]) < 60, (part, light, dark)
    for part in ("ink", "text"):
        assert _brightness(light[part]) < 60 and _brightness(dark[part]) > 180, (part, light, dark)


def test_on_paper_each_page_says_which_run_and_which_page(page: Path, tmp_path: Path) -> None:
    pages = printed(page, tmp_path)
    assert len(pages) > 2
    for number, text in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in text
        assert "6 runs, run-none to run-full" in text
    for heading in re.findall(r"<h2>(.*?)</h2>", page.read_text()):
        holding = [text for text in pages if heading in text]
        assert holding, heading
        assert not [text for text in holding if text.rstrip().splitlines()[-2].strip() == heading], "alone at the foot"
    assert "of the data found nothing" in " ".join(pages), "what is folded keeps its heading"


HOSTILE = 'x"; } body { display: none } @bottom-left { content: "</style><script>alert(1)</script>\\'


def test_a_run_id_cannot_leave_the_style_sheet(tmp_path: Path) -> None:
    one: Any = recording(tmp_path, Plan([[np.array([5000, 6000])]]))
    object.__setattr__(one.head, "run_id", HOSTILE)
    write_report([one], judge([one]), tmp_path / "report")
    source = (tmp_path / "report" / "index.html").read_text()
    style = source[source.index("<style>"):source.index("</style>")]
    assert "run x" in style and "display: none }" not in style.replace("nav, .files { display: none; }", "")
    assert "<script" not in source
