# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as it is seen: on a desk, on a telephone, in the dark, on paper, and by a screen reader."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.model import Requirement
from fastenough.report import write_report
from tests.support.browser import faults_of, found_in, printed
from tests.support.recordings import Plan, latencies, recording
from tests.support.tools import ROOT, require

pytestmark = pytest.mark.untimed

LOADS = ("none", "cpu", "io", "vm", "hdd", "full")
_PLACES = """
const at = name => { const e = document.querySelector(name); return e ? e.getBoundingClientRect() : null };
const root = document.documentElement;
return {table: at("#table-overview"), figure: at("#figure-overview svg"), page: root.scrollWidth,
        width: root.clientWidth, moved: Math.max(...[...document.querySelectorAll(".answer .scroll")].map(
            e => e.scrollWidth - e.clientWidth)),
        apart: Math.min(...[...document.querySelectorAll("#table-overview tr")].map(row => {
            const [left, last] = [...row.cells].slice(-2).map(cell => {
                const text = document.createRange();
                text.selectNodeContents(cell);
                return text.getBoundingClientRect() });
            return last.left - left.right })),
        parted: [...document.querySelectorAll("span.short")].filter(e => e.getClientRects().length > 1).length,
        options: document.querySelectorAll("span.short").length,
        right: Math.max(...[...document.querySelectorAll("section .half svg")].map(
            e => e.getBoundingClientRect().right))}"""
_COLOURS = """
const said = name => getComputedStyle(document.querySelector(name));
return {paper: said("body").backgroundColor, ink: said("h1").color,
        ground: said("#figure-overview svg path").fill, text: said("#figure-overview svg text").fill}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six loads; one of them with missed periods, with events and their culprits."""
    folder = tmp_path_factory.mktemp("seen")
    runs = [
        recording(
            folder,
            Plan(
                latencies(seed, intervals=6, per_interval=500),
                run_id=f"run-{load}",
                load=load,
                events=({"kind": "max", "series": 1, "value": 3_000, "culprit": {"comm": "dd"}},),
            ),
        )
        for seed, load in enumerate(LOADS)
    ]
    write_report(runs, judge(runs, Requirement(200_000)), folder / "report")
    return folder / "report" / "index.html"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (800, 1300), (390, 1500)])
def test_the_first_screen_has_table_and_figure(page: Path, tmp_path: Path, width: int, height: int) -> None:
    seen = found_in(page, tmp_path, _PLACES, width=width, height=height)
    assert 0 < seen["table"]["top"] < seen["table"]["bottom"] <= height
    assert 0 < seen["figure"]["top"] < seen["figure"]["bottom"] <= height
    assert seen["page"] <= seen["width"] and seen["right"] <= seen["width"]
    assert seen["moved"] == 0, "the first table fits"
    assert seen["apart"] >= 8, "its last two columns can be told apart"
    assert seen["options"] and not seen["parted"], "no option of a command is broken at the end of a line"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (800, False), (390, True)])
def test_axe_finds_nothing(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    assert faults_of(page, tmp_path, width=width, dark=dark) == []


@pytest.mark.slow
def test_axe_finds_nothing_in_a_broken_experiment(tmp_path: Path) -> None:
    """With the tables of an instrument, with what failed, and with what is folded."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[values]],
                run_id=name,
                views=("response",),
                outcome=outcome,
                reasons=("broke",),
                series={"labels": {"edge": "falling"}},
                head={"probe": "response", "configuration": name, "instrument": {"name": "uno"}},
            ),
        )
        for name, values, outcome in (
            ("stock", np.arange(5000, 9000), "completed"),
            ("rt", np.arange(4000, 5000), "failed"),
        )
    ]
    write_report(runs, judge(runs), tmp_path / "report")
    assert faults_of(tmp_path / "report" / "index.html", tmp_path, width=1280, dark=False) == []


@pytest.mark.slow
def test_axe_would_find_something(page: Path, tmp_path: Path) -> None:
    """So that nothing found means that it looked."""
    (tmp_path / "spoilt.html").write_text(
        re.sub(r"<(/?)h2\b", r"<\1h5", page.read_text()).replace(' role="img"', ' role="nothing"')
    )
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
    for heading in re.findall(r"<h2[^>]*>(.*?)</h2>", page.read_text()):
        holding = [text for text in pages if heading in text]
        assert holding, heading
        assert not [text for text in holding if text.rstrip().splitlines()[-2].strip() == heading], "alone at the foot"
    assert "passed in every run" in " ".join(pages), "what is folded keeps its heading"


def test_the_page_becomes_one_pdf_as_documented(page: Path, tmp_path: Path) -> None:
    """Every number and every figure is in it, and nothing lies in the margins."""
    require("chromium", "pdftotext")
    command = re.search(r"chromium .*--print-to-pdf.*", (ROOT / "docs" / "report.md").read_text())
    assert command is not None
    chromium, *options = command[0].split()
    (tmp_path / "report").symlink_to(page.parent)
    subprocess.run(
        [chromium, "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", *options],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=240,
    )
    text = subprocess.run(
        ["pdftotext", "-bbox", "report.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    words = re.findall(r'xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)" yMax="[\d.]+">(.*?)</word>', text)
    width = float(re.findall(r'<page width="([\d.]+)"', text)[0])
    margin = 13 / 25.4 * 72 - 1
    assert width == pytest.approx(595, abs=1), "A4"
    assert [word for left, right, word in words if float(left) < margin or float(right) > width - margin] == []
    source = re.sub(r'<details class="not-printed".*?</details>', "", page.read_text(), flags=re.DOTALL)
    printed_words = {word for _, _, word in words}
    numbers = set(re.findall(r"<td>([\d,.]+)", source))
    assert len(numbers) > 100 and numbers <= printed_words
    titles = [
        title
        for svg in re.findall(r"<svg.*?</svg>", source, re.DOTALL)
        for title in re.findall(r">([^<]{12,})</text>", svg)
    ]
    assert len(titles) > 20 and {word for title in titles for word in title.split()} <= printed_words


_CUT = """
document.querySelectorAll("details").forEach(one => { one.open = true });
const cut = [];
for (const svg of document.querySelectorAll("figure svg")) {
  const all = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll("text")) {
    const at = text.getBoundingClientRect();
    if (at.width && (at.left < all.left - 1 || at.right > all.right + 1 || at.top < all.top - 1
                     || at.bottom > all.bottom + 1)) cut.push(text.textContent);
  }
}
return cut"""
_SCROLLED = """
document.querySelectorAll("details").forEach(one => { one.open = true });
const found = [];
for (const scroll of document.querySelectorAll(".scroll")) {
  scroll.scrollLeft = 10000;
  const head = scroll.querySelector("tbody th");
  if (scroll.scrollLeft > 0) found.push(head.getBoundingClientRect().left - scroll.getBoundingClientRect().left);
}
return found"""


@pytest.mark.slow
def test_no_text_of_a_figure_is_cut(tmp_path: Path) -> None:
    """With set-ups whose names are long, and bars whose labels are near the serial line."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[np.arange(scale, scale + 2000)]],
                run_id=f"run-{scale}-{load}",
                load=load,
                views=("wakeup_corrected",),
                head={"configuration": f"{kernel} 6.12.43+deb13-{kernel}-amd64", "implementation": implementation},
            ),
        )
        for load in ("none", "cpu")
        for scale, (kernel, implementation) in zip(
            (5_000, 90_000, 700_000, 1_000_000),
            [("stock", "linux-user"), ("rt", "linux-user"), ("stock", "linux-kernel"), ("rt", "linux-kernel")],
            strict=True,
        )
    ]
    write_report(runs, judge(runs, Requirement(2_000_000)), tmp_path / "report")
    assert found_in(tmp_path / "report" / "index.html", tmp_path, _CUT, width=1400) == []


def test_on_a_telephone_each_row_keeps_its_name(page: Path, tmp_path: Path) -> None:
    """A table that is wider than the screen is moved beneath it."""
    found = found_in(page, tmp_path, _SCROLLED, width=390)
    assert len(found) > 3 and all(abs(off) < 1 for off in found)


HOSTILE = 'x"; } body { display: none } @bottom-left { content: "</style><script>alert(1)</script>\\'


def test_a_run_id_cannot_leave_the_style_sheet(tmp_path: Path) -> None:
    one: Any = recording(tmp_path, Plan([[np.array([5000, 6000])]]))
    object.__setattr__(one.head, "run_id", HOSTILE)
    write_report([one], judge([one]), tmp_path / "report")
    source = (tmp_path / "report" / "index.html").read_text()
    style = source[source.index("<style>") : source.index("</style>")]
    assert "run x" in style and "display: none }" not in style.replace("nav, .files { display: none; }", "")
    assert "<script" not in source
