# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables for other documents: the same cells as on the page, and what a recording holds stays text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge, words
from fastenough.analysis.machine import COUNTERS as MEANINGS
from fastenough.model import Requirement
from fastenough.report.context import RunGroup, make_context
from fastenough.report.document import Cell, Column, ReportTable
from fastenough.report.formats import _LATEX, latex, markdown, unbroken, with_units
from fastenough.report.overview import first_table
from fastenough.report.sections import MakeSection, methods, percentiles, runs, stress_matrix, system
from tests.support.presence import present
from tests.support.recordings import COUNTERS, SETTINGS, Plan, latencies, recording

HOSTILE = "a|b & 50 % $x_1$ {y} #1 <b>c</b> ^~ \\end{tabular} [link](http://x) `d`\n\x1b[31m"
TABLE = ReportTable(
    "t",
    "Latency <of> a & b",
    (Column("load", numeric=False), Column("max [µs]", words.microseconds), Column("95 %")),
    [("none", 12_345.0, Cell(7, "7.00", "6.9 … 7.1")), ("[io]", None, 3)],
    over="all CPUs",
    note="n: 5 | 6",
)


def test_markdown_has_the_cells_of_the_page() -> None:
    lines = markdown(TABLE).splitlines()
    assert lines[0] == "**Latency &lt;of&gt; a &amp; b (all CPUs)**"
    assert lines[2:6] == [
        r"| load | max \[µs\] | 95 % |",
        "| :-- | --: | --: |",
        "| none | 12.4 | 7.00 (6.9 … 7.1) |",
        r"| \[io\] | – | 3 |",
    ]
    assert lines[-1] == r"n: 5 \| 6"


def test_latex_has_the_cells_of_the_page() -> None:
    text = latex(TABLE)
    assert r"\begin{tabular}{lrr}" in text and r" & \multicolumn{2}{c}{all CPUs} \\" in text
    assert r"load & max {[}\textmu{}s{]} & 95 \% \\" in text
    assert r"none & 12.4 & 7.00 (6.9 \dots{} 7.1) \\" in text and r"{[}io{]} & -- & 3 \\" in text
    assert text.count("\\begin{") == text.count("\\end{") == 2


@pytest.mark.parametrize("column", [0, 1])
def test_what_a_recording_holds_is_text(column: int) -> None:
    row = ["x", "x"]
    row[column] = HOSTILE
    table = ReportTable("t", HOSTILE, (Column("a", numeric=False), Column(HOSTILE, numeric=False)), [row], note=HOSTILE)
    text = markdown(table)
    assert "<" not in text and "\x1b" not in text
    assert not re.search(r"(?<!\\)[`\[]", text)
    for line in text.splitlines()[2:5]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3
    tex = latex(table)
    assert tex.count("\\end{tabular}") == 1 and "\x1b" not in tex
    assert not re.search(r"(?<!\\)[%#$]", tex.replace("$\\rightarrow$", ""))
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in tex.splitlines() if line.endswith(r" \\"))


def test_configurations_stand_beside_each_other(tmp_path: Path) -> None:
    """One of them lacks a load: its place stays empty, and no other number moves there."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[np.full(50, at_ns)]],
                run_id=f"{name}-{load}",
                load=load,
                views=("wakeup_corrected",),
                head={"configuration": name},
            ),
        )
        for name, load, at_ns in (("stock", "none", 5_000), ("stock", "cpu", 6_000), ("rt", "cpu", 3_000))
    ]
    section = stress_matrix.section(make_context(runs, judge(runs)))
    assert section is not None
    (table,) = [leaf for leaf in section.leaves() if isinstance(leaf, ReportTable) and leaf.name == "stress-matrix-all"]
    assert [column.title for column in table.columns] == ["configuration", "latency [µs]", "no stress", "cpu"]
    found = {(row[0].split(" ")[0], row[1]): tuple(row[2:]) for row in table.rows}
    assert [cell.value for cell in found["stock", "Max"]] == [5_000, 6_000]
    assert [cell and cell.value for cell in found["rt", "Max"]] == [None, 3_000]
    assert [name for _, name in found] == ["Min", "Average", "Max"] * 2


def test_an_option_is_one_piece_of_a_page() -> None:
    assert unbroken("<b> (--return-time)") == '&lt;b&gt; (<span class="short">--return-time</span>)'


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    said = with_units("above 20,000 µs in 1.11 s (95 %), 3 minutes, 2 sets <b>")
    assert re.findall('<span class="short">(.*?)</span>', said) == ["20,000 µs", "1.11 s", "(95 %)"]
    assert said.endswith("&lt;b&gt;")
    assert with_units("99.9 % [µs]") == '<span class="short">99.9 %</span> [µs]'


def _parts(tmp_path: Path, make: MakeSection, **change: Any) -> list[Any]:
    runs = [recording(tmp_path, Plan(latencies(1, intervals=3), run_id=name, **change)) for name in ("one", "two")]
    return list(present(make(make_context(runs, judge(runs))), "section").leaves())


def test_what_says_nothing_takes_no_column(tmp_path: Path) -> None:
    """So many counters are wider than a page; the file holds them all."""
    table, zero, unknown = _parts(tmp_path, system.activity, counters=COUNTERS | {"smi": 3, "steal_ns": None})
    assert [column.title for column in table.columns] == ["load", "run", "smi", "voluntary switches"]
    assert [list(row[2:]) for row in table.rows] == [[3, 1]] * 2
    assert len(table.csv_rows()[0]) == 2 + len(MEANINGS) and len(table.csv_rows()) == 3
    assert zero.text.startswith("0 in every run: steps of the wall clock; ") and "major page faults" in zero.text
    assert unknown.text.partition(": ")[2].startswith("time taken by the hypervisor; ")
    assert "real-time core" not in unknown.text, "Linux has none that could say so"


@pytest.mark.parametrize("order", [("fewer", "more"), ("more", "fewer")])
def test_a_series_that_any_run_of_a_group_has_is_judged(tmp_path: Path, order: tuple[str, str]) -> None:
    views = {"fewer": ("wakeup_corrected",), "more": ("wakeup_corrected", "jitter")}
    head = {"probe": "made-up"}
    runs = tuple(
        recording(tmp_path, Plan(latencies(1)[:1], run_id=name, views=views[name], head=head)) for name in order
    )
    assert {kind.name for kind in RunGroup(runs, "").judged_kinds} == {"wakeup_corrected", "jitter"}


@pytest.mark.check
@pytest.mark.parametrize("limit", [None, Requirement(50_000)])
def test_the_first_screen_of_many_has_the_worst(tmp_path: Path, limit: Requirement | None) -> None:
    """The others are in its file, and below."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[each + 1000 * (kind * 7 % 20) for each in cpu] for cpu in latencies(1, intervals=2)],
                run_id=f"run-{kind:02}",
                load=f"l{kind:02}",
            ),
        )
        for kind in range(20)
    ]
    table = first_table(make_context(runs, judge(runs, limit)))
    shown = [row[0] for row in table.rows]
    assert shown == [f"l{kind:02}" for kind in range(20) if kind * 7 % 20 >= 4]
    assert len(table.csv_rows()) == 21
    assert table.note.startswith(f"The 16 of 20 with the greatest maxima{' relative to' if limit else ';'}")


def test_what_a_core_counted_stands_beside_what_the_clock_says(tmp_path: Path) -> None:
    table, *_ = _parts(tmp_path, system.activity, counters=COUNTERS | {"core_overruns": 7})
    assert [column.title for column in table.columns][-1] == "core overruns" and table.rows[0][-1] == 7


def test_a_run_that_never_was_lasted_no_time_that_could_be_stated(tmp_path: Path) -> None:
    unfit = recording(tmp_path, Plan([], run_id="unfit", outcome="not-applicable", reasons=("no module",)))
    made = [unfit, recording(tmp_path, Plan(latencies(1, intervals=3), run_id="one"))]
    section = runs.section(make_context(made, judge(made)))
    assert section is not None
    (table,) = [leaf for leaf in section.leaves() if isinstance(leaf, ReportTable)]
    place = [column.title for column in table.columns].index("duration")
    assert [table.cells(row)[place].text for row in table.rows] == ["–", "6 s"]


def test_a_quantile_without_an_interval_says_why(tmp_path: Path) -> None:
    table = _parts(tmp_path, percentiles.percentiles)[0]
    assert {cell.below for row in table.rows for cell in table.cells(row)} == {"", "–", "n too small"}
    assert table.note.strip() == (
        "No interval (–): it needs 30 intervals of time, 20 independent disturbances above the quantile, and no "
        "dependence that lasts longer than a block."
    )


def test_values_read_back_have_their_units(tmp_path: Path) -> None:
    read_back = (
        *SETTINGS,
        {"name": "timer_slack_ns", "cpu": 0, "requested": 1, "in_effect": 1},
        {"name": "memory_lock", "requested": True, "in_effect": True},
        {"name": "rt_runtime_us", "requested": -1, "in_effect": -1},
    )
    rows = {row[0]: row[2:4] for row in _parts(tmp_path, system.settings, settings=read_back)[-1].rows}
    assert rows == {
        "policy": ("fifo", "fifo"),
        "priority": ("98", "98"),
        "rt throttling": ("–", "950,000 µs"),
        "timer slack": ("1 ns", "1 ns"),
        "memory lock": ("yes", "yes"),
        "rt runtime": ("-1: no limit", "-1: no limit"),
    }


def test_what_measuring_cost_is_said_once_for_all_runs(tmp_path: Path) -> None:
    cost = {"clock_read_ns": 20.156, "record_ns": None}
    said = _parts(tmp_path, methods.definitions, head={"cost": cost})[-1]
    assert said.lines == ["timer: reading the clock: 20.2 ns", "timer: storing a value: unknown"]


def test_latex_wants_no_encoding_that_a_plain_document_lacks() -> None:
    """``\\textquotedbl`` ends it: "unavailable in encoding OT1"."""
    assert "textquotedbl" not in "".join(_LATEX.values())
    assert r"say {\char34}yes{\char34}" in latex(ReportTable("t", 'say "yes"', TABLE.columns, TABLE.rows))
