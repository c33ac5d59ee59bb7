# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of an experiment: every cell filled, in the paper's form, with instrument and counts beside it."""

from __future__ import annotations

import csv
import itertools
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.edge_agreement import agreement
from fastenough.model import Verdict
from fastenough.recording import Recording, read_recording
from fastenough.report import write_report
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections import experiment, methods
from fastenough.report.source_figures import SERIAL_US
from tests.support.recordings import Plan, recording, write

pytestmark = pytest.mark.check

CELLS = list(itertools.product(("linux-user", "linux-kernel"), ("stock", "rt")))
SAMPLES = 2000
INSTRUMENT = {"name": "fastenough gauge", "firmware": "0.1.0", "tick_ps": 62500}
AGREED = {"edges_sent": SAMPLES, "edges_seen": SAMPLES, "edges_answered": SAMPLES, "edges_returned": SAMPLES}


def cell(folder: Path, probe: str, implementation: str, configuration: str, counters: dict[str, Any]) -> Recording:
    """One run as an instrument records it: response times of about 100 µs, or deviations about 0."""
    random = np.random.default_rng(len(implementation) + len(configuration))
    scale_us = 400 if configuration == "stock" else 100
    shape = random.normal(0, 1, SAMPLES) if probe == "periodic" else random.lognormal(0, 0.3, SAMPLES)
    series: dict[str, Any] = {"period_ns": 7_071_000} if probe == "periodic" else {"labels": {"edge": "falling"}}
    name = "period_jitter" if probe == "periodic" else "response"
    return recording(
        folder,
        Plan(
            [[(shape * scale_us * 1000).astype(np.int64)]],
            run_id=f"{probe}-{implementation}-{configuration}",
            begin_ns=zlib.crc32(f"{probe} {implementation} {configuration}".encode()) * 10**9,
            interval_ns=SAMPLES * series.get("period_ns", 1_000_000),
            views=(name,),
            series=series,
            counters=counters,
            marks=("emulated",),
            head={
                "probe": probe,
                "implementation": implementation,
                "instrument": INSTRUMENT,
                "configuration": f"{configuration} 6.1.0-56-arm64",
            },
        ),
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    folder = tmp_path_factory.mktemp("runs")
    return [cell(folder, probe, *which, AGREED) for probe in ("response", "periodic") for which in CELLS]


@pytest.fixture(scope="module")
def out(runs: list[Recording], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(runs, judge(runs, None), folder)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("probe", ["response", "periodic"])
def test_every_cell_is_filled(out: Path, probe: str) -> None:
    for table in ("percentiles", "frequencies"):
        found = rows(out / "tables" / f"{probe}-{table}.csv")
        assert [(row["implementation"], row["configuration"]) for row in found] == CELLS
        assert all(value for row in found for value in row.values())
    for figure in ("histograms", "bars", "overlay"):
        drawn = (out / "figures" / f"{probe}-{figure}.svg").read_text()
        assert all(f"{configuration} {implementation}" in drawn for implementation, configuration in CELLS)
    published = rows(out / "tables" / f"{probe}-published-percentiles.csv")
    assert {"stock", "rt", "xenomai"} == {row["configuration"] for row in published}


def test_tables_8_and_9_are_made_of_own_runs_of_several_kernels(out: Path) -> None:
    """Of Linux alone too, where every row of the first table is of an implementation measured on both kernels."""
    for probe in ("response", "periodic"):
        across = rows(out / "tables" / f"{probe}-across-kernels.csv")
        assert [(row["implementation"], row["configuration"]) for row in across] == CELLS
        assert (out / "tables" / f"{probe}-percentiles.csv").exists()
        assert (out / "figures" / f"{probe}-bars.pdf").read_bytes().startswith(b"%PDF-")


def test_each_kernel_has_its_own_way_and_linux_elsewhere_is_in_the_cross_table(tmp_path: Path) -> None:
    """As in the paper: six rows in tables 4 and 6; in 8 and 9 Linux's tasks on Xenomai's kernel beside the others."""
    which = [("xenomai-kernel", "xenomai"), ("linux-user", "xenomai"), ("linux-user", "stock"), ("linux-user", "rt")]
    runs = [cell(tmp_path, "response", *one, AGREED) for one in which]
    section = experiment.response(make_context(runs, judge(runs, None)))
    assert section is not None
    tables = {
        leaf.name: [tuple(row[:2]) for row in leaf.rows] for leaf in section.leaves() if isinstance(leaf, ReportTable)
    }
    assert tables["response-percentiles"] == [
        ("stock", "linux-user"),
        ("rt", "linux-user"),
        ("xenomai", "xenomai-kernel"),
    ]
    assert tables["response-across-kernels"] == [
        ("stock", "linux-user"),
        ("rt", "linux-user"),
        ("xenomai", "linux-user"),
    ]


def test_frequencies_follow_from_percentiles(out: Path) -> None:
    for percentile, frequency in zip(
        rows(out / "tables/response-percentiles.csv"), rows(out / "tables/response-frequencies.csv"), strict=True
    ):
        latency_ns = float(percentile["p95_ns"])
        assert float(frequency["frequency_95_hz"]) == pytest.approx(1e9 / (2 * latency_ns))


def test_the_serial_line_is_where_it_is_computed(out: Path) -> None:
    assert pytest.approx(12 * 10 / 115_200 * 1e6) == SERIAL_US
    assert f"12 serial bytes at 115,200 bps: {SERIAL_US:,.0f} µs" in (out / "figures/response-bars.svg").read_text()


def test_the_serial_line_crosses_no_label(out: Path) -> None:
    """It is drawn before them, and each has its own ground."""
    drawn = (out / "figures/response-bars.svg").read_text()
    labels = [found.start() for found in re.finditer(r">(?:95|100) %: ", drawn)]
    assert len(labels) == 2 * len(CELLS)
    for before, label in itertools.pairwise([drawn.index("stroke: #444444"), *labels]):
        assert "fill: #ffffff" in drawn[before:label]


def test_emulated_runs_get_no_verdict(runs: list[Recording]) -> None:
    assessment = judge(runs, None)
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert any("emulated" in reason for reason in assessment.reasons)


def test_the_board_alone_fills_no_cell(tmp_path: Path) -> None:
    alone = recording(
        tmp_path,
        Plan(
            [[np.full(100, 1000)]],
            run_id="alone",
            views=("response_kernel",),
            marks=("self-measured",),
            head={"probe": "response"},
        ),
    )
    assert experiment.response(make_context([alone], judge([alone], None))) is None
    assert agreement(alone) is None


@pytest.mark.parametrize(
    ("counters", "complete", "lost", "said"),
    [
        (AGREED, True, 0, "agree"),
        (AGREED | {"edges_returned": SAMPLES - 3, "edges_timed_out": 3}, False, 0, "3 timed out"),
        (
            AGREED | {"edges_seen": SAMPLES - 1, "edges_answered": SAMPLES - 1, "edges_returned": SAMPLES - 1},
            False,
            1,
            "1 lost and not counted",
        ),
        ({"edges_answered": 50, "edges_returned": 50}, True, 0, "agree"),
        (
            {"edges_answered": 500, "edges_returned": 493, "edges_timed_out": 336},
            False,
            7,
            "7 lost and not counted",
        ),
        (
            {"edges_answered": 500, "edges_returned": 493, "edges_timed_out": 336, "edges_dropped": 7},
            False,
            0,
            "7 dropped",
        ),
        (
            {"edges_answered": 500, "edges_returned": 493, "edges_timed_out": 336, "edges_shed": 7},
            False,
            0,
            "7 dropped",
        ),
        ({"edges_sent": 50, "edges_answered": None, "edges_returned": 50}, False, None, "not-applicable"),
    ],
)
def test_counts_agree_or_say_what_is_missing(
    tmp_path: Path, counters: dict[str, Any], complete: bool, lost: int | None, said: str
) -> None:
    run = cell(tmp_path, "response", "linux-user", "rt", counters)
    counts = agreement(run)
    assert counts is not None
    assert (counts.complete, counts.lost_uncounted) == (complete, lost)
    assert said in counts.text
    section = methods.edge_agreement(make_context([run], judge([run], None)))
    assert section is not None
    (table,) = section.leaves()
    assert isinstance(table, ReportTable)
    assert said in table.rows[0][-1]


def _of_two_edges(folder: Path, falling_ns: int, rising_ns: int) -> Recording:
    """As a gauge records a response: a series for each direction of the edge."""
    both = [
        write(
            folder / name,
            Plan(
                [[np.full(SAMPLES, ns)]],
                views=("latency-falling", "latency-rising"),
                counters=AGREED,
                head={"probe": "response", "instrument": INSTRUMENT},
            ),
        )
        for name, ns in (("falling", falling_ns), ("rising", rising_ns))
    ]
    lines = []
    for one, other in zip(*(path.read_text().splitlines() for path in both), strict=True):
        line = json.loads(one)
        if line["type"] != "head":
            line["series"][1] = json.loads(other)["series"][1]
        lines.append(json.dumps(line))
    (folder / "both").write_text("\n".join([*lines, ""]))
    return read_recording(folder / "both")


@pytest.mark.parametrize(("falling_ns", "rising_ns"), [(10_000, 90_000), (90_000, 10_000)])
def test_the_tables_are_of_both_edges(tmp_path: Path, falling_ns: int, rising_ns: int) -> None:
    run = _of_two_edges(tmp_path, falling_ns, rising_ns)
    write_report([run], judge([run], None), tmp_path / "out")
    (row,) = rows(tmp_path / "out/tables/response-percentiles.csv")
    assert float(row["max_ns"]) == 90_000
    assert float(row["median_ns"]) == pytest.approx(10_000, rel=0.001)
