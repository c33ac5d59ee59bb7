# SPDX-License-Identifier: GPL-2.0-or-later
"""The instrument beside tasks of Xenomai's Cobalt core: ``make check-kernels`` with a kernel called ``cobalt``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from own_kernels import require_own_kernel
from virtual_boards import require_simulated_gauge

from fastenough.analysis import judge
from fastenough.analysis.agreement import Agreement, agreement
from fastenough.campaign import read_plan, run_campaign
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.report import write_report
from fastenough.store import Store

PLAN = Path(__file__).resolve().parents[1] / "campaigns" / "brown-martin.toml"
IMPLEMENTATIONS = ("linux-user", "linux-kernel", "xenomai-user", "xenomai-kernel")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """Brown and Martin's eight cells, each for two seconds."""
    kernel = require_own_kernel("cobalt")
    require_simulated_gauge()
    folder = tmp_path_factory.mktemp("cobalt")
    plan = PLAN.read_text().replace('["stock", "rt"]', f'["{kernel}"]')
    plan = plan.replace('["linux-user", "linux-kernel"]', str(list(IMPLEMENTATIONS)).replace("'", '"'))
    (folder / "plan.toml").write_text(re.sub(r"(?m)^duration = [^#\n]*", 'duration = "2s"', plan))
    store = Store(folder / "store")
    return [store.load(run) for run in run_campaign(read_plan(folder / "plan.toml"), store).runs]


def _of(runs: list[Recording], probe: str, implementation: str) -> tuple[Recording, Recording]:
    """What the instrument and what the board measured."""
    found = [run for run in runs if (run.head.probe, run.head.implementation) == (probe, implementation)]
    outside, inside = sorted(found, key=lambda run: run.head.instrument is None)
    return outside, inside


def _let_go_of_high(counts: Agreement, inside: Recording) -> bool:
    """An output that was left high and becomes an input again makes one more falling edge (docs/xenomai.md)."""
    toggled = inside.totals[inside.series[0].id].total
    return inside.head.probe == "periodic" and toggled % 2 == 1 and counts.returned == toggled // 2 + 1


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_instrument_and_board_count_the_same(runs: list[Recording], probe: str, implementation: str) -> None:
    outside, inside = _of(runs, probe, implementation)
    assert (outside.outcome, inside.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED), (outside.end, inside.end)
    counts = agreement(outside)
    assert counts is not None and counts.lost_uncounted == 0, counts
    assert counts.complete or _let_go_of_high(counts, inside), counts
    assert outside.totals[outside.series[0].id].total > 0


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_board_sees_no_more_of_a_response_than_the_instrument(runs: list[Recording], implementation: str) -> None:
    """Its part of the way lies within the whole; the instrument has a series for each direction of the edge."""
    outside, inside = _of(runs, "response", implementation)
    whole = [outside.totals[series.id] for series in outside.series]
    part, (unit_ns, part_unit_ns) = inside.totals[inside.series[0].id], (outside.series[0].unit_ns,
                                                                         inside.series[0].unit_ns)
    assert 0 < part_unit_ns * part.value_at_rank(part.total // 2) <= max(
        unit_ns * each.value_at_rank(each.total // 2) for each in whole)
    assert part_unit_ns * (part.maximum or 0) <= max(unit_ns * (each.maximum or 0) for each in whole)


@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_the_papers_tables_have_both_tasks_of_the_core(runs: list[Recording], tmp_path: Path, probe: str) -> None:
    outside = [run for run in runs if run.head.instrument]
    write_report(outside, judge(outside, None), tmp_path)
    for table in ("percentiles", "frequencies"):
        with (tmp_path / "tables" / f"{probe}-{table}.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["implementation"] for row in rows] == ["xenomai-user", "xenomai-kernel"]
        assert all(value for row in rows for value in row.values()), rows
