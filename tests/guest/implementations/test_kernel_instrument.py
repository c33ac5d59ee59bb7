# SPDX-License-Identifier: GPL-2.0-or-later
"""The instrument beside tasks of real-time cores: ``make check-kernels`` with kernels called ``cobalt`` and ``evl``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.analysis.edge_agreement import agreement
from fastenough.campaign import read_plan, run_campaign
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.report import write_report
from fastenough.store import Store
from tests.support.own_kernels import require_own_kernel
from tests.support.virtual_boards import require_simulated_gauge

PLAN = Path(__file__).resolve().parents[3] / "campaigns" / "brown-martin.toml"
OWN = {"cobalt": ("xenomai-user", "xenomai-kernel"), "evl": ("evl-user", "evl-kernel")}
CELLS = [(kernel, name) for kernel, own in OWN.items() for name in ("linux-user", "linux-kernel", *own)]


class Measured:
    """Brown and Martin's eight cells, each for two seconds, on each kernel that is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, list[Recording]] = {}

    def on(self, kernel: str) -> list[Recording]:
        require_own_kernel(kernel)
        require_simulated_gauge()
        if kernel not in self._runs:
            self._runs[kernel] = self._measure(kernel)
        return self._runs[kernel]

    def _measure(self, kernel: str) -> list[Recording]:
        names = [name for configuration, name in CELLS if configuration == kernel]
        text = PLAN.read_text().replace('["stock", "rt"]', f'["{kernel}"]')
        text = text.replace('["linux-user", "linux-kernel"]', str(names).replace("'", '"'))
        plan = self._folder / f"{kernel}.toml"
        plan.write_text(re.sub(r"(?m)^duration = [^#\n]*", 'duration = "2s"', text))
        store = Store(self._folder / kernel)
        return [store.load(run) for run in run_campaign(read_plan(plan), store).runs]

    def of(self, kernel: str, probe: str, implementation: str) -> tuple[Recording, Recording]:
        """What the instrument and what the board measured."""
        found = [run for run in self.on(kernel) if (run.head.probe, run.head.implementation) == (probe, implementation)]
        outside, inside = sorted(found, key=lambda run: run.head.instrument is None)
        return outside, inside


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return Measured(tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize(("kernel", "implementation"), CELLS)
@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_instrument_and_board_count_the_same(measured: Measured, kernel: str, probe: str, implementation: str) -> None:
    outside, inside = measured.of(kernel, probe, implementation)
    assert (outside.outcome, inside.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED), (outside.end, inside.end)
    counts = agreement(outside)
    assert counts is not None and counts.complete, counts
    assert outside.totals[outside.series[0].id].total > 0


@pytest.mark.parametrize(("kernel", "implementation"), CELLS)
def test_the_board_sees_no_more_of_a_response_than_the_instrument(
    measured: Measured, kernel: str, implementation: str
) -> None:
    """Its part of the way lies within the whole; the instrument has a series for each direction of the edge.

    Of the median: the board reads its clock after the output has changed, and may be interrupted in between.
    """
    outside, inside = measured.of(kernel, "response", implementation)
    whole = [outside.totals[series.id] for series in outside.series]
    part, (unit_ns, part_unit_ns) = (
        inside.totals[inside.series[0].id],
        (outside.series[0].unit_ns, inside.series[0].unit_ns),
    )
    assert (
        0
        < part_unit_ns * part.value_at_rank(part.total // 2)
        <= max(unit_ns * each.value_at_rank(each.total // 2) for each in whole)
    )


@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_the_papers_tables_have_both_tasks_of_every_core(measured: Measured, tmp_path: Path, probe: str) -> None:
    outside = [run for kernel in OWN for run in measured.on(kernel) if run.head.instrument]
    write_report(outside, judge(outside, None), tmp_path)
    for table in ("percentiles", "frequencies"):
        with (tmp_path / "tables" / f"{probe}-{table}.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert sorted((row["configuration"], row["implementation"]) for row in rows) == sorted(
            (kernel, name) for kernel, own in OWN.items() for name in own
        )
        assert all(value for row in rows for value in row.values()), rows
