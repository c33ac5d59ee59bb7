# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of primitives: what the probes recorded, beside what was published, with nothing lost on the way."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fastenough.analysis import judge
from fastenough.model import Outcome
from fastenough.recording import LoadStated, Recording, read_recording
from fastenough.reference import find_reference
from fastenough.report.context import Context, make_context
from fastenough.report.document import Leaf, Picture, ReportTable, Section
from fastenough.report.overview import make_overview
from fastenough.report.sections import jitter, primitives, throughput
from tests.support.presence import present
from tests.support.privileges import needs_root

RUNS = {
    "switch": ["switch", "-l500"],
    "semaphore": ["semaphore", "-l1500", "-i200us"],
    "condvar": ["condvar", "-D600ms", "--report=100ms"],
    "inversion": ["inversion", "-l10", "--medium=1ms"],
    "fifo": ["fifo", "--by=pipe", "-l60", "--largest=104857600"],
    "shm": ["shm", "--placement=same", "-D400ms", "--largest=10240"],
    "jitter": ["jitter", "-D1s", "--report=100ms"],
}

pytestmark = [pytest.mark.untimed, needs_root("real-time policies")]


@pytest.fixture(scope="module")
def recordings(probe_binary: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    folder = tmp_path_factory.mktemp("primitives")
    measured = {}
    for name, arguments in RUNS.items():
        subprocess.run(
            [probe_binary, *arguments, "--quiet", "--allow-difference", f"--record={folder / name}"],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        measured[name] = read_recording(folder / name)
        assert measured[name].outcome is Outcome.COMPLETED
    return measured


@pytest.fixture(scope="module")
def context(recordings: dict[str, Recording]) -> Context:
    runs = list(recordings.values())
    return make_context(runs, judge(runs, None))


def _leaves(section: Section | None) -> list[Leaf]:
    return [] if section is None else list(section.leaves())


def _tables(section: Section | None) -> dict[str, ReportTable]:
    assert section is not None
    return {part.name: part for part in section.leaves() if isinstance(part, ReportTable)}


def _pictures(section: Section | None) -> dict[str, Picture]:
    assert section is not None
    return {part.name: part for part in section.leaves() if isinstance(part, Picture)}


def _rows(table: ReportTable) -> list[dict[str, Any]]:
    header, *rows = table.csv_rows()
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_the_table_holds_what_was_recorded(context: Context, recordings: dict[str, Recording]) -> None:
    rows = _rows(_tables(primitives.section(context))["primitives"])
    assert [row["primitive"] for row in rows] == ["switch", "inversion", "inversion", "semaphore", "condvar"]
    for row in rows:
        recording = recordings[row["primitive"]]
        (series,) = [
            one
            for one in recording.series
            if all(f"{name} {value}" in row["measured"] for name, value in one.labels.items())
        ]
        values = recording.totals[series.id]
        assert (row["n"], row["min"], row["max"]) == (values.total, values.minimum, values.maximum)


def test_published_figures_stand_beside_the_same_act_only(context: Context) -> None:
    rows = _rows(_tables(primitives.section(context))["primitives"])
    beside = {
        (row["primitive"], row["measured"]): (row["RTLinux min"], row["RTLinux average"], row["RTLinux max"])
        for row in rows
    }
    assert beside == {
        ("switch", "switch"): (7744, 8194, 10304),
        ("semaphore", "wake, placement same"): (9056, 10097, 13952),
        ("condvar", "wake, placement same"): (None, None, None),
        ("inversion", "recovery, inheritance yes, medium 1 ms"): (1632, 1902, 20096),
        ("inversion", "recovery, inheritance no, medium 1 ms"): (None, None, None),
    }


def test_every_series_says_its_two_events(context: Context, recordings: dict[str, Recording]) -> None:
    rows = _rows(_tables(primitives.section(context))["primitives-events"])
    for name in ("switch", "semaphore", "condvar", "inversion"):
        series = recordings[name].series[0]
        assert {"primitive": name, "series": series.name, "from": series.from_event, "to": series.to_event} in rows


def test_throughput_holds_every_size_with_its_fate(context: Context, recordings: dict[str, Recording]) -> None:
    tables = _tables(throughput.section(context))
    rows = _rows(tables["throughput-fifo-pipe"])
    series = recordings["fifo"].series
    assert len(rows) == len(series)
    assert sum(bool(row["refused"]) for row in rows) == sum(one.refused is not None for one in series)
    assert {row["published [MB/s]"] for row in rows} >= {"604.148", "479.607", "224.082", "kernel panic"}
    for one in recordings["shm"].series:
        values, size = recordings["shm"].totals[one.id], present(one.bytes, "size")
        (row,) = [row for row in _rows(tables["throughput-shm"]) if row["size of a block [B]"] == size]
        assert row["n"] == values.total
        assert row["slowest [MB/s]"] == pytest.approx(size / present(values.maximum, "maximum") * 1000)


def test_without_a_latency_the_first_screen_tells_speeds(recordings: dict[str, Recording]) -> None:
    runs = [recordings["fifo"], recordings["shm"]]
    first = make_overview(make_context(runs, judge(runs, None)))
    assert first.table is not None and first.figure is None
    rows = _rows(first.table)
    for one, row in zip(runs, (rows[0], rows[-1]), strict=True):
        held = [series for series in one.series if series.refused is None]
        assert row["slowest [MB/s]"] >= min(
            (series.bytes or 0) / (one.totals[series.id].maximum or 1) * 1000 for series in held
        )
        assert 0 < row["slowest [MB/s]"] <= row["best median [MB/s]"]
    assert sum(row["n"] for row in rows) == sum(one.totals[series.id].total for one in runs for series in one.series)


def test_the_figures_are_drawn(context: Context) -> None:
    assert set(_pictures(throughput.section(context))) == {"throughput-fifo-pipe", "throughput-shm"}
    assert set(_pictures(primitives.section(context))) == {"condvar-same"}
    (picture,) = _pictures(jitter.section(context)).values()
    assert "traffic switched off" in picture.svg and " 0.5 s" in picture.caption


def test_jitter_is_told_apart_by_its_traffic(context: Context, recordings: dict[str, Recording]) -> None:
    rows = _rows(_tables(jitter.section(context))["jitter"])
    assert [row["traffic"] for row in rows] == ["on", "off"]
    assert sum(row["n"] for row in rows) == sum(
        recordings["jitter"].totals[series.id].total for series in recordings["jitter"].named("wakeup_corrected")
    )


def _others(recordings: Iterable[Recording], **changes: Any) -> list[Recording]:
    """The same runs under another load, or on another board."""
    return [
        replace(one, head=replace(one.head, run_id=f"{one.run_id}-{number}", **changes))
        for number, one in enumerate(recordings, 2)
    ]


@pytest.mark.parametrize(
    ("changes", "word"), [({"load": LoadStated("cpu")}, "load cpu"), ({"board": "another"}, "another")]
)
def test_other_loads_and_boards_have_lines_and_files_of_their_own(
    recordings: dict[str, Recording], changes: dict[str, Any], word: str
) -> None:
    runs = [replace(one, head=replace(one.head, board="board", load=LoadStated("none"))) for one in recordings.values()]
    both = make_context([*runs, *_others(runs, **changes)], judge([], None))
    drawn = [part for make in (primitives, jitter, throughput) for part in _leaves(make.section(both))]
    names = [part.name for part in drawn if isinstance(part, Picture)]
    assert sorted(names) == [
        *("condvar-same", "condvar-same-2", "jitter-real-time", "jitter-real-time-2"),
        *("throughput-fifo-pipe", "throughput-shm"),
    ]
    rows = _rows(_tables(throughput.section(both))["throughput-shm"])
    assert len({row["channel"] for row in rows}) == 2
    assert any(word in row["channel"] for row in rows)
    for make, keys in ((primitives, ("primitive", "measured", "load")), (jitter, ("task", "load", "traffic"))):
        rows = next(_rows(part) for part in _leaves(make.section(both)) if isinstance(part, ReportTable))
        assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows)


def test_without_primitives_there_is_no_section() -> None:
    empty = make_context([], judge([], None))
    assert primitives.section(empty) is throughput.section(empty) is jitter.section(empty) is None


def test_the_published_figures_are_whole() -> None:
    figures = find_reference("rtlinux").figures
    speeds = [one for one in figures if one.size]
    assert (len(figures) - len(speeds), len(speeds)) == (6, 35)
    assert all(one.location.startswith("table") for one in figures)
