# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of the sources come out again, number for number: from what was published, and from runs of such numbers.

In every form that a report has: CSV, Markdown, LaTeX and the page.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fastenough.analysis import judge
from fastenough.recording import Recording
from fastenough.report import plot, write_report
from fastenough.report.context import make_context
from fastenough.report.document import Data, Folded, Picture, ReportTable
from fastenough.report.formats import latex, markdown
from fastenough.report.sections import experiment, kernels, primitives, stress_matrix
from fastenough.report.source_tables import maxima_by_kernel, own_figure
from tests.support import published
from tests.support.published import Row
from tests.support.recordings import Plan, recording

NAMES = {
    4: "response-{}percentiles",
    5: "response-{}frequencies",
    6: "periodic-{}percentiles",
    7: "periodic-{}frequencies",
    8: "response-{}across-kernels",
    9: "periodic-{}across-kernels",
}
PERCENTILES = (4, 6, 8, 9)

pytestmark = [pytest.mark.check, pytest.mark.timeout(900)]
"""The report of sixteen runs is made for it, which takes minutes where the machine is busy."""


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> Iterator[None]:
    """Figures have their data and no drawing: the tests here read tables only, and drawing takes most of the time."""

    def without_drawing(figure: Figure, name: str, caption: str, data: Data, wide: bool = False) -> Picture:
        return Picture(name, caption, "<svg />", b"", b"", data, wide)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plot, "picture", without_drawing)
        yield


@pytest.fixture(scope="module")
def beagleboard(undrawn: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of runs of which tables 4 to 9 follow; the published ones are folded beneath."""
    folder = tmp_path_factory.mktemp("beagleboard")
    runs = [run for probe in ("response", "periodic") for run in published.beagleboard(folder, probe)]
    write_report(runs, judge(runs), folder / "report")
    return folder / "report"


@pytest.fixture(scope="module")
def p2041(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReportTable]:
    runs = published.p2041(tmp_path_factory.mktemp("p2041"))
    section = stress_matrix.section(make_context(runs, judge(runs)))
    assert section is not None
    return {leaf.name: leaf for leaf in section.leaves() if isinstance(leaf, ReportTable)}


def csv_rows(report: Path, name: str) -> list[list[str]]:
    with (report / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.reader(stream))[1:]


def markdown_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip().replace("\\", "") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ][2:]


def latex_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip().replace("\\", "") for cell in line.removesuffix(r"\\").split("&")]
        for line in text.splitlines()
        if line.endswith(r"\\") and "multicolumn" not in line
    ][1:]


def shown_rows(report: Path, name: str) -> list[list[list[str]]]:
    """In each of the forms that people read."""
    return [
        markdown_rows((report / "tables" / f"{name}.md").read_text()),
        latex_rows((report / "tables" / f"{name}.tex").read_text()),
        page_rows(report, name),
    ]


def page_rows(report: Path, name: str) -> list[list[str]]:
    page = (report / "index.html").read_text()
    table = page[page.index(f'id="table-{name}"') :].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2])
    return [
        [html.unescape(re.sub(r"<.*?>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows
    ]


def number(shown: str) -> float:
    return float(shown.replace(",", ""))


@pytest.mark.parametrize("whose", ["", "published-"])
@pytest.mark.parametrize("table", PERCENTILES)
def test_percentiles_come_out_again(beagleboard: Path, table: int, whose: str) -> None:
    name, expected = NAMES[table].format(whose), published.percentiles(table)
    found: list[tuple[Row, list[float]]] = [
        ((row[0], row[1]), [float(row[2]), *(float(ns) / 1000 for ns in row[3:])])
        for row in csv_rows(beagleboard, name)
    ]
    assert found == expected
    for rows in shown_rows(beagleboard, name):
        assert [((row[0], row[1]), [*map(number, row[2:])]) for row in rows] == expected


@pytest.mark.parametrize("whose", ["", "published-"])
@pytest.mark.parametrize("table", [5, 7])
def test_frequencies_come_out_again(beagleboard: Path, table: int, whose: str) -> None:
    """The paper rounds to nearest; what is shown here is never above what was computed."""
    name, expected = NAMES[table].format(whose), published.frequencies(table)
    assert [
        ((row[0], row[1]), [f"{float(hz) / 1000:.2f}" for hz in row[2:4]]) for row in csv_rows(beagleboard, name)
    ] == expected
    computed = [[float(hz) / 1000 for hz in row[2:4]] for row in csv_rows(beagleboard, name)]
    for rows in shown_rows(beagleboard, name):
        shown = [[*map(number, row[2:4])] for row in rows]
        assert all(
            0.99 * khz < said <= khz
            for one, other in zip(shown, computed, strict=True)
            for said, khz in zip(one, other, strict=True)
        )
    if whose:
        assert [[f"{float(khz):.2f}" for khz in row[4:]] for row in csv_rows(beagleboard, name)] == [
            printed for _, printed in expected
        ], "as printed beside it"


@pytest.mark.parametrize(
    ("whose", "single"), [("stress-matrix-all", ("stress-matrix-{}", 1)), ("enea-all", ("enea-a{}", 2))]
)
def test_latency_by_load_comes_out_again(p2041: dict[str, ReportTable], whose: str, single: tuple[str, int]) -> None:
    """Tables A.2 to A.5 beside each other, and each by itself."""
    expected = [
        (kernel, title, [*map(int, line.split())])
        for kernel, told in published.ENEA.items()
        for title, line in zip(("Min", "Average", "Max"), told, strict=True)
    ]
    table = p2041[whose]
    assert [column.title for column in table.columns][2:] == ["no stress", *published.LOADS[1:]]
    for rows in (
        [[row[0], row[1], *(f"{ns / 1000}" for ns in row[2:])] for row in table.csv_rows()[1:]],
        markdown_rows(markdown(table)),
        latex_rows(latex(table)),
    ):
        assert [
            (
                next(kernel for kernel in published.ENEA if kernel in row[0]),
                row[1],
                [round(number(cell)) for cell in row[2:]],
            )
            for row in rows
        ] == expected
    name, first = single
    each = [row for place in range(4) for row in p2041[name.format(first + place)].csv_rows()[1:]]
    assert [(row[0], [round(ns / 1000) for ns in row[1:]]) for row in each] == [
        (title, numbers) for _, title, numbers in expected
    ]


def test_the_primitives_come_out_again_beside_the_published_ones(tmp_path: Path) -> None:
    runs = published.rtlinux(tmp_path)
    section = primitives.section(make_context(runs, judge(runs)))
    assert section is not None
    table = next(leaf for leaf in section.leaves() if isinstance(leaf, ReportTable) and leaf.name == "primitives")
    titles = [column.title for column in table.columns]
    found = {str(row[0]): dict(zip(titles, row, strict=True)) for row in table.rows}
    for probe, expected in published.RTLINUX.items():
        assert tuple(found[probe][title] for title in ("min", "average", "max")) == expected
        assert tuple(found[probe][f"RTLinux {title}"] for title in ("min", "average", "max")) == expected


def test_figures_hold_what_the_tables_hold(beagleboard: Path) -> None:
    """Figures 2 to 5 and the overlay, of all cells; and the published bars."""
    for probe, table in (("response", 4), ("periodic", 6)):
        expected = published.percentiles(table)
        for whose in ("", "published-"):
            with (beagleboard / "figures" / f"{probe}-{whose}bars.csv").open() as stream:
                rows = list(csv.DictReader(stream))
            assert [float(row["value_ns"]) / 1000 for row in rows] == [us for _, told in expected for us in told[2:]]
        for figure, column in (("histograms", "percent"), ("overlay", "traces")):
            with (beagleboard / "figures" / f"{probe}-{figure}.csv").open() as stream:
                held = list(csv.DictReader(stream))
            for (configuration, implementation), told in expected:
                total = sum(
                    float(row[column])
                    for row in held
                    if (row["configuration"], row["implementation"]) == (configuration, implementation)
                )
                assert total == told[0] if column == "traces" else 94.9 < total <= 100 + 1e-6


def by_the_board(folder: Path, probe: str, load: str = "none") -> list[Recording]:
    """No instrument: as the board saw itself."""
    return [
        recording(
            folder,
            Plan(
                [[np.arange(1000, 1000 + 100 * scale)]],
                run_id=f"{probe}-{configuration}-{implementation}-{load}",
                load=load,
                views=("wakeup_corrected",),
                head={"probe": probe, "configuration": configuration, "implementation": implementation},
            ),
        )
        for scale, (configuration, implementation) in enumerate(
            [("stock", "linux-kernel"), ("rt", "linux-user"), ("stock", "linux-user")], start=1
        )
    ]


def test_several_boards_and_kernels_fill_the_table_of_maxima_and_that_of_kernels(tmp_path: Path) -> None:
    """AT91SAM's maxima by board and kernel, and table 3 of Brown and Martin."""
    runs = [
        recording(
            tmp_path,
            Plan(
                [[np.arange(1000, 1000 * scale)]],
                run_id=f"run-{scale}",
                views=("wakeup_corrected",),
                head={
                    "probe": "response",
                    "configuration": kernel,
                    "board": board,
                    "profile": {
                        "kernel": {
                            "release": f"6.{scale}",
                            "preemption": "preempt-rt" if kernel == "rt" else "preempt",
                        },
                        "kernel_config": {"sha256": f"{scale}" * 64, "of_interest": {"CONFIG_HZ": "250"}},
                        "cmdline": f"quiet {kernel}",
                    },
                },
            ),
        )
        for scale, (board, kernel) in enumerate((("a", "stock"), ("a", "rt"), ("b", "stock")), start=2)
    ]
    context = make_context(runs, judge(runs))
    compared = kernels.section(context)
    assert compared is not None
    (maxima,) = maxima_by_kernel("maxima", "", [own_figure(group, group.kinds[0]) for group in context.groups])
    assert [[cell.value if cell.value != "" else None for cell in maxima.cells(row)] for row in maxima.rows] == [
        ["a", 1999.0, 2999.0],
        ["b", 3999.0, None],
    ]
    (table,) = compared.leaves()
    assert isinstance(table, ReportTable)
    held = {row[0]: row[1:] for row in table.rows}
    assert [column.title for column in table.columns][1:] == ["stock on a", "rt on a", "stock on b"]
    assert held["release"] == ["6.2", "6.3", "6.4"] and held["real-time core"] == ["none"] * 3
    assert held["preemption"] == ["preempt", "preempt-rt", "preempt"] and held["command line"][1] == "quiet rt"
    assert kernels.section(make_context(runs[:1], judge(runs[:1]))) is None


@pytest.mark.parametrize("probe", ["response", "periodic", "timer"])
def test_without_an_instrument_the_same_tables_say_who_measured(tmp_path: Path, probe: str) -> None:
    runs = by_the_board(tmp_path, probe)
    section = getattr(experiment, probe)(make_context(runs, judge(runs)))
    tables = {leaf.name: leaf for leaf in section.leaves() if isinstance(leaf, ReportTable)}
    assert [row[:3] for row in tables[f"{probe}-percentiles"].rows] == [
        ["stock", "linux-user", 300],
        ["rt", "linux-user", 200],
        ["stock", "linux-kernel", 100],
    ]
    assert [row[:2] for row in tables[f"{probe}-across-kernels"].rows] == [
        ["stock", "linux-user"],
        ["rt", "linux-user"],
    ]
    assert not [name for name in tables if "published" in name], "those are of an instrument"
    assert {leaf.name for leaf in section.leaves() if isinstance(leaf, Picture)} == {
        f"{probe}-{figure}" for figure in ("histograms", "bars", "overlay")
    }
    assert "measured by the board itself" in tables[f"{probe}-percentiles"].note
    assert "board" in section.lead


def test_what_an_instrument_saw_is_not_mixed_with_what_the_board_did(tmp_path: Path) -> None:
    runs = [*published.beagleboard(tmp_path, "periodic")[:2], *by_the_board(tmp_path, "periodic")]
    section = experiment.periodic(make_context(runs, judge(runs)))
    assert section is not None
    table = next(leaf for leaf in section.leaves() if isinstance(leaf, ReportTable))
    assert [row[2] for row in table.rows] == [1_018_391, 1_018_387]


def test_each_load_has_figures_of_its_own(tmp_path: Path) -> None:
    runs = [run for load in ("none", "cpu") for run in by_the_board(tmp_path, "timer", load)]
    section = experiment.timer(make_context(runs, judge(runs)))
    assert section is not None
    table = next(leaf for leaf in section.leaves() if isinstance(leaf, ReportTable))
    assert [column.title for column in table.columns][:3] == ["configuration", "implementation", "load"]
    assert len(table.rows) == 6
    (folded,) = [part for part in section.parts if isinstance(part, Folded)]
    assert [part.name for part in folded.parts if isinstance(part, Picture)] == [
        "timer-cpu-histograms",
        "timer-cpu-bars",
        "timer-cpu-overlay",
    ]


def test_two_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [
        recording(
            tmp_path,
            Plan(
                [[np.arange(1000, 1200)]],
                run_id=f"run-{method}-{name}",
                views=("wakeup_corrected",),
                head={"configuration": name, "parameters": {"method": method, "interval_ns": 10**6}},
            ),
        )
        for name in ("stock", "rt")
        for method in ("clock_nanosleep-abs", "nanosleep")
    ]
    runs += [
        recording(
            tmp_path,
            Plan(
                [[np.arange(1000, 1300)]],
                run_id="slower",
                views=("wakeup_corrected",),
                head={"configuration": "rt", "parameters": {"method": "nanosleep", "interval_ns": 2 * 10**6}},
            ),
        )
    ]
    section = experiment.timer(make_context(runs, judge(runs)))
    assert section is not None
    table = next(leaf for leaf in section.leaves() if isinstance(leaf, ReportTable))
    said = [tuple(row[:3]) for row in table.rows]
    assert len(set(said)) == len(said) == 5
