# SPDX-License-Identifier: GPL-2.0-or-later
"""The report states an uncertainty budget for each latency that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.report.context import Context, make_context
from fastenough.report.document import Folded, ReportTable
from fastenough.report.sections import percentiles, uncertainty
from tests.support.recordings import Plan, latencies, recording


def context_of(folder: Path) -> Context:
    runs = [
        recording(folder, Plan(latencies(seed, intervals=3), run_id=f"run-{seed}", load=load))
        for seed, load in ((1, "none"), (2, "cpu"))
    ]
    return make_context(runs, judge(runs))


def test_each_printed_latency_has_a_budget_with_all_its_lines(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    made, beside = uncertainty.section(context), percentiles.percentiles(context)
    assert made is not None and beside is not None
    summary, *folded = made.parts
    assert isinstance(summary, ReportTable) and len(folded) == 2
    first = folded[0]
    assert isinstance(first, Folded)
    assert [row[1] for row in summary.rows[: len(summary.rows) // 2]] == [
        *("minimum", "median", "95 %", "99 %", "99.9 %", "99.99 %"),
        "maximum",
    ]
    printed = beside.leaves()[0]
    assert isinstance(printed, ReportTable)
    assert [row[2] for row in summary.rows if row[1] == "maximum"] == [row[-1] for row in printed.rows]
    header, *lines = summary.csv_rows()
    for line in lines:
        one = dict(zip(header, line, strict=True))
        assert one["lower_ns"] == pytest.approx(one["printed_ns"] - one["bias_ns"] - one["expanded_ns"])
        assert one["expanded_ns"] == one["coverage_factor"] * one["combined_ns"] > 0
    table = first.parts[0]
    assert isinstance(table, ReportTable)
    header, *lines = table.csv_rows()
    of_maximum = [dict(zip(header, line, strict=True)) for line in lines if line[0] == "maximum"]
    assert len(of_maximum) == len(table.rows) - 1
    unknown = [one["source"] for one in of_maximum if one["standard_ns"] is None]
    assert unknown == ["resolution of the clock", "first reading after a sleep, beyond that"]
