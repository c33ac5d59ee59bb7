# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures over hours to years: every maximum is drawn, the overall maximum is said wherever it lies, gaps stay gaps."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.long_term import FIVE_MINUTES_NS, STRETCHES_NS, Part, five_minutes, stretch_for, stretches
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_lowest
from fastenough.report import write_report
from fastenough.report.context import make_context
from fastenough.report.document import Folded, Picture
from fastenough.report.sections import long_term
from tests.support.recordings import WALL_NS, Plan, recording

pytestmark = pytest.mark.check

HOUR_NS = 3600 * 10**9
FIRST = -(-WALL_NS // FIVE_MINUTES_NS) * FIVE_MINUTES_NS
"""A five minutes of the wall clock begins there."""


def _run(
    folder: Path, name: str, maxima_us: list[list[int]], begin_wall_ns: int = FIRST, interval_ns: int = FIVE_MINUTES_NS
) -> Recording:
    """Intervals of three values each, the greatest as given, by CPU; from any begin on the wall clock."""
    values = [[np.array([2_000, 3_000, us * 1000], dtype=np.int64) for us in cpu] for cpu in maxima_us]
    made = recording(folder, Plan(values, run_id=name, interval_ns=interval_ns, views=("wakeup",), begin_ns=0))
    timeline, shift = made.timeline, begin_wall_ns - WALL_NS
    np.add(timeline.begin_wall_ns, shift, out=timeline.begin_wall_ns)
    np.add(timeline.end_wall_ns, shift, out=timeline.end_wall_ns)
    object.__setattr__(made.head, "begin", type(made.head.begin)(made.head.begin.mono_ns, begin_wall_ns))
    return made


def _parts(*runs: Recording) -> list[Part]:
    return [(run, series) for run in runs for series in run.series]


def test_five_minutes_hold_the_greatest_of_all_cpus(tmp_path: Path) -> None:
    run = _run(tmp_path, "one", [[10, 20, 90, 5], [11, 19, 30, 6]])
    found = five_minutes(_parts(run))
    assert found is not None
    assert found.maximum_ns.tolist() == [11_000, 20_000, 90_000, 6_000]
    assert found.begin_wall_ns.tolist() == [FIRST + place * FIVE_MINUTES_NS for place in range(4)]
    assert (found.worst_ns, found.worst_cpu) == (90_000, 0)
    assert found.worst_wall_ns == FIRST + 3 * FIVE_MINUTES_NS
    assert found.span_ns == 4 * FIVE_MINUTES_NS


def test_shorter_intervals_are_gathered_and_gaps_stay(tmp_path: Path) -> None:
    """Minutes: five of them make one; a second run comes an hour later."""
    one = _run(tmp_path, "one", [[10, 50, 20, 10, 10, 7, 7, 7, 7, 8]], interval_ns=FIVE_MINUTES_NS // 5)
    other = _run(tmp_path, "other", [[33]], FIRST + HOUR_NS)
    found = five_minutes(_parts(other, one))
    assert found is not None and found.maximum_ns.tolist() == [50_000, 8_000, 33_000]
    assert found.begin_wall_ns.tolist() == [FIRST, FIRST + FIVE_MINUTES_NS, FIRST + HOUR_NS]


def test_longer_intervals_are_drawn_as_long_as_they_took(tmp_path: Path) -> None:
    """Nothing of an hour that was measured is a gap, whatever a clock that was set made of its length."""
    run = _run(tmp_path, "hours", [[10, 50, 20]], FIRST + 17 * 10**9, interval_ns=HOUR_NS)
    run.timeline.end_wall_ns[-1] += 10**6 * HOUR_NS
    found = five_minutes(_parts(run))
    assert found is not None and found.longest_ns == HOUR_NS
    assert found.begin_wall_ns.tolist() == [FIRST + place * FIVE_MINUTES_NS for place in range(36)]
    assert found.maximum_ns.tolist() == [10_000] * 12 + [50_000] * 12 + [20_000] * 12


def test_the_greatest_of_a_stretch_is_exact(tmp_path: Path) -> None:
    run = _run(tmp_path, "one", [[10, 20, 91, 5], [11, 19, 30, 93]])
    (stretch,) = stretches(_parts(run), HOUR_NS)
    assert stretch.maximum_ns == 93_000


def test_nothing_is_nothing(tmp_path: Path) -> None:
    empty = recording(tmp_path, Plan([[np.empty(0, dtype=np.int64)]], interval_ns=10**9))
    assert five_minutes(_parts(empty)) is None
    assert stretches(_parts(empty), HOUR_NS) == []


def test_stretches_hold_every_value_once(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    run = _run(tmp_path, "one", random.integers(5, 900, (2, 40)).tolist(), FIRST + 7 * FIVE_MINUTES_NS)
    held = stretches(_parts(run), HOUR_NS)
    assert sum(stretch.n for stretch in held) == 2 * 40 * 3
    assert [stretch.begin_wall_ns for stretch in held] == sorted(
        {int(wall_ns) // HOUR_NS * HOUR_NS for wall_ns in run.timeline.begin_wall_ns}
    )
    worst_ns = max(run.totals[series.id].maximum or 0 for series in run.series)
    tops = [(int(bucket_lowest(stretch.index, 4)[-1]), int(bucket_highest(stretch.index, 4)[-1])) for stretch in held]
    assert any(low <= worst_ns <= high for low, high in tops), "the greatest value lies in the last bucket of one"
    assert all(high <= worst_ns * 1.07 for _, high in tops)


@pytest.mark.parametrize("hours", [1, 3, 30, 500, 9000])
def test_a_ridge_has_no_more_rows_than_can_be_told_apart(hours: int) -> None:
    length_ns = stretch_for(hours * HOUR_NS, 40)
    assert length_ns in STRETCHES_NS and hours * HOUR_NS <= 40 * length_ns
    shorter = [other for other in STRETCHES_NS if other < length_ns]
    assert not shorter or hours * HOUR_NS > 40 * shorter[-1]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_each_window_shows_more_and_all_tell_the_worst(tmp_path: Path) -> None:
    """40 hours: a figure of the last 30 h and one of the month; the worst is older than the first of them shows."""
    maxima = np.random.default_rng(1).integers(20, 60, 480).tolist()
    maxima[4] = 250
    runs = [_run(tmp_path, "one", [maxima])]
    write_report(runs, judge(runs), tmp_path / "report")
    figures = sorted(path.name for path in (tmp_path / "report" / "figures").glob("maxima-*.svg"))
    assert figures == ["maxima-1-1.svg", "maxima-1-2.svg"]
    for name in figures:
        assert "overall maximum: 250.0 µs, CPU 0" in (tmp_path / "report" / "figures" / name).read_text()
    shown = [_rows(tmp_path / "report" / "figures" / f"maxima-1-{window}.csv") for window in (1, 2)]
    assert [len(rows) for rows in shown] == [360, 480]
    assert [float(row["maximum_ns"]) for row in shown[1]] == [us * 1000 for us in maxima]
    ridge = _rows(tmp_path / "report" / "figures" / "ridge-1.csv")
    assert sum(int(row["values"]) for row in ridge) == 3 * 480
    assert len({row["begin_utc"] for row in ridge}) == len(
        {int(wall_ns) // stretch_for(480 * FIVE_MINUTES_NS, 39) for wall_ns in runs[0].timeline.begin_wall_ns}
    )


def _ridges(parts: Iterable[object]) -> list[Picture]:
    return [part for part in parts if isinstance(part, Picture) and part.name.startswith("ridge")]


def test_no_stretch_is_left_out_of_the_ridge_where_the_first_is_a_part_of_one(tmp_path: Path) -> None:
    """20 hours are 40 half hours, of which 41 are touched where they begin within one."""
    half_hour_ns = 6 * FIVE_MINUTES_NS
    runs = [_run(tmp_path, "one", [[90, *[20] * 239]], -(-FIRST // half_hour_ns) * half_hour_ns + FIVE_MINUTES_NS)]
    section = long_term.section(make_context(runs, judge(runs)))
    assert section is not None
    (ridge,) = _ridges(section.parts)
    assert "n = 720" in ridge.caption


def test_a_ridge_has_a_linear_axis_and_a_logarithmic_one_folded(tmp_path: Path) -> None:
    runs = [_run(tmp_path, "one", [[90, *[20] * 239]])]
    section = long_term.section(make_context(runs, judge(runs)))
    assert section is not None
    (linear,) = _ridges(section.parts)
    (folded,) = (part for part in section.parts if isinstance(part, Folded))
    (logarithmic,) = _ridges(folded.parts)
    assert linear.name == "ridge-1" and "logarithmic; the dots" not in linear.svg
    assert logarithmic.name == "ridge-1-logarithmic" and "logarithmic; the dots" in logarithmic.svg
    assert linear.data == logarithmic.data


def test_an_hour_is_no_long_term(tmp_path: Path) -> None:
    short, long = (_run(tmp_path, name, [[10] * minutes]) for name, minutes in (("short", 12), ("long", 13)))
    assert long_term.section(make_context([short], judge([short]))) is None
    assert long_term.section(make_context([long], judge([long]))) is not None


def test_no_maximum_is_drawn_lower_than_it_is(tmp_path: Path) -> None:
    """More five minutes than columns: each column shows the greatest of those it stands for."""
    maxima = np.random.default_rng(2).integers(20, 60, 5000).tolist()
    maxima[1234] = 90
    found = five_minutes(_parts(_run(tmp_path, "one", [maxima])))
    assert found is not None
    edges, heights = long_term._columns(found, FIRST, FIRST + 5000 * FIVE_MINUTES_NS)
    assert heights.size <= 1200 and edges.size == heights.size + 1
    assert np.nanmax(heights) == 90 and float(np.nanmin(heights)) >= 20
