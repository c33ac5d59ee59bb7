# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures: what was charged is hatched, neighbours share axes, no colour stands twice in a legend."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.typing import ColorType

from fastenough.analysis import judge, words
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.report import plot, write_report
from fastenough.report.context import Context, make_context
from fastenough.report.document import Folded, ReportTable
from fastenough.report.latency import (
    MOST_NAMED,
    HistogramLine,
    Scale,
    charged,
    latency_data,
    latency_figure,
    line_of,
    lines_by_cpu,
)
from fastenough.report.overview import make_overview
from fastenough.report.sections import heat_map
from fastenough.report.sections.bounds import rate_bounds
from tests.support.presence import present
from tests.support.recordings import COUNTERS, Plan, latencies, recording

pytestmark = pytest.mark.check

STALL = 500


def _context(folder: Path, *plans: Plan, limit_ns: int | None = None) -> Context:
    runs = [recording(folder, plan) for plan in plans]
    return make_context(runs, judge(runs, Requirement(limit_ns) if limit_ns else None))


def _stalled(folder: Path) -> Recording:
    """A run of whose periods 500 were missed in one stall of 100 ms: the corrected series holds a value for each."""
    plain = latencies(1, cpus=1, intervals=1, per_interval=2000)[0][0]
    plain[0] = STALL * 200_000
    missed = np.arange(1, STALL, dtype=np.int64) * 200_000
    both = Plan([[np.concatenate([plain, missed])]], run_id="both", period_ns=200_000, missed=STALL - 1)
    return recording(folder, both)


@pytest.fixture
def stalled(tmp_path: Path) -> HistogramLine:
    context = make_context([one := _stalled(tmp_path)], judge([one]))
    (entry,) = context.entries
    line = line_of(entry)
    plain = latencies(1, cpus=1, intervals=1, per_interval=2000)[0][0]
    plain[0] = STALL * 200_000
    measured = make_context([two := recording(tmp_path, Plan([[plain]], run_id="plain"))], judge([two]))
    return HistogramLine(line.name, line.values, measured.entries[0].kind.all_cpus)


def _legend(figure: Figure) -> list[tuple[str, str]]:
    """Label and colour of each entry."""
    (legend,) = figure.legends
    return [
        (text.get_text(), to_hex(_colour(handle)))
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
    ]


def _colour(handle: Artist | None) -> ColorType:
    """Of a line its colour, of an area that of its edge."""
    if isinstance(handle, Line2D):
        return handle.get_color()
    assert isinstance(handle, Patch), handle
    return handle.get_edgecolor()


def test_what_was_charged_is_counted_and_hatched(stalled: HistogramLine) -> None:
    us, counts, added = charged(stalled)
    assert (counts.sum(), added.sum()) == (2000 + STALL - 1, STALL - 1)
    assert (us[-1], counts[-1], added[-1]) == (100_000, 1, 0), "the stall itself was measured"
    assert added[np.abs(us - 20_000).argmin()] == 1
    rows = latency_data([stalled])[1]
    assert sum(row[3] for row in rows) == STALL - 1
    figure = latency_figure("", [stalled], Scale.over([stalled.values], plot.log_axis))
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 1
    assert "charged for missed periods, not measured" in [label for label, _ in _legend(figure)]
    assert "<pattern" in plot.picture(figure, "x", "", ((), [])).svg


@pytest.mark.parametrize(("end_us", "ticks"), [(1_000, {10, 20, 50, 100}), (100_000, {10, 100, 1_000, 10_000})])
def test_ticks_of_an_axis_that_a_limit_lengthens_are_those_of_its_whole_length(end_us: int, ticks: set[int]) -> None:
    _, axes = plot.new_figure("", plot.HALF_IN)
    axes.set_xscale("log")
    axes.set_xlim(7, 200)
    plot.plain_log_axis(axes.xaxis)
    axes.set_xlim(7, end_us)
    inside = {tick for tick in axes.get_xticks() if 7 <= tick < end_us}
    assert ticks <= inside and (20 in inside) == (20 in ticks)


def test_without_missed_periods_nothing_is_hatched(tmp_path: Path) -> None:
    context = _context(tmp_path, Plan(latencies(1)))
    lines = lines_by_cpu(context.entries[0])
    figure = latency_figure("", lines, Scale.over([line.values for line in lines], plot.linear_axis))
    assert not [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert charged(lines[0])[2].sum() == 0


@pytest.mark.parametrize("cpus", [2, MOST_NAMED, MOST_NAMED + 5])
def test_no_colour_stands_twice_and_the_unnamed_are_grey(tmp_path: Path, cpus: int) -> None:
    context = _context(tmp_path, Plan(latencies(1, cpus=cpus, intervals=2, per_interval=300)), limit_ns=100_000)
    lines = lines_by_cpu(context.entries[0])
    scale = Scale.over([line.values for line in lines], plot.linear_axis, [100_000.0], reach=math.inf)
    figure = latency_figure("", lines, scale)
    legend = _legend(figure)
    colours = [colour for _, colour in legend]
    assert len(colours) == len(set(colours))
    named = [label for label, _ in legend if label.startswith("CPU")]
    assert len(named) == min(cpus, MOST_NAMED)
    assert ("limit 100 µs", plot.LIMIT) in legend
    if cpus > MOST_NAMED:
        assert (f"{cpus - MOST_NAMED} others", plot.UNNAMED) in legend
        greatest = max(lines, key=lambda line: line.values.maximum_ns or 0)
        assert any(label.startswith(f"{greatest.name}:") for label in named)


@pytest.mark.parametrize(
    "name",
    [
        "load none",
        "load none · stock 6.12.43+deb13-rt-amd64 · linux-user",
        "load none · parameters " + "method clock_nanosleep-abs, interval 1 ms, " * 5,
        "one" * 60,
        "costs $5 and $6",
    ],
)
def test_a_legend_is_as_wide_as_its_figure_at_most(name: str) -> None:
    figure, _ = plot.new_figure("", (5.8, 4.0))
    plot.legend_below(figure, [Line2D([], [], label=f"{name} {place}") for place in range(4)])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    seen = present(legend.get_tightbbox(), "extent of the legend")
    assert seen.x0 >= 0 and seen.x1 <= figure.bbox.width
    assert "".join(legend.get_texts()[1].get_text().split()) == "".join(f"{name} 1".split()), "nothing is left out"


def test_neighbours_share_their_axes_and_their_colours(tmp_path: Path) -> None:
    plans = [
        Plan(latencies(seed, intervals=3, tail_us=tail), run_id=f"run-{load}", load=load)
        for seed, (load, tail) in enumerate((("none", 40.0), ("cpu", 200.0)))
    ]
    context = _context(tmp_path, *plans)
    assert [entry.name for entry in context.entries] == ["load none", "load cpu"]
    for entry in context.entries:
        assert [other.name for other in context.beside(entry)] == ["load none", "load cpu"]
    together = [entry.kind.all_cpus for entry in context.entries]
    scale = Scale.over(together, plot.linear_axis)
    axes = [latency_figure(entry.name, lines_by_cpu(entry), scale).axes[0] for entry in context.entries]
    assert axes[0].get_xlim() == axes[1].get_xlim() and axes[0].get_ylim() == axes[1].get_ylim()
    maps = [heat_map._Map.of(context, entry) for entry in context.entries]
    drawn = [heat_map.heat_figure(one, maps) for one in maps]
    for get in ("get_xlim", "get_ylim"):
        assert getattr(drawn[0].axes[0], get)() == getattr(drawn[1].axes[0], get)()
    assert len({figure.axes[0].collections[0].norm.vmax for figure in drawn}) == 1


def test_a_single_sample_is_seen_in_the_heat_map() -> None:
    """Contrast against the ground as WCAG has it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    one, ground = luminance(to_hex(plot.DENSITY(0))), luminance(plot.GROUND)
    assert (ground + 0.05) / (one + 0.05) > 2


def test_no_axis_counts_half_samples(tmp_path: Path) -> None:
    context = _context(tmp_path, Plan(latencies(1, intervals=2, per_interval=50)))
    write_report(context.recordings, context.assessment, tmp_path / "report")
    for path in (tmp_path / "report" / "figures").glob("*.svg"):
        if not path.name.startswith("heat"):
            ticks = re.findall(r">(0\.\d+)</text>", path.read_text())
            assert not [tick for tick in ticks if 0 < float(tick) < 1], path.name


def test_figures_of_one_load_are_titled_by_what_differs(tmp_path: Path) -> None:
    values = latencies(1, cpus=1, intervals=2, per_interval=100)
    series = [{"labels": {"inheritance": word}} for word in ("yes", "no")]
    plans = [
        Plan(
            values,
            run_id=f"run-{place}",
            load="none",
            views=("recovery",),
            series=one,
            head={"probe": "inversion", "parameters": {"interval_ns": place + 1}},
        )
        for place, one in enumerate(series)
    ]
    context = _context(tmp_path, *plans)
    names = [entry.name for entry in context.entries]
    assert len(set(names)) == 2
    assert "inheritance yes" in names[0] and "inheritance no" in names[1] and "load" not in names[0]


def test_a_figures_numbers_are_beside_it(tmp_path: Path) -> None:
    context = _context(tmp_path, Plan(latencies(1, intervals=4, per_interval=250)))
    write_report(context.recordings, context.assessment, tmp_path / "report")
    values = context.entries[0].kind.all_cpus
    with (tmp_path / "report" / "figures" / "latency-1.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert sum(int(row["samples"]) for row in rows) == values.n
    assert max(int(row["latency_us"]) for row in rows) == int((values.maximum_ns or 0) // 1000)
    with (tmp_path / "report" / "figures" / "heat-1.csv").open() as stream:
        bands = list(csv.reader(stream))[2:]
    assert sum(int(cell) for band in bands for cell in band[2:] if cell) == values.n


def test_the_first_table_counts_each_load_by_itself(tmp_path: Path) -> None:
    plans = [
        Plan(
            latencies(seed, cpus=2, intervals=4, per_interval=500),
            run_id=f"run-{load}",
            load=load,
            begin_ns=seed * 10**10,
        )
        for seed, load in enumerate(("none", "cpu"))
    ]
    context = _context(tmp_path, *plans, limit_ns=20_000)
    table = make_overview(context).table
    assert table is not None
    for plan, (name, n, above, p999, maximum_ns, excluded) in zip(plans, table.rows, strict=True):
        values = np.sort(np.concatenate([interval for cpu in plan.values for interval in cpu]))
        assert (name, n, maximum_ns) == (plan.load, values.size, values[-1])
        assert int((values > 20_000).sum()) <= above.value <= int((values > 19_980).sum())
        assert values[int(np.ceil(0.999 * n)) - 1] <= p999.value <= values[int(np.ceil(0.999 * n)) - 1] * 1.001 + 1
        assert excluded.value == pytest.approx(-np.expm1(np.log(0.05) / (n / 2))), "of each CPU by itself"


def test_broken_data_exclude_nothing(tmp_path: Path) -> None:
    table = make_overview(_context(tmp_path, Plan(latencies(1), lost=3), limit_ns=100_000)).table
    assert table is not None and table.rows[0][-1].value is None


def test_a_failure_and_broken_data_of_one_kind_exclude_nothing(tmp_path: Path) -> None:
    """The first run fails; the second is of a throttled board.  The first alone has a bound."""
    throttled = Plan(latencies(2), run_id="run-2", counters=COUNTERS | {"throttled": 3})
    context = _context(tmp_path, Plan(latencies(1)), throttled, limit_ns=20_000)
    assert context.assessment.verdict is Verdict.FAIL
    table, section = make_overview(context).table, rate_bounds(context)
    assert table is not None and section is not None
    assert [row[-1].value for row in table.rows] == [None]
    parts = [part for whole in section.parts for part in (whole.parts if isinstance(whole, Folded) else [whole])]
    tables = [part for part in parts if isinstance(part, ReportTable)]
    bounds = {str(row[2]): row[-2:] for table in tables if table.name.startswith("bounds") for row in table.rows}
    assert set(bounds) == {"all", "run-1", "run-2"}
    assert bounds["all"] == bounds["run-2"] == [None, None] and None not in bounds["run-1"]


@pytest.mark.parametrize(("limit_us", "scale"), [(30, "linear"), (5_000, "log")])
def test_the_limit_is_always_on_the_first_figure(tmp_path: Path, limit_us: int, scale: str) -> None:
    context = _context(tmp_path, Plan(latencies(1)), limit_ns=limit_us * 1000)
    figure = make_overview(context).figure
    assert figure is not None
    assert f"limit {words.exact_time(limit_us * 1000)}" in figure.svg
    assert (", logarithmic" in figure.svg) == (scale == "log")


def test_a_figure_is_drawn_once_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """And laid out once for all of them."""
    figure, _ = plot.new_figure("a figure")
    calls: list[RendererBase] = []

    def draw(renderer: RendererBase) -> None:
        calls.append(renderer)
        Figure.draw(figure, renderer)

    monkeypatch.setattr(figure, "draw", draw)
    assert plot.picture(figure, "name", "caption", ((), ())).svg.startswith("<svg")
    assert len(calls) == 3
