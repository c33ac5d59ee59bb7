# SPDX-License-Identifier: GPL-2.0-or-later
"""Other tools' outputs: what they say is what is imported; what is cut, killed, changed or foreign is refused."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.bootstrap import ResampledQuantiles
from fastenough.analysis.compare import compare
from fastenough.analysis.estimates import estimates
from fastenough.analysis.excluded_runs import RequiredOfRun, excluded_run
from fastenough.analysis.extremal import extremal_indices
from fastenough.analysis.longer_runs import longer_recording
from fastenough.analysis.maxima import maxima_of
from fastenough.analysis.measures import QUANTILES, Measures, measure, quantile_of, quantile_range
from fastenough.analysis.merged import merge_samples
from fastenough.analysis.uncertainty import budget_of
from fastenough.cli.imports import _import_runs, _store_runs
from fastenough.cli.show import _print_uncertainty
from fastenough.exchange import ImportedRun, Source, read_import, recording_lines
from fastenough.exchange import read_source as source_at
from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError, Outcome, Requirement, Role, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.recording.building import line_bytes
from fastenough.recording.lines import printable
from fastenough.report import overview
from fastenough.report.context import make_context
from fastenough.report.document import Picture, ReportTable
from fastenough.report.gate_summary import _quantiles as _quantiles_as_markdown
from fastenough.report.latency import _maximum_text
from fastenough.report.sections import heat_map, latency_plot
from fastenough.report.sections.bounds import rate_bounds
from fastenough.report.sections.extremes import _changes as _changes_of_maxima
from fastenough.report.source_tables import maxima_by_kernel, own_figure, stress_table
from fastenough.store import Store
from fastenough.web.pages.compare import _table as _compared_table
from tests.support.cli_calls import ROOT, command_line
from tests.support.exchange_reading import Told, told
from tests.support.presence import present

CASES = sorted((ROOT / "tests/cases/exchange").iterdir())
MORE = os.environ.get("FASTENOUGH_PEER_SAMPLES")
"""A folder of further files, of all of which the same is asked."""
FURTHER = (
    sorted(
        path
        for path in Path(MORE).rglob("*")
        if path.is_file() and path.stat().st_size > 300 and path.suffix != ".md" and path.name != "hwlatdetect.txt"
    )
    if MORE
    else []
)
ALL = CASES + FURTHER
NO_END = ("quiet", "live", "ct24-q", "deadline", "break", "spike", "raw", "csv", "rt-app", "top")
"""Files of which nothing says where they end: cut between two lines, they are whole ones with fewer threads."""
US = 1000
"""The unit of the values of those files that state none."""
CHECKED = (
    "all",
    "2.4-histogram",
    "2.4.json",
    "0.3.json",
    "rtla-us",
    "rtla-ns",
    "osnoise.txt",
    "osadl",
    "xenomai-3",
    "stress",
    "rteval",
    "percentiles",
    "latmus-gnuplot",
)
"""Files that say a count twice."""


def read_source(path: Path) -> Source:
    return source_at(path, US)


def of_bytes(content: bytes, name: str = "file") -> ImportedRun:
    return read_import(Source(name, content, US))


def told_by(found: ImportedRun) -> list[Told]:
    return [
        (one.count, one.in_ns(one.minimum), one.in_ns(one.maximum), one.in_ns(one.mean), one.overflow)
        for one in found.series
    ]


def recorded(path: Path, folder: Path) -> Recording:
    source = read_source(path)
    target = folder / "recording.jsonl"
    target.write_bytes(b"".join(map(line_bytes, recording_lines(read_import(source), source, "run-1"))))
    return read_recording(target)


def close(one: Told, other: Told) -> bool:
    return (
        one[0] == other[0]
        and one[4] == other[4]
        and all(
            (a is None) == (b is None) and (a is None or b is None or abs(a - b) <= 1e-6 * max(abs(a), 1))
            for a, b in zip(one[1:4], other[1:4], strict=True)
        )
    )


def test_all_importers_have_a_case() -> None:
    names = " ".join(path.name for path in CASES)
    for tool in (
        "cyclictest-2.4.json",
        "cyclictest-2.10",
        "rtla-us",
        "rtla-ns",
        "osnoise",
        "jitterdebugger-0.3.raw",
        "oslat",
        "hwlatdetect",
        "xenomai-gnuplot",
        "stress-ng",
        "osadl",
        "pmqtest",
        "rt-app",
        "rtla-top-6.1",
        "rtla-top-live",
        "rtla-osnoise-top",
        "rtla-stopped",
        "rt-dataset",
        "oslat-2.8-ns.txt",
        "oslat-2.8-ns.json",
        "oslat-2.8.json",
        "cyclicdeadline-2.8.json",
        "signaltest-2.4.json",
        "signaltest-2.4-quiet",
        "cyclicdeadline-2.4-quiet",
        "pmqtest-2.4.txt",
        "sigwaittest-2.4-live",
        "rteval-cyclictest",
        "rteval-timerlat",
        "latmus.txt",
        "latmus-gnuplot",
        "perf-sched",
        "percentiles.hgrm",
    ):
        assert tool in names


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_what_a_tool_says_is_what_is_imported(path: Path) -> None:
    found, expected = told_by(read_import(read_source(path))), told(path)
    if path.name.endswith(".csv"):
        expected = sorted(expected, key=repr) if len(expected) != len(found) else expected
    assert len(found) == len(expected)
    assert [pair for pair in zip(found, expected, strict=True) if not close(*pair)] == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_recording_holds_it_and_nothing_more(path: Path, tmp_path: Path) -> None:
    source = read_source(path)
    found, recording = read_import(source), recorded(path, tmp_path)
    assert recording.head.marks == {"imported"} and recording.head.origin is not None
    assert (recording.head.origin.text or "") == printable(source.text)
    for number, series in enumerate(found.series):
        total, one = recording.totals[number], recording.series[number]
        if series.count is not None:
            assert total.total + recording.lost(number) == series.count
        for held, told_value in ((total.minimum, series.minimum), (total.maximum, series.maximum)):
            assert told_value is None or held == told_value
        for low, high, count in series.buckets:
            inside = (total.lowest() <= high) & (total.highest() >= low)
            assert int(total.count[inside].sum()) >= count, one.name
        if series.mean is not None and total.mean is not None:
            assert float(series.mean) - float(series.mean_step) <= total.mean <= float(series.mean + series.mean_step)


def _cuts(path: Path) -> Iterator[bytes]:
    """Behind and within each of its lines; of a long file, of the last ones and some before."""
    lines = path.read_bytes().splitlines(keepends=True)
    chosen = {*range(0, len(lines), max(1, len(lines) // 20)), *range(max(0, len(lines) - 25), len(lines))}
    for number in sorted(chosen):
        yield b"".join(lines[:number])
        yield b"".join(lines[:number]) + lines[number][: len(lines[number]) // 2]


def no_more_than(less: list[Told], whole: list[Told]) -> bool:
    """Whether the same is said, or nothing in its place."""
    return len(less) == len(whole) and all(
        a is None or a == b for one, other in zip(less, whole, strict=True) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(
    "path", [path for path in ALL if not any(part in path.name for part in NO_END)], ids=lambda path: path.name
)
def test_a_file_cut_anywhere_is_refused_or_says_the_same(path: Path) -> None:
    whole = told_by(read_import(read_source(path)))
    refused = 0
    for content in _cuts(path):
        try:
            assert no_more_than(told_by(of_bytes(content)), whole), content[-200:]
        except BadInput as error:
            assert "\n" not in str(error) and "not imported" in str(error)
            refused += 1
    assert refused


@pytest.mark.parametrize(
    "path", [path for path in ALL if any(part in path.name for part in NO_END)], ids=lambda path: path.name
)
def test_a_file_without_an_end_is_never_more_than_it_holds(path: Path) -> None:
    whole = told_by(read_import(read_source(path)))
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 60)):
        try:
            less = told_by(of_bytes(content[:at]))
        except BadInput:
            continue
        if path.suffix in (".raw", ".csv"):
            held = at // 28 if path.suffix == ".raw" else content[:at].count(b"\n")
            assert sum(one[0] or 0 for one in less) == held
        elif "live" in path.name or "rt-app" in path.name:  # each picture that is whole may have been the last one
            assert len(less) == len(whole) and all((a[0] or 0) <= (b[0] or 0) for a, b in zip(less, whole, strict=True))
        else:
            assert less == whole[: len(less)]


@pytest.mark.check
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_changed_byte_is_refused_or_believed_without_a_fault(path: Path) -> None:
    content = path.read_bytes()
    whole = [one[0] for one in told_by(of_bytes(content))]
    draw = random.Random(path.name)
    for _ in range(60):
        at = draw.randrange(len(content))
        value = draw.choice([*b'0123456789 \n\t-x|:{"', 0, 0x80, draw.randrange(256)])
        try:
            found = of_bytes(content[:at] + bytes([value]) + content[at + 1 :])
        except BadInput as error:
            assert "\n" not in str(error)
            continue
        if any(part in path.name for part in CHECKED):
            assert [series.count for series in found.series] == whole, (at, chr(value))


@pytest.mark.check
@pytest.mark.parametrize("path", [path for path in CASES if path.suffix != ".raw"], ids=lambda path: path.name)
def test_a_file_that_lacks_a_line_is_refused_in_one_or_believed_without_a_fault(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for number in {*range(min(30, len(lines))), *range(max(0, len(lines) - 30), len(lines))}:
        try:
            of_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        except BadInput as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("path", [path for path in CASES if path.suffix != ".raw"], ids=lambda path: path.name)
def test_a_number_too_long_to_be_one_is_refused_wherever_it_stands(path: Path) -> None:
    content = path.read_bytes()
    for number in list(re.finditer(rb"\d+", content))[:60]:
        with pytest.raises(BadInput, match="not imported"):
            of_bytes(content[: number.start()] + b"7" * 5000 + content[number.end() :])


@pytest.mark.parametrize("edge", [b"1e+999999", b"1e+99999999999", b"1e+9999999999999999999999", b"1e+99"])
def test_an_edge_beyond_all_numbers_is_refused(edge: bytes) -> None:
    lines = (ROOT / "tests/cases/exchange" / "xenomai-gnuplot.txt").read_bytes().split(b"\n")
    for row in (3, -2):
        with pytest.raises(BadInput, match="not imported"):
            of_bytes(b"\n".join([*lines[:row], edge + b" 1", *lines[row:][1:]]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"Terminated\n", "stopped (Terminated)"),
        (b"\0\1\2" * 40, "binary"),
        (b"hello\n", "unknown format"),
        (os.urandom(5000), "binary"),
        (b"\xff\xfex\0", "binary"),
        (b"Traceback (most recent call last):\n  File\nDetectorNotAvailable: no\n", "DetectorNotAvailable"),
        (b'{"cpu": ' * 5000, "JSON"),
        (b'{"cpu": {"0": {"histogram": {"1": 1, "1": 2}, "count": 3}}}', "twice"),
        (b'{"cpu": {"0": {"histogram": {"1": 1e400}, "count": 3}}}', ""),
        (b'{"cpu": {"0": {"histogram": {"1": 99999999999999999999999}, "count": 3}}}', "62 bits"),
        (b"# Histogram\n000001 " + b"9" * 30 + b"\n# Min Latencies: 00001\n", "not an integer"),
        (
            b'{"cpu": {"0": {"histogram": {"1": 9007199254740993}, "count": 9007199254740993, '
            b'"min": 1, "max": 1, "avg": 1}}}',
            "impossibly large",
        ),
        (
            b'{"cpu": {"0": {"histogram": {"400000000000000": 1}, "count": 1, "min": 400000000000000, '
            b'"max": 400000000000000, '
            b'"avg": 4e14}}}',
            "longer than 10 years",
        ),
        (b"T: 0 (    1) P: 0 I:1000 C:    200 Min:      5 Act:    6 Avg:    6 Max:       4\n", "above its maximum"),
        (b"T: 0 (    1) P: 0 I:1000 C:    200 Min:      5 Act:    6 Avg:   60 Max:       7\n", "mean 60"),
        (
            b"T: 0 (    1) P: 0 I:1000 C:9000000000000000000 Min:      5 Act:    6 Avg:    6 Max:       7\n",
            "not an integer",
        ),
        (b"T:18446744073709551615 (  917) P:50 C: 10 Min: 1 Act: 1 Avg: 1 Max: 1\n", "not numbered from 0"),
        (b"T: 1 (  917) P:50 C: 10 Min: 1 Act: 1 Avg: 1 Max: 1\n", "not numbered from 0"),
        (
            b"T: 0 (  917) P:50 C: 10 Min: 1 Act: 1 Avg: 1 Max: 1\n"
            b"T: 2 (  918) P:50 C: 10 Min: 1 Act: 1 Avg: 1 Max: 1\n",
            "not numbered from 0",
        ),
    ],
)
def test_what_is_none_is_refused_with_the_reason(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not imported") as refused:
        read_import(source_at(path))
    assert words in str(refused.value) and str(path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.check
def test_what_is_no_file_or_too_long_is_refused(tmp_path: Path) -> None:
    long = tmp_path / "long"
    with long.open("wb") as stream:
        stream.truncate((256 << 20) + 1)
    for path, words in (
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
        (Path(os.devnull), "regular"),
        (long, "longer than 256 MiB"),
    ):
        with pytest.raises(BadInput, match=words):
            read_source(path)


def test_samples_of_a_year_are_not_a_line_for_each_second(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    path.write_text("0;5.000000000;7\n1;5.000000000;8\n0;31000005.000000000;9\n")
    recording = recorded(path, tmp_path)
    assert len(recording.intervals) <= 600 and [recording.totals[series.id].total for series in recording.series] == [
        2,
        1,
    ]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize(
    ("name", "change", "begin_s"),
    [
        ("rteval-cyclictest.xml", None, None),
        ("rteval-cyclictest.xml", (b"11:20:00", b"11:20:00+02:00"), 1790932800),
        ("rt-dataset-1.0.json", None, 1790831400),
        ("rt-dataset-1.0.json", (b"07:10:00+02:00", b"07:10:00"), None),
        ("rt-dataset-1.0.json", (b"T07:10:00+02:00", b""), None),
        ("cyclictest-2.4.json", None, 1795336176),
        ("cyclictest-2.4.json", (b"+0000", b"-0000"), None),
        ("hwlatdetect-2.4.txt", None, None),
    ],
)
def test_a_begin_without_a_zone_is_unknown_wherever_it_is_imported(
    zone: str, name: str, change: tuple[bytes, bytes] | None, begin_s: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (ROOT / "tests/cases/exchange" / name).read_bytes()
    if change is not None:
        assert change[0] in content
        content = content.replace(*change)
    with monkeypatch.context() as changed:
        changed.setenv("TZ", zone)
        time.tzset()
        begin_ns = of_bytes(content).begin_wall_ns
    time.tzset()
    assert begin_ns == (None if begin_s is None else begin_s * 10**9)


def test_a_killed_live_display_is_refused() -> None:
    live = (ROOT / "tests/cases/exchange" / "cyclictest-2.4-live.txt").read_bytes()
    at = live.rindex(b"\x1b[")
    for content in (live[:at] + b"\x1b[4A", live[: live.rindex(b"T: 1")]):
        with pytest.raises(BadInput, match=r"killed|cut"):
            of_bytes(content)


def test_what_hwlatdetect_saw_before_ctrl_c_is_taken_and_its_length_is_unknown(tmp_path: Path) -> None:
    """It says "interrupted", and then all that it says at its end; without that it was killed."""
    whole = (ROOT / "tests/cases/exchange" / "hwlatdetect-2.4.txt").read_bytes()
    stopped = whole.replace(b"Starting test\n", b"Starting test\ninterrupted\n")
    (tmp_path / "stopped.txt").write_bytes(stopped)
    recorded(tmp_path / "stopped.txt", tmp_path)
    recording = read_recording(tmp_path / "recording.jsonl")
    assert recording.outcome is Outcome.ABORTED and recording.totals[0].total == 3
    assert recording.reasons == ("hwlatdetect was interrupted before its 120 s were over",)
    assert recording.stopped.mono_ns == recording.head.begin.mono_ns
    with pytest.raises(BadInput, match="its end is missing"):
        of_bytes(stopped[: stopped.index(b"test finished")])


def test_a_loop_of_rt_app_that_never_slept_is_missed_and_no_latency_of_0(tmp_path: Path) -> None:
    recording = recorded(ROOT / "tests/cases/exchange" / "rt-app-1.0.log", tmp_path)
    wakeup, slack = recording.totals[0], recording.totals[1]
    assert (wakeup.total, recording.missed(0), wakeup.minimum) == (50, 3, 7)
    assert slack.total == 53 and slack.minimum == -3778
    assert [series.role for series in recording.series] == [Role.VERDICT, Role.DIAGNOSTIC]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ALL #24644 ", "ALL #24645 ", "does not match their lines"),
        ("31\n  1 #", "30\n  1 #", "does not match"),
        ("        12 |", "        1 |", "columns|outside|not match"),
        ("  1 #12322", "  0 #12322", "out of place"),
        ("(us)", "(ms)", "state the unit of its times"),
        ("COUNT", "COUNTS", "incomplete header"),
        ("0 00:00:12   |", "0 00:12   |", "incomplete header"),
    ],
)
def test_a_picture_of_rtla_that_contradicts_itself_is_refused(old: str, new: str, words: str) -> None:
    whole = (ROOT / "tests/cases/exchange" / "rtla-top.txt").read_text()
    assert old in whole and of_bytes(whole.encode())
    with pytest.raises(BadInput, match=words):
        of_bytes(whole.replace(old, new).encode())


def test_of_rtlas_pictures_the_last_one_counts_and_must_have_all_cpus() -> None:
    live = (ROOT / "tests/cases/exchange" / "rtla-top-live.txt").read_text()
    *_, third, fourth = [match.start() for match in re.finditer("\x1bc", live)]
    assert [of_bytes(text.encode()).series[0].count for text in (live[:third], live[:fourth], live)] == [40, 60, 60]
    row = live.rindex("  1 #")
    with pytest.raises(BadInput, match="lacks a CPU"):
        of_bytes(live[:row].encode())
    stopped = live + "rtla timerlat hit stop tracing\n## CPU 1 hit stop tracing, analyzing it ##\n  IRQ delay: 1 us\n"
    assert of_bytes(stopped.encode()).series == of_bytes(live.encode()).series


def imported(tmp_path: Path, *names: str) -> dict[str, object]:
    done = command_line(
        "import",
        *(str(ROOT / "tests/cases/exchange" / name) for name in names),
        "--json",
        "--store",
        str(tmp_path / "store"),
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.check
def test_the_command_prints_what_the_specification_says_and_stores_runs(tmp_path: Path) -> None:
    document = imported(tmp_path, "cyclictest-2.4.json", "xenomai-summary.txt", "rtla-ns-wide.txt")
    runs = document["runs"]
    assert isinstance(runs, list) and list(document) == ["version", "runs"] and document["version"] == 2
    assert [run["tool"] for run in runs] == ["cyclictest", "xenomai-latency", "rtla"]
    assert all(list(run) == ["id", "new", "tool", "version", "series"] for run in runs)
    assert runs[0]["version"] == "2.40" and runs[1]["version"] is None
    assert runs[0]["series"] == [
        {
            "name": "wakeup cpu 0 thread 0",
            "unit": "ns",
            "count": 60,
            "min": 6000,
            "max": 11000,
            "mean": 7480.0,
            "overflow": 0,
        }
    ]
    assert runs[1]["series"][0]["count"] is None and runs[1]["series"][0]["min"] == -1120
    stored = Store(tmp_path / "store")
    assert [run.id for run in stored.runs()] == [run["id"] for run in runs]
    assert [run.begin_wall_ns for run in stored.runs()][1:] == [None, None] and stored.verify() == {}
    for run in runs:
        recording = stored.load(run["id"])
        assert recording.head.tool.name == run["tool"] and len(recording.series) == len(run["series"])


@pytest.mark.parametrize(
    ("wide", "words"),
    [
        ([[42, 29]], None),
        ([[42, 43]], "a wide bucket is not"),
        ([[41, 30]], "a wide bucket is not"),
        ([[42, 5]], "a wide bucket is not"),
        ([[42, 30], [42, 31]], "do not ascend"),
        ([[42.5, 30]], "not a line"),
    ],
)
def test_wide_buckets_are_believed_only_where_they_can_be(wide: object, words: str | None, tmp_path: Path) -> None:
    recorded(ROOT / "tests/cases/exchange" / "cyclictest-2.4-all.txt", tmp_path)
    head, interval, end = map(json.loads, (tmp_path / "recording.jsonl").read_text().splitlines())
    interval["series"][1]["wide"] = wide
    (tmp_path / "changed").write_bytes(b"".join(map(line_bytes, (head, interval, end))))
    if words is None:
        assert read_recording(tmp_path / "changed").totals[1].lowest()[-1] == 29
        return
    with pytest.raises(BadInput, match=words):
        read_recording(tmp_path / "changed")


def test_wide_buckets_are_checked_in_the_coarser_ones_of_a_claimed_instrument(tmp_path: Path) -> None:
    """The widest bucket of the recording, with that of the maximum, has no such index in buckets of k = 4."""
    line = "T: 0 ( 1234) P:80 I:1000 C: 100000 Min:      1 Act:    5 Avg:    4 Max:     150\n"
    source = Source("cyclictest.txt", line.encode(), None)
    head, *others = recording_lines(read_import(source), source, "claimed")
    lines = (head | {"instrument": {"k": 4}}, *others)
    (tmp_path / "changed").write_bytes(b"".join(map(line_bytes, lines)))
    total = read_recording(tmp_path / "changed").totals[0]
    assert (total.total, total.sum, total.lowest().tolist()) == (100_000, 400_000, [1, 1])


@pytest.mark.check
def test_one_bad_file_and_nothing_is_imported(tmp_path: Path) -> None:
    bad = tmp_path / "bad\x1b[31m"
    bad.write_text("Killed\n")
    done = command_line("import", str(CASES[0]), str(bad), "--store", str(tmp_path / "store"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Killed" in done.stderr and "\x1b" not in done.stderr and not (tmp_path / "store").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FastenoughError("the disk is full")])
@pytest.mark.parametrize("interrupted", [1, 2])
def test_an_interrupted_import_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, interrupted: int
) -> None:
    """Interrupted when the first or the second file is already sealed: neither stays, and none counts as deleted."""
    made: list[str] = []

    def interrupt(_: Folder, run_id: str) -> None:
        made.append(run_id)
        if len(made) == interrupted:
            raise error

    monkeypatch.setattr("fastenough.store.make_columns", interrupt)
    sources = [source_at(path) for path in CASES[:2]]
    with pytest.raises(type(error)):
        _store_runs(Store(tmp_path / "store"), [(source, read_import(source)) for source in sources])
    assert list((tmp_path / "store" / "runs").iterdir()) == []
    again = Store(tmp_path / "store")
    assert (len(made), again.runs(), again.removed()) == (interrupted, [], [])


def _probe_histogram(*lines: str) -> ImportedRun:
    """The histogram of one CPU, below the table of the probe or by itself."""
    return of_bytes("\n".join(("# Columns: us, wakeup of CPU 3", *lines, "")).encode())


def test_the_histogram_of_the_own_probe_is_imported() -> None:
    """Its maximum is rounded up, a row may hold a value just above its microsecond, and none overflowed."""
    rows = [f"{us:06} {2 * (us == 30) + (us == 2999):06}" for us in range(3000)]
    footers = ("# Total: 000000003", "# Min Latencies: -0002", "# Avg Latencies: 00765", "# Max Latencies: 03002")
    run = _probe_histogram(
        "# Before the due time: 00001", "# Histogram", *rows, *footers, "# Histogram Overflows: 00000"
    )
    assert (run.tool, run.series[0].cpu) == ("fastenough-probe", 3)
    assert told_by(run) == [(4, -2_000, 3_002_000, 765_000, 0)]


@pytest.mark.parametrize("comment", ["", "# "])
def test_latencies_in_ns_of_the_own_probe(comment: str) -> None:
    table = f"{comment} CPU series      count  missed    min ns    50% ns"
    text = "# Before the due time: 00000\n# Histogram\n000000 000000\n# Total: 000000000\n# Min Latencies: 28457\n"
    text += "# Avg Latencies: 48428\n# Max Latencies: 99999\n# Histogram Overflows: 00007\n"
    columns = "# Columns: us, wakeup of CPU 0"
    assert told_by(of_bytes("\n".join((table, columns, text)).encode())) == [(7, 28_457, 99_999, 48_428, 7)]


class _EmptyImporter:
    what = "tool: text"

    def recognises(self, source: Source) -> bool:
        return True

    def read(self, source: Source) -> None:
        return None


def test_a_file_without_a_measurement_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.exchange.IMPORTERS", (_EmptyImporter(),))
    with pytest.raises(BadInput, match=r"file: not imported: it holds no measurement \(tool: text\)"):
        of_bytes(b"text\n")


def test_a_content_is_stored_once(tmp_path: Path) -> None:
    """By another file name, in one import or in two."""
    store, content = Store(tmp_path / "store"), CASES[0].read_bytes()
    sources = [Source(name, content) for name in ("first", "second")]
    taken = [(source, read_import(source)) for source in sources]
    (first, is_new), again = _import_runs(store, taken)
    assert (is_new, again) == (True, (first, False))
    other = source_at(CASES[1])
    (run, was_new), (added, is_added) = _import_runs(store, [taken[1], (other, read_import(other))])
    assert (run, was_new, is_added) == (first, False, True)
    assert [summary.id for summary in store.runs()] == [first, added]


def test_a_content_of_a_deleted_run_is_imported_again(tmp_path: Path) -> None:
    source = source_at(CASES[0])
    taken = [(source, read_import(source))]
    ((first, _),) = _import_runs(Store(tmp_path / "store"), taken)
    shutil.rmtree(tmp_path / "store" / "runs" / first)
    ((second, is_new),) = _import_runs(Store(tmp_path / "store"), taken)
    assert is_new and second != first


def test_a_content_with_another_unit_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    content = (ROOT / "tests/cases/exchange/percentiles.hgrm").read_bytes()
    sources = [Source("file", content, unit_ns) for unit_ns in (US, 10**6)]
    ((run, _),) = _import_runs(store, [(sources[0], read_import(sources[0]))])
    with pytest.raises(BadInput, match=f"run {run} was imported from the same content with another --unit"):
        _import_runs(store, [(sources[1], read_import(sources[1]))])
    assert len(store.runs()) == 1


@pytest.mark.check
def test_imported_runs_are_shown_compared_and_reported_and_never_pass(tmp_path: Path) -> None:
    runs = imported(tmp_path, "cyclictest-2.4-all.txt", "cyclictest-2.4-histogram.txt")["runs"]
    assert isinstance(runs, list)
    ids = [run["id"] for run in runs]
    there = ("--store", str(tmp_path / "store"))
    shown = command_line("show", ids[0], *there).stdout
    assert "imported from cyclictest-2.4-all.txt" in shown and "≥ 30.0" in shown and "duration unknown" in shown
    assert command_line("compare", *ids, *there).returncode == 0
    assert ids[0] in command_line("list", *there).stdout
    done = command_line("report", *ids, *there, "--limit", "10ms", "--out", str(tmp_path / "report"))
    page = (tmp_path / "report" / "index.html").read_text()
    assert done.returncode == 3, done.stderr
    assert "coordinated omission" in page and "1970-" not in page
    assert "in a time not stated" in page and not re.search(r"\b0 ns\b", page) and "Warning" not in done.stderr


def test_nothing_is_said_of_the_order_of_values_that_no_source_tells(tmp_path: Path) -> None:
    draw = np.random.default_rng(11)
    counts = np.bincount(np.minimum(draw.gamma(2, 4, 5000).astype(int), 40), minlength=40)[:40]
    text = "# Histogram\n" + "".join(f"{us:06d} {n:06d}\n" for us, n in enumerate(counts))
    mean = int((np.arange(40) * counts).sum() / counts.sum())
    path = tmp_path / "file"
    path.write_text(
        f"{text}# Total: {counts.sum():09d}\n# Min Latencies: {np.flatnonzero(counts)[0]:05d}\n"
        f"# Avg Latencies: {mean:05d}\n# Max Latencies: 00090\n# Histogram Overflows: 00006\n"
    )
    run = recorded(path, tmp_path)
    context = make_context([run], judge([run]))
    worst = context.entries[0].kind.worst_cpu
    assert extremal_indices(worst) == [] and heat_map.section(context) is None
    assert [one.refused for one in estimates(worst.parts)] == ["the times of the samples are unknown"]
    assert "a time not stated" in context.groups[0].label(worst)
    table = overview.first_table(context)
    quantile = [column.title for column in table.columns].index("99.9 % [µs]")
    assert [table.cells(row)[quantile].text for row in table.rows] == ["≥ 40.0"], "as the percentiles say it"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_no_limit_is_passed_and_one_below_the_maximum_fails_or_is_open(path: Path, tmp_path: Path) -> None:
    recording = recorded(path, tmp_path)
    assert judge([recording], Requirement(10**12, 0.5)).verdict is not Verdict.PASS
    judged = judge([recording], Requirement(1))
    assert judged.verdict is not Verdict.PASS
    said = [finding.text for judgment in judged.judgments for finding in judgment.findings]
    assert said or all(series.role is Role.DIAGNOSTIC for series in recording.series)
    assert not [text for text in said if re.search(r"\b0 ns\b", text)]


def test_quantiles_among_values_that_were_only_counted_are_at_least(tmp_path: Path) -> None:
    recording = recorded(ROOT / "tests/cases/exchange" / "cyclictest-2.4-all.txt", tmp_path)
    total = recording.totals[1]
    assert total.wide == ((42, 30),) and total.standard_deviation is None
    assert judge([recording], Requirement(35_000)).verdict is Verdict.FAIL  # one value of 42 µs is certain
    assert judge([recording], Requirement(43_000)).verdict is Verdict.INCONCLUSIVE


def _quantiles(content: bytes, folder: Path, name: str = "thread") -> list[tuple[float | None, float | None]]:
    """(value, least value) in ns of the quantiles of all CPUs together; a value is that of the bucket it is in."""
    (folder / "content").write_bytes(content)
    recording = recorded(folder / "content", folder)
    merged = merge_samples([(recording, series) for series in recording.series if series.name == name])
    quantiles = [quantile_of(merged, quantile) for quantile in QUANTILES]
    ranges = [quantile_range(merged, quantile) for quantile in QUANTILES]
    assert [None if edges is None else edges[1] for edges in ranges] == [part.value_ns for part in quantiles]
    resampled = ResampledQuantiles(merged)
    assert [resampled.value_ns(quantile) for quantile in QUANTILES] == [part.value_ns for part in quantiles]
    assert all(part.lower_ns is None and part.reason is not None for part in quantiles)
    return [(part.value_ns, part.at_least_ns) for part in quantiles]


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ((900_000, 0), [(None, 3_000)] * 6),
        ((900, 0), [(1_000, None), *[(2_000, None)] * 2, *[(None, 3_000)] * 3]),
        ((90, 9), [(1_000, None), *[(2_000, None)] * 3, *[(None, 3_000)] * 2]),
        ((0, 0), [(1_000, None), *[(2_000, None)] * 5]),
    ],
)
def test_quantiles_have_their_rank_among_values_beyond_a_histogram_without_a_maximum(
    over: tuple[int, int], expected: list[tuple[float | None, float | None]], tmp_path: Path
) -> None:
    """100,000 values of 1 or 2 µs on two CPUs, and those that rtla counted beyond the end."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        "Index   IRQ-000   Thr-000   IRQ-001   Thr-001\n0 0 0 0 0\n1 0 30000 0 30000\n2 0 20000 0 20000\n"
        f"over: 0 {over[0]} 0 {over[1]}\n"
    )
    assert _quantiles(text.encode(), tmp_path) == expected


def _measures(content: bytes, folder: Path, name: str) -> Measures:
    (folder / "content").write_bytes(content)
    recording = recorded(folder / "content", folder)
    return measure(merge_samples([(recording, series) for series in recording.series if series.name == name]))


@pytest.mark.parametrize(
    ("over", "buckets", "expected"),
    [
        (0, "1 50\n2 50\n", (1_500, 2_000, None)),
        (9, "1 50\n2 50\n", (None, None, 3_000)),
        (9, "", (None, None, None)),
    ],
)
def test_mean_and_maximum_are_unknown_if_values_were_left_out(
    over: int, buckets: str, expected: tuple[float | None, ...], tmp_path: Path
) -> None:
    """rtla --no-summary: what is beyond the histogram has no maximum."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        f"Index   Thr-000\n{buckets}over: {over}\n"
    )
    measures = _measures(text.encode(), tmp_path, "thread")
    assert (measures.mean_ns, measures.maximum_ns, measures.maximum_at_least_ns) == expected
    assert (measures.standard_deviation_ns is None) == (measures.mean_ns is None)


@pytest.mark.parametrize(("name", "is_least"), [("rtla-top.txt", True), ("rtla-ns-wide.txt", False)])
def test_a_number_of_values_of_which_some_were_left_out_is_the_least(name: str, is_least: bool, tmp_path: Path) -> None:
    recording = recorded(ROOT / "tests/cases/exchange" / name, tmp_path)
    told, failed = judge([recording]), judge([recording], Requirement(1))
    assert [judgment.n_is_least for judgment in told.judgments] == [is_least] * len(told.judgments)
    assert failed.verdict is Verdict.FAIL
    for sentence in (told.headline, failed.headline, failed.reasons[0]):
        assert ("at least" in sentence) == is_least


def test_the_least_maximum_is_beyond_the_longest_histogram(tmp_path: Path) -> None:
    """CPU 0 has values of up to 1 µs, CPU 1 of up to 10 µs, and both have some beyond."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        "Index   Thr-000   Thr-001\n1 50 40\n10 0 10\nover: 9 9\n"
    )
    assert _measures(text.encode(), tmp_path, "thread").maximum_at_least_ns == 11_000


@pytest.mark.check
def test_a_list_has_the_values_of_an_import_whose_first_series_is_empty(tmp_path: Path) -> None:
    """Interrupts come first in output of rtla, also if none was counted."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        "Index   IRQ-000   Thr-000\n1 0 50\n2 0 70\nover: 0 0\n"
    )
    (tmp_path / "output.txt").write_text(text)
    store = tmp_path / "store"
    assert command_line("import", str(tmp_path / "output.txt"), "--store", str(store)).returncode == 0
    (run,) = Store(store).runs()
    assert (run.samples, run.worst_ns) == (120, 2_000)


def test_no_maximum_is_printed_if_one_cpu_has_an_unknown_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CPU 0 has values of up to 2 µs; all 9 values of CPU 1 are beyond the histogram."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        "Index   Thr-000   Thr-001\n1 50 0\n2 50 0\nover: 0 9\n"
    )
    (tmp_path / "content").write_bytes(text.encode())
    recording = recorded(tmp_path / "content", tmp_path)
    values = [(series, merge_samples([(recording, series)])) for series in recording.series]
    _print_uncertainty(
        [(series, measure(merged)) for series, merged in values],
        {series.id: budget_of(merged) for series, merged in values},
    )
    assert capsys.readouterr().out == ""
    assert compare(recording, recording)[0].maxima_ns == (None, None)
    excluded = excluded_run(recording, RequiredOfRun(recording, Requirement(10**6)))
    assert excluded is not None and excluded.maximum_is_least and "≥ 2.00 µs" in excluded.text
    longer = longer_recording(recording)
    maxima_ns = [
        present(longer.maximum_of(recording, series), "longer run").maximum_ns for series in recording.series[:1]
    ]
    assert (maxima_ns, longer.maximum_of(recording, recording.series[1])) == ([2_000], None)


def test_a_maximum_beyond_the_histogram_is_at_least_its_end(tmp_path: Path) -> None:
    """CPU 0 has values of up to 2 µs and 9 beyond; all of CPU 1 are known."""
    text = (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:10:00\n"
        "Index   Thr-000   Thr-001\n1 50 40\n2 50 60\nover: 9 0\n"
    )
    (tmp_path / "content").write_bytes(text.encode())
    run = recorded(tmp_path / "content", tmp_path)
    unknown, known = (longer_recording(run).maximum_of(run, series) for series in run.series)
    assert (unknown, present(known, "longer run").maximum_ns) == (None, 2_000)
    (comparison,) = compare(run, run)
    assert "| maximum (no test) | ≥ 3.00 | ≥ 3.00 |" in " ".join(_quantiles_as_markdown(comparison))
    assert "Maxima ≥ 3.00 µs and ≥ 3.00 µs" in _compared_table(1, comparison, "second").note
    context = make_context([run], judge([run], Requirement(2_500)))
    table = overview.first_table(context)
    by_title = {column.title: cell for column, cell in zip(table.columns, table.cells(table.rows[0]), strict=True)}
    assert (by_title["maximum [µs]"].text, by_title["above 2.5 µs"].text) == ("≥ 3.00", "≥ 0")
    assert [judgment.maximum_ns for judgment in context.assessment.judgments] == [None]
    bounds = present(rate_bounds(context), "bounds").parts[0]
    assert isinstance(bounds, ReportTable)
    assert [bounds.cells(row)[7].text for row in bounds.rows] == ["≥ 3.00", "2.00"]
    per_cpu = context.entries[0].kind.per_cpu
    assert [_maximum_text(values) for values in per_cpu] == ["≥ 3.00 µs", "2.00 µs"]
    figure = own_figure(context.entries[0].group, context.entries[0].kind)
    measured = [replace(figure, board=board, configuration=kernel) for board in "ab" for kernel in ("stock", "rt")]
    for known_ns, text in ((2_000.0, "≥ 3.00"), (5_000.0, "≥ 5.00")):
        other = replace(measured[0], maximum_ns=known_ns, exceeds_range=False)
        (by_kernel,) = maxima_by_kernel("maxima", "Maxima", [*measured, other])
        assert [[cell.text for cell in by_kernel.cells(row)[1:]] for row in by_kernel.rows] == [
            [text, "≥ 3.00"],
            ["≥ 3.00", "≥ 3.00"],
        ]
    loads = stress_table("loads", "By load", [figure, replace(figure, load="cpu")])
    assert [cell.text for cell in loads.cells(loads.rows[-1])[1:]] == ["≥ 3.00"] * 2


@pytest.mark.check
def test_no_quantile_is_known_if_the_number_beyond_the_histogram_is_not(tmp_path: Path) -> None:
    """OSADL states maxima, and no number of values beyond its histogram of 9 µs."""
    dataset: dict[str, Any] = {
        "format": {"name": "RT Dataset", "version": "1.0"},
        "latency": {"granularity": "microseconds", "cores": [list(range(10)), [0, 0, 5000, 4000, 1000, *[0] * 5]]},
    }
    for maximum, expected in ((4, [2_000, *[4_000] * 4, None]), (5_000, [None] * 6)):
        dataset["latency"]["maxima"] = [maximum]
        content = json.dumps(dataset).encode()
        assert _quantiles(content, tmp_path, "wakeup") == [(value, None) for value in expected]
        assert (_measures(content, tmp_path, "wakeup").mean_ns is None) == (maximum > 4)
        run_alone = recorded(tmp_path / "content", tmp_path)
        assert [len(same.rates) for same in compare(run_alone, run_alone, limits_ns=(3_000.0,))] == [maximum == 4]
        done = command_line("import", "content", "--json", cwd=tmp_path)
        [run] = json.loads(done.stdout)["runs"]
        assert run["series"][0]["overflow"] == (0 if maximum == 4 else None)


@pytest.mark.parametrize(
    ("name", "old", "new", "tool"),
    [
        ("signaltest-2.4.json", "signaltest -l", "/usr/local/bin/sgt -l", "signaltest"),
        ("cyclicdeadline-2.8.json", "cyclicdeadline -t", "./dl -t", "cyclicdeadline"),
        ("cyclictest-2.4.json", '"cmdline:": "', '"cmdline:": "/opt/', "cyclictest"),
        ("signaltest-2.4.json", "signaltest -l", "cyclictest -l", None),
        ("pmqtest-2.4.json", "pmqtest -", "oslat -", None),
        ("signaltest-2.4.json", '"file_version": 1', '"file_version": 2', None),
    ],
)
def test_a_test_of_rt_tests_is_known_by_its_fields(name: str, old: str, new: str, tool: str | None) -> None:
    content = text_of(name).replace(old, new, 1).encode()
    assert content != text_of(name).encode()
    if tool is not None:
        assert of_bytes(content).tool == tool
        return
    with pytest.raises(BadInput, match=r"file modified|file_version"):
        of_bytes(content)


@pytest.mark.check
def test_a_percentile_distribution_needs_its_unit(tmp_path: Path) -> None:
    path = ROOT / "tests/cases/exchange" / "percentiles.hgrm"
    with pytest.raises(BadInput, match="--unit"):
        read_import(source_at(path))
    assert [
        read_import(source_at(path, unit)).series[0].in_ns(read_import(source_at(path, unit)).series[0].maximum)
        for unit in (1, US)
    ] == [1234, 1234 * US]
    there = ("--store", str(tmp_path / "store"))
    done = command_line("import", str(path), "--unit", "us", "--json", *there)
    assert done.returncode == 0 and json.loads(done.stdout)["runs"][0]["series"][0]["max"] == 1234 * US


@pytest.mark.parametrize(
    ("value", "sub_buckets", "mean", "accepted"),
    [
        (1000447, 2048, 1000191.5, True),
        (1000447, 2048, 998000.0, False),
        (1015807, 256, 1011711.5, True),
        (1000447, 2048, 1002000.0, False),
    ],
)
def test_a_mean_within_the_bucket_of_its_values_is_taken(
    value: int, sub_buckets: int, mean: float, accepted: bool
) -> None:
    """HdrHistogram prints the upper edge of a bucket, and adds up the middles."""
    text = (
        f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n\n"
        f"{value:12.3f} 0.000000000000 {100:10d} {1:14.2f}\n{value:12.3f} 1.000000000000 {100:10d}\n"
        f"#[Mean    = {mean:12.3f}, StdDeviation   = {0:12.3f}]\n#[Max     = {value:12.3f}, "
        f"Total count    = {100:12d}]\n#[Buckets = {11:12d}, SubBuckets     = {sub_buckets:12d}]\n"
    ).encode()
    if accepted:
        assert read_import(Source("file", text, 1)).series[0].maximum == value
        return
    with pytest.raises(BadInput, match="mean"):
        read_import(Source("file", text, 1))


def test_pairs_that_are_not_yet_ready_become_so() -> None:
    live = text_of("sigwaittest-2.4-live.txt")
    begin = live.index("#1 -> #0")
    early = live[:begin] + "#1 -> #0 (not yet ready)\n#3 -> #2 (not yet ready)\n"
    assert of_bytes((early + "\x1b[4A" + live).encode()).series == of_bytes(live.encode()).series
    with pytest.raises(BadInput, match="is incomplete"):
        of_bytes(early.encode())


def test_hwlatdetect_with_the_time_since_the_last_gap() -> None:
    """As rt-tests prints it after 2.10."""
    old = text_of("hwlatdetect-2.4.txt")
    places = iter(("nan", "10.125724", "10.215292"))
    new = re.sub(
        r"(ts: [\d.]+), (inner:\d+, outer:\d+)",
        lambda found: f"{found[1]}, delta:{next(places)}, {found[2]}, cpu:0, count:1",
        old,
    )
    assert new != old
    [before], [after] = of_bytes(old.encode()).series, of_bytes(new.encode()).series
    assert (after.count, after.minimum, after.maximum, after.buckets) == (
        before.count,
        before.minimum,
        before.maximum,
        before.buckets,
    ) and after.cpu == 0


def test_gaps_of_hwlatdetect_that_are_not_listed_are_not_left_out(tmp_path: Path) -> None:
    """The kernel's ``count`` is the number of gaps above the threshold in a window; only the greatest is listed."""
    text = text_of("hwlatdetect-2.4.txt")
    for outer, suffix in (("27", ", cpu:0, count:250"), ("14", ", cpu:1, count:1"), ("12", ", cpu:0, count:1")):
        text = text.replace(f"outer:{outer}\n", f"outer:{outer}{suffix}\n")
    (tmp_path / "counted.txt").write_text(text)
    found = of_bytes(text.encode())
    assert found.facts["gaps above the threshold"] == 252
    assert [(one.cpu, one.count, one.minimum, one.maximum, one.mean, one.overflow) for one in found.series] == [
        (0, None, None, 27, None, None),
        (1, 1, 15, 15, 15, 0),
    ]
    recording = recorded(tmp_path / "counted.txt", tmp_path)
    assert [recording.totals[series.id].total for series in recording.series] == [2, 1]
    listed = measure(merge_samples([(recording, recording.series[0])]))
    assert (listed.minimum_ns, listed.mean_ns, listed.maximum_ns) == (None, None, 27_000)
    assert {quantile.value_ns for quantile in listed.quantiles} == {None}
    assert judge([recording]).verdict is not Verdict.PASS


def test_rteval_without_numbers_and_with_entities_is_refused() -> None:
    whole = text_of("rteval-cyclictest.xml")
    dropped = re.sub(r"<(core|system).*</\1>", "", whole, flags=re.DOTALL)
    with pytest.raises(BadInput, match="omits all numbers"):
        of_bytes(dropped.encode())
    bomb = whole.replace("<rteval ", '<!DOCTYPE rteval [<!ENTITY a "aaaa">]>\n<rteval ', 1)
    with pytest.raises(BadInput):
        of_bytes(bomb.encode())
    longest = whole.replace('<maximum unit="us">212<', '<maximum unit="us">3600<').replace(">301<", ">301<")
    beyond = of_bytes(longest.encode()).series[0]
    assert (beyond.maximum, beyond.overflow, beyond.count) == (3600, 1, None)


def test_rteval_says_that_timerlat_mixes_its_samples() -> None:
    found = of_bytes(text_of("rteval-timerlat.xml").encode())
    assert {series.role for series in found.series} == {Role.DIAGNOSTIC} and "caveat" in found.facts


def test_a_bucket_of_newer_oslats_ends_below_its_name() -> None:
    newer = of_bytes(text_of("oslat-2.8.json").encode()).series[0]
    assert newer.minimum == 0 and newer.buckets[0][:2] == (0, 0)
    fine = of_bytes(text_of("oslat-2.8-ns.json").encode()).series[0]
    assert fine.unit_ns == 1 and fine.buckets[0][:2] == (0, 99) and fine.in_ns(fine.minimum) == fine.minimum
    rows = text_of("oslat-2.4.txt")
    assert of_bytes(rows.encode()).series[0].buckets[0][:2] == (1, 1)


def text_of(name: str) -> str:
    return (ROOT / "tests/cases/exchange" / name).read_text()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cyclictest-2.4.json", "cyclictest-2.4-quiet.txt"),
        ("oslat-2.4.txt", "cyclictest-2.4-quiet.txt"),
        ("cyclictest-2.4-quiet.txt", "xenomai-3.txt"),
        ("jitterdebugger-0.3.json", "oslat-2.4.txt"),
    ],
)
def test_what_two_tools_wrote_into_one_file_is_refused(one: str, other: str) -> None:
    with pytest.raises(BadInput, match=r"output of several tools|its JSON is truncated"):
        of_bytes((text_of(one) + text_of(other)).encode())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_of_two_outputs_in_a_file_none_hides_the_other(path: Path) -> None:
    content = path.read_bytes()
    counts = [series.count for series in read_import(read_source(path)).series]
    try:
        twice = of_bytes(content + content, path.name)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        assert [series.count for series in twice.series] == [2 * (count or 0) for count in counts]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rtla-stopped.txt", "rtla-us.txt"),
        ("rtla-top.txt", "rtla-us.txt"),
        ("rtla-top-live.txt", "rtla-top.txt"),
        ("rtla-osnoise-top.txt", "rtla-top-live.txt"),
        ("sigwaittest-2.4-live.txt", "ptsematest-2.4.txt"),
        ("pmqtest-2.4.txt", "sigwaittest-2.4-live.txt"),
        ("signaltest-2.4-quiet.txt", "cyclicdeadline-2.4-quiet.txt"),
        ("cyclictest-2.4-live.txt", "cyclictest-2.4-quiet.txt"),
        ("hwlatdetect-2.4.txt", "hwlatdetect-quiet.txt"),
        ("xenomai-3.txt", "xenomai-summary.txt"),
        ("xenomai-summary.txt", "xenomai-3.txt"),
    ],
)
def test_two_runs_of_a_tool_in_one_file_are_refused(first: str, second: str) -> None:
    with pytest.raises(BadInput):
        of_bytes((text_of(first) + text_of(second)).encode())


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("latmus.txt", "---|"),
        ("xenomai-summary.txt", "---|"),
        ("hwlatdetect-2.4.txt", "test finished"),
        ("latmus-gnuplot.txt", "# sample count"),
    ],
)
def test_the_values_of_a_killed_run_before_a_whole_one_are_not_hidden(name: str, end: str) -> None:
    whole = text_of(name)
    with pytest.raises(BadInput, match="more than one output"):
        of_bytes((whole[: whole.index(end)] + whole).encode())
    begun = whole[whole.index("RTD|") : whole.index("---|")] if "RTD|" in whole else ""
    if begun:
        with pytest.raises(BadInput, match="more than one output"):
            of_bytes(whole.replace(begun, begun.replace("       0|     0|", "       9|     0|") + begun).encode())


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cyclictest-2.4-live.txt", "C:    159", "C:    164"),
        ("cyclictest-2.4-live.txt", "Max:     148\n\x1b", "Max:     149\n\x1b"),
        ("cyclictest-2.4-live.txt", "T: 1 (26451)", "T: 1 (26452)"),
        ("sigwaittest-2.4-live.txt", "Cycles 50", "Cycles 75"),
        ("sigwaittest-2.4-live.txt", "Max   30\n", "Max   53\n"),
        ("sigwaittest-2.4-live.txt", "ID721", "ID722"),
        ("rtla-top-live.txt", "00:00:02", "00:00:04"),
        ("rtla-top-live.txt", "#40", "#61"),
        ("rtla-top-live.txt", "1009\n", "3875\n"),
    ],
)
def test_a_live_display_whose_counts_or_maxima_decrease_is_refused(name: str, old: str, new: str) -> None:
    live = text_of(name)
    assert old in live
    with pytest.raises(BadInput, match="more than one output"):
        of_bytes(live.replace(old, new, 1).encode())


def test_a_change_in_an_import_without_a_begin_has_no_date(tmp_path: Path) -> None:
    begin_s, samples = 1000, []
    for place in range(6000):
        value_us = (5 if place < 3000 else 60) + place * 7919 % 8
        samples.append(struct.pack("<IqqQ", 0, begin_s + place // 50, place % 50 * 20_000_000, value_us))
    path = tmp_path / "samples.raw"
    path.write_bytes(b"".join(samples))
    recording = recorded(path, tmp_path)
    assert recording.head.begin.wall_ns == 0
    [change] = _changes_of_maxima("wakeup", maxima_of([(recording, recording.series[0])]))
    assert "after 60 s" in change and not re.search(r"UTC|\b19\d\d\b", change)


def test_the_instrument_of_an_import_is_the_tool(tmp_path: Path) -> None:
    """The file of latmus does not state who measured: with oob-gpio it is another machine."""
    path = tmp_path / "latmus.txt"
    path.write_text(text_of("latmus.txt").replace("(user, ", "(oob-gpio, "))
    runs = [recorded(path, tmp_path)]
    [group] = make_context(runs, judge(runs)).groups
    assert group.instrument == "imported from latmus"


def test_digits_of_other_scripts_are_no_numbers() -> None:
    content = text_of("cyclictest-2.4-quiet.txt").replace("9", "\u0669", 1)
    with pytest.raises(BadInput, match=r"^file:\d+: not imported: it contains a digit that no tool writes, '.u0669'"):
        of_bytes(content.encode())


def test_a_row_that_oslat_would_have_printed_is_missed() -> None:
    rows = text_of("oslat-2.4.txt").splitlines(keepends=True)
    place = next(place for place, row in enumerate(rows) if "005 (us)" in row)
    with pytest.raises(BadInput, match="a bucket is missing"):
        of_bytes("".join(rows[:place] + rows[place + 1 :]).encode())


@pytest.mark.parametrize("name", ["jitterdebugger-0.3.csv", "jitterdebugger-0.3.raw"])
def test_a_latency_longer_than_jitterdebugger_measured_is_refused(name: str) -> None:
    content = bytearray((ROOT / "tests/cases/exchange" / name).read_bytes())
    if name.endswith(".raw"):
        content[28 * 50 + 24] = 1
    else:
        lines = bytes(content).splitlines(keepends=True)
        lines[50] = lines[50].replace(b"\n", b"0000000\n")
        content = bytearray(b"".join(lines))
    with pytest.raises(BadInput, match="longer than the elapsed measurement time"):
        of_bytes(bytes(content))


@pytest.mark.check
def test_json_that_no_tool_writes_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read 45 MB of it took a minute."""
    monkeypatch.setattr("fastenough.exchange.source.json.loads", lambda *_, **__: pytest.fail("it was read"))
    path = tmp_path / "long.json"
    path.write_bytes(b'{"cpu":{"0":{"histogram":{' + b'"1":1,' * (3 << 20) + b'"2":1}}}}\n')
    with pytest.raises(BadInput, match="MiB of JSON"):
        read_import(source_at(path))


def _cyclictest_json(histogram: dict[str, int], cycles: int, maximum: int) -> str:
    thread = {"histogram": histogram, "cycles": cycles, "min": 5, "max": maximum, "avg": 60, "cpu": 0, "node": 0}
    return json.dumps(
        {
            "file_version": 1,
            "cmdline:": "cyclictest --json=x -h 100",
            "rt_test_version:": "2.4",
            "finished": 1,
            "start_time": "Mon, 24 Nov 2025 10:00:00 +0000",
            "end_time": "Mon, 24 Nov 2025 10:00:20 +0000",
            "return_code": 0,
            "sysinfo": {"nodename": "h", "release": "6.1.0"},
            "num_threads": 1,
            "resolution_in_ns": 0,
            "thread": {"0": thread},
        }
    )


@pytest.mark.check
@pytest.mark.parametrize(
    ("histogram", "drawn", "counted"), [({"5": 900}, (5, 900), 100), ({}, (5, 1), 99)], ids=["overflow", "no histogram"]
)
def test_values_that_were_only_counted_are_drawn_nowhere(
    tmp_path: Path, histogram: dict[str, int], drawn: tuple[int, int], counted: int
) -> None:
    """Their latencies are unknown; to draw them at the maximum would invent a hundred of the worst."""
    (tmp_path / "output.json").write_text(_cyclictest_json(histogram, sum(histogram.values()) + 100, 10_000))
    run = recorded(tmp_path / "output.json", tmp_path)
    context = make_context([run], judge([run]))
    pictures = [overview.make_overview(context).figure]
    for make in (latency_plot.section, heat_map.section):
        pictures += [leaf for leaf in present(make(context), "section").leaves() if isinstance(leaf, Picture)]
    assert len(pictures) >= 3
    for picture in (present(one, "figure") for one in pictures):
        assert f"Not drawn: {counted} values" in picture.caption
        header, rows = picture.data
        if header[0] != "line":
            assert [row[2] for row in rows[:2]] == [10_000, counted]
            assert sum(row[2] or 0 for row in rows[2:]) == drawn[1]
            continue
        assert header[-1] == "at_least_us"
        assert [tuple(row[1:3]) for row in rows if row[-1] is None] == [drawn]
        assert [(row[1], row[2]) for row in rows if row[-1] is not None] == [(None, counted)]
