# SPDX-License-Identifier: GPL-2.0-or-later
"""Exports: what another program reads is what was recorded, value by value."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import struct
import zlib
from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from fastenough.exchange import EXPORTERS, export, read_import, read_source, recording_lines
from fastenough.exchange.hdrhistogram import compressed, payload
from fastenough.exchange.rows import SeriesTotal, series_totals
from fastenough.model import BadInput, Configuration, Role, Series
from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.building import line_bytes
from tests.support.cli_calls import ROOT, command_line
from tests.support.junit_rules import faults
from tests.support.recordings import Plan, RunFields, latencies, quiet, recording

ANOTHER_ENCODERS = b"HISTFAAAADJ4nJNpmSzMwMAgwgABzFCaEURwALH9B6gAG9N3eS6B3/wsmz1u8G+2YvqbwgIArKkJEw=="
"""These values, as the HdrHistogram project's own library for Python encodes them with three digits."""
VALUES = {1: 3, 2: 1, 2047: 5, 2048: 7, 2049: 1, 4095: 2, 99999: 1000, 100031: 4, 1234567: 1, 100000000: 2}


@pytest.fixture
def own(tmp_path: Path) -> Recording:
    return recording(tmp_path, Plan(latencies(3, intervals=4), load="cpu", run_id="own", lost=2, missed=3))


def imported(tmp_path: Path, name: str) -> Recording:
    source = read_source(ROOT / "tests/cases/exchange" / name)
    path = tmp_path / "imported.jsonl"
    path.write_bytes(b"".join(map(line_bytes, recording_lines(read_import(source), source, "foreign"))))
    return read_recording(path)


def varints(body: bytes) -> list[int]:
    """ZigZag LEB128 of 64 bits, as the HdrHistogram project defines it."""
    numbers, at = [], 0
    while at < len(body):
        number = shift = 0
        for place in range(9):
            byte = body[at]
            at += 1
            number |= (byte if place == 8 else byte & 0x7F) << shift
            shift += 7
            if place == 8 or byte < 0x80:
                break
        numbers.append((number >> 1) ^ -(number & 1))
    return numbers


def decoded(encoded: bytes) -> tuple[dict[int, int], int]:
    """Counts by the least value of their bucket, and the greatest value that can be held; three digits."""
    cookie, length = struct.unpack(">ii", encoded[:8])
    plain = zlib.decompress(encoded[8:])
    inner, size, offset, digits, least, greatest, ratio = struct.unpack(">iiiiqqd", plain[:40])
    assert (cookie, inner, offset, digits, least, ratio) == (0x1C849314, 0x1C849313, 0, 3, 1, 1.0)
    assert length == len(encoded) - 8 and size == len(plain) - 40
    counts, index = {}, 0
    for number in varints(plain[40:]):
        if number > 0:
            bucket, sub = (index >> 10) - 1, (index & 1023) + 1024
            counts[index if bucket < 0 else sub << bucket] = number
        index += -number if number < 0 else 1
    return counts, greatest


def least_of_bucket(value: int) -> int:
    shift = max(0, value.bit_length() - 11)
    return value >> shift << shift


def test_values_are_encoded_as_by_another_encoder(own: Recording) -> None:
    values = [value for value, count in VALUES.items() for _ in range(count)]
    ours = compressed(SeriesTotal(own, own.series[0], Histogram.from_values(values, 10)))
    theirs = zlib.decompress(base64.b64decode(ANOTHER_ENCODERS)[8:])
    assert zlib.decompress(ours[8:])[40:] == theirs[40:].rstrip(b"\0")
    expected: Counter[int] = Counter()
    for value, count in VALUES.items():
        expected[least_of_bucket(value)] += count
    assert decoded(ours)[0] == expected and decoded(ours)[1] >= max(VALUES)


def test_a_fraction_of_a_nanosecond_is_never_rounded_down(own: Recording) -> None:
    ticks = replace(own.series[0], unit="ticks", tick_ps=62_500)
    held = SeriesTotal(own, ticks, Histogram.from_values([5, 9], 10))
    assert decoded(compressed(held))[0] == {313: 1, 563: 1}  # 312.5 and 562.5 ns


def test_a_count_beyond_every_byte_is_encoded() -> None:
    counts = [1, 63, 64, 8191, 8192, 2**31, 2**53, 2**62]
    assert varints(payload([0, 1, 5, 6, 7, 100, 101, 3000], counts)) == [
        1,
        63,
        -3,
        64,
        8191,
        8192,
        -92,
        2**31,
        2**53,
        -2898,
        2**62,
    ]


def test_the_log_holds_each_series_exactly(own: Recording) -> None:
    lines = export([own], "hdrhistogram").decode().splitlines()
    assert lines[0] == "#[Histogram log format version 1.3]"
    entries = [line.split(",") for line in lines if line.startswith("Tag=")]
    assert len(entries) == len(own.series)
    for (tag, _, length, greatest_ms, encoded), series in zip(entries, own.series, strict=True):
        total = own.totals[series.id]
        counts, _ = decoded(base64.b64decode(encoded))
        assert counts == dict(
            zip((least_of_bucket(int(high)) for high in total.highest()), total.count.tolist(), strict=True)
        )
        assert tag == f"Tag=own/{series.name}/id={series.id}/cpu={series.cpu}/period_ns=1000000"
        assert float(length) == own.duration_ns / 1e9
        assert float(greatest_ms) == (total.maximum or 0) / 1e6


def test_only_counted_values_are_said_and_never_lower(tmp_path: Path) -> None:
    foreign = imported(tmp_path, "cyclictest-2.4-all.txt")
    text = export([foreign], "hdrhistogram").decode()
    assert "#[6 values of the next were only counted" in text
    counts, _ = decoded(base64.b64decode(text.splitlines()[-1].rpartition(",")[2]))
    assert counts[least_of_bucket(42_000)] == 6 and sum(counts.values()) == 60


def test_negative_values_are_refused_by_what_cannot_hold_them(tmp_path: Path) -> None:
    negative = imported(tmp_path, "xenomai-summary.txt")
    with pytest.raises(BadInput, match="negative values"):
        export([negative], "hdrhistogram")
    assert "_bucket" not in export([negative], "openmetrics").decode()


def test_values_beyond_a_log_are_refused(tmp_path: Path) -> None:
    """Of ticks that are longer than a nanosecond: as integers of 64 bits they fit the recording."""
    ticks = {"unit": "ticks", "tick_ps": 62_500}
    long = recording(tmp_path, Plan([[np.array([2**62])]], first_series=ticks))
    with pytest.raises(BadInput, match="values above"):
        export([long], "hdrhistogram")


def test_csv_and_parquet_and_json_hold_every_bucket(own: Recording, tmp_path: Path) -> None:
    foreign = imported(tmp_path, "stress-ng-0.15.txt")
    expected = [
        (held.recording.run_id, held.series.name, held.series.cpu, *bucket)
        for held in series_totals([own, foreign])
        for bucket in held.buckets_ns()
    ]
    rows = list(csv.DictReader(io.StringIO(export([own, foreign], "csv").decode())))
    assert [
        (
            row["run"],
            row["series"],
            int(row["cpu"]) if row["cpu"] else None,
            float(row["least_ns"]),
            float(row["greatest_ns"]),
            int(row["count"]),
        )
        for row in rows
    ] == expected
    table = pq.read_table(io.BytesIO(export([own, foreign], "parquet"))).to_pylist()
    assert [
        (row["run"], row["series"], row["cpu"], row["least_ns"], row["greatest_ns"], row["count"]) for row in table
    ] == expected
    runs = json.loads(export([own, foreign], "json"))["runs"]
    assert [
        (run["id"], series["name"], series["cpu"], *bucket.values())
        for run in runs
        for series in run["series"]
        for bucket in series["buckets"]
    ] == expected
    assert [series["lost"] for series in runs[0]["series"]] == [own.lost(series.id) for series in own.series]


def _no_summary(tmp_path: Path, *, values: int, over: int) -> Recording:
    """``rtla timerlat hist --no-summary``: of values beyond its histogram only the number is known."""
    path = tmp_path / "source.txt"
    path.write_text(
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\n"
        f"Index   Thr-000\n1        {values}\n2        {values}\nover:      {over}\n"
    )
    source = read_source(path)
    target = tmp_path / "no-summary.jsonl"
    target.write_bytes(b"".join(map(line_bytes, recording_lines(read_import(source), source, "foreign"))))
    return read_recording(target)


def test_lost_values_and_missed_activations_are_in_each_form(own: Recording, tmp_path: Path) -> None:
    foreign = _no_summary(tmp_path, values=50, over=900)
    expected = {
        (run.run_id, series.id, run.lost(series.id), run.missed(series.id))
        for run in (own, foreign)
        for series in run.series
    }
    assert ("foreign", 0, 900, 0) in expected and any(
        run == "own" and lost and missed for run, _, lost, missed in expected
    )
    rows = csv.DictReader(io.StringIO(export([own, foreign], "csv").decode()))
    assert {(row["run"], int(row["id"]), int(row["lost"]), int(row["missed"])) for row in rows} == expected
    table = pq.read_table(io.BytesIO(export([own, foreign], "parquet"))).to_pylist()
    assert {(row["run"], row["id"], row["lost"], row["missed"]) for row in table} == expected
    log = export([own, foreign], "hdrhistogram").decode()
    stated = {int(number) for number in re.findall(r"#\[(\d+) (?:values|activations) of the next histogram were", log)}
    assert stated == {number for *_, lost, missed in expected for number in (lost, missed)} - {0}


def test_a_series_that_only_lost_values_has_a_row_without_edges(tmp_path: Path) -> None:
    foreign = _no_summary(tmp_path, values=0, over=7)
    [row] = csv.DictReader(io.StringIO(export([foreign], "csv").decode()))
    assert (row["lost"], row["least_ns"], row["greatest_ns"], row["count"]) == ("7", "", "", "0")
    [typed] = pq.read_table(io.BytesIO(export([foreign], "parquet"))).to_pylist()
    assert (typed["lost"], typed["least_ns"], typed["greatest_ns"], typed["count"]) == (7, None, None, 0)


def test_a_number_of_lost_values_that_is_unknown_is_an_empty_cell(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(export([imported(tmp_path, "latmus.txt")], "csv").decode())))
    assert rows and {(row["lost"], row["missed"]) for row in rows} == {("", "1")}


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    evil = recording(tmp_path, Plan([[np.array([5])]], run_id="=cmd()", views=("+wakeup",), head={"board": "\n=cmd()"}))
    rows = list(csv.DictReader(io.StringIO(export([evil], "csv").decode(), newline="")))
    assert {(row["run"], row["series"], row["board"]) for row in rows} == {("'=cmd()", "'+wakeup", "'\n'=cmd()")}


def test_no_part_of_a_cell_is_a_formula_where_semicolons_separate_cells(tmp_path: Path) -> None:
    """Spreadsheets of many countries split at semicolons, also within the quotes of another separator."""
    boards = ('x;=HYPERLINK("http://example.org")', "x; +1", 'x;"-1', "x\t@SUM(A1)", "x\n=1", "x;a=1,-2;b")
    for number, board in enumerate(boards):
        evil = recording(tmp_path, Plan([[np.array([5])]], run_id=f"run-{number}", head={"board": board}))
        text = export([evil], "csv").decode()
        assert not re.search(r"[;\t\n][ \"]*[=+@-]", text)
        row = next(csv.DictReader(io.StringIO(text, newline="")))
        assert row["board"].replace("'", "") == board and (row["board"] == board) == (board == boards[-1])


def transfers(tmp_path: Path, run_id: str, interval_ns: int) -> Recording:
    """Two series of transfers that differ in their number of bytes only."""
    one = recording(tmp_path, Plan([[np.array([7000])]], run_id=run_id, load=None, views=("transfer", "other")))
    sizes = [
        replace(
            series,
            name="transfer",
            bytes=size,
            labels={"block": "8192"},
            corrected=False,
            role=Role.THROUGHPUT,
            from_event="first write",
            to_event="last read",
            period_ns=None,
        )
        for series, size in zip(one.series, (10**6, 10**7), strict=True)
    ]
    head = replace(
        one.head,
        series=tuple(sizes),
        parameters={"interval_ns": interval_ns},
        board="b",
        configuration=Configuration("rt"),
    )
    return replace(one, head=head)


def test_series_that_differ_in_size_and_runs_that_differ_in_parameters_are_distinct(tmp_path: Path) -> None:
    runs = [transfers(tmp_path, "one", 1000), transfers(tmp_path, "two", 2000)]
    expected = [(run, size, parameter) for run, parameter in (("one", 1000), ("two", 2000)) for size in (10**6, 10**7)]
    rows = list(csv.DictReader(io.StringIO(export(runs, "csv").decode())))
    assert [(row["run"], int(row["bytes"]), json.loads(row["parameters"])["interval_ns"]) for row in rows] == expected
    table = pq.read_table(io.BytesIO(export(runs, "parquet"))).to_pylist()
    assert [(row["run"], row["bytes"], json.loads(row["parameters"])["interval_ns"]) for row in table] == expected
    assert {(row["board"], row["configuration"], row["load"]) for row in table} == {("b", "rt", None)}
    log = export(runs, "hdrhistogram").decode().splitlines()
    stated = {
        run["run"]: json.loads(run["parameters"])["interval_ns"]
        for run in (
            json.loads(line.removeprefix("#[Run: ").removesuffix("]")) for line in log if line.startswith("#[Run: ")
        )
    }
    tags = [re.match(r"Tag=(\w+)/.*/bytes=(\d+)/", line) for line in log if line.startswith("Tag=")]
    assert [(tag[1], int(tag[2]), stated[tag[1]]) for tag in tags if tag] == expected
    metrics = export(runs, "openmetrics").decode()
    assert re.findall(r'_max_seconds\{run="(\w+)",.*?bytes="(\d+)"', metrics) == [
        (run, str(size)) for run, size, _ in expected
    ]
    assert [
        (run["id"], series["bytes"], run["head"]["parameters"]["interval_ns"])
        for run in json.loads(export(runs, "json"))["runs"]
        for series in run["series"]
    ] == expected


@pytest.mark.parametrize(
    "name",
    [
        field.name
        for field in fields(Series)
        if field.name not in ("unit", "k", "two_sided", "relative", "tick_ps", "rise_k", "refused", "source_summary")
    ],
)
def test_every_field_of_the_identity_of_a_series_is_exported(own: Recording, name: str) -> None:
    """What is left out says how values are stored, not which values they are."""
    one = replace(own.series[0], labels={"a": 1})
    values: dict[str, Any] = {"labels": {"a": 2}, "role": Role.THROUGHPUT, "corrected": True}
    changed = replace(one, **{name: values.get(name, 77)})
    assert SeriesTotal(own, one, own.totals[0]).identity != SeriesTotal(own, changed, own.totals[0]).identity


SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')


def test_openmetrics_leaves_out_what_an_import_does_not_know(tmp_path: Path) -> None:
    """A value of the second series was beyond the histogram: its maximum and sum are unknown."""
    text = export([imported(tmp_path, "rtla-no-summary.txt")], "openmetrics").decode()
    samples = [match.groups() for line in text.splitlines() if (match := SAMPLE.fullmatch(line))]
    names = ("max_seconds", "min_seconds", "latency_seconds_sum", "latency_seconds_count", "lost_values_total")
    series = {
        name: [value for full, labels, value in samples if full.endswith(name) and "series" in labels] for name in names
    }
    assert series == {
        "max_seconds": ["2e-06"],
        "min_seconds": ["1e-06", "1e-06"],
        "latency_seconds_sum": ["4e-06"],
        "latency_seconds_count": ["3"],
        "lost_values_total": ["0", "1"],
    }


@pytest.mark.parametrize("name", ["latmus.txt", "rt-dataset-1.0.json", "perf-sched.txt", "rtla-osnoise-top.txt"])
def test_a_number_of_values_that_an_import_does_not_know_is_not_exported(name: str, tmp_path: Path) -> None:
    foreign = imported(tmp_path, name)
    assert json.loads(export([foreign], "json"))["runs"][0]["series"][0]["count"] is None
    metrics = export([foreign], "openmetrics").decode()
    assert not re.search(r'_seconds_(count|sum|bucket)\{.*id="0"', metrics)
    assert re.search(r'_lost_values_total\{.*id="0"', metrics)
    if foreign.series[0].role is Role.VERDICT:
        assert "#[The source of the next histogram omits an unknown number of values]\nTag=" in re.sub(
            r"#\[\d+ values.*\n", "", export([foreign], "hdrhistogram").decode()
        )


def test_a_minimum_that_an_import_does_not_know_is_not_the_maximum(tmp_path: Path) -> None:
    """perf states the longest wait of a task only."""
    foreign = imported(tmp_path, "perf-sched.txt")
    series = json.loads(export([foreign], "json"))["runs"][0]["series"][0]
    assert (series["min_ns"], series["max_ns"]) == (None, 482_000)
    metrics = export([foreign], "openmetrics").decode()
    assert not re.search(r'_latency_min_seconds\{.*id="0"', metrics)
    assert re.search(r'_latency_max_seconds\{.*id="0".* 0.000482\n', metrics)


def test_openmetrics_is_cumulative_and_complete(tmp_path: Path) -> None:
    plan = Plan(latencies(3, cpus=1, intervals=2), run_id='a"b\\c\nd', views=("wakeup",), missed=4)
    one = recording(tmp_path, replace(plan, run_id="one"))
    one = replace(one, head=replace(one.head, run_id='a"b\\c\nd'))
    text = export([one], "openmetrics").decode()
    lines = text.splitlines()
    assert lines[-1] == "# EOF" and text.endswith("# EOF\n")
    samples = [match.groups() for line in lines if not line.startswith("#") and (match := SAMPLE.fullmatch(line))]
    assert len(samples) == sum(not line.startswith("#") for line in lines)
    assert all('run="a\\"b\\\\c\\nd"' in labels for _, labels, _ in samples)
    within = [int(value) for name, _, value in samples if name.endswith("_bucket")]
    total = one.totals[0]
    assert within == sorted(within) and within[-1] == within[-2] == total.total
    edges = [match[1] for _, labels, _ in samples if (match := re.search(r'le="([^"]+)"', labels))]
    assert edges[-1] == "+Inf" and [float(edge) for edge in edges] == sorted(map(float, edges))
    at_5_us = within[[float(edge) for edge in edges].index(5e-6)]
    assert at_5_us == int(total.count[total.highest() <= 5000].sum()) > 0
    values = {name: float(value) for name, _, value in samples}
    assert values["fastenough_latency_seconds_sum"] == pytest.approx(total.sum / 1e9)
    assert values["fastenough_latency_max_seconds"] == (total.maximum or 0) / 1e9
    assert values["fastenough_missed_activations_total"] == 4


def case_of(recordings: list[Recording]) -> ElementTree.Element:
    content = export(recordings, "junit")
    assert faults(content) == []
    [case] = ElementTree.fromstring(content).findall("testsuite/testcase")
    return case


def test_a_suite_says_where_when_and_how_long(tmp_path: Path) -> None:
    runs = [recording(tmp_path, Plan(quiet(name), run_id=name)) for name in ("one", "two")]
    (suite,) = ElementTree.fromstring(export(runs, "junit"))
    assert float(suite.get("time") or 0) == pytest.approx(sum(run.duration_ns for run in runs) / 1e9, abs=1e-3)
    begun = datetime.fromisoformat(suite.get("timestamp") or "").replace(tzinfo=UTC)
    assert abs(begun.timestamp() - runs[0].head.begin.wall_ns / 1e9) < 1
    assert suite.get("hostname") == runs[0].head.board


def test_a_suite_of_an_import_without_a_begin_has_no_timestamp(tmp_path: Path) -> None:
    plan = Plan(
        quiet("one"), run_id="one", marks=("imported",), begin_ns=0, head={"begin": {"mono_ns": 0, "wall_ns": 0}}
    )
    content = export([recording(tmp_path, plan)], "junit")
    (suite,) = ElementTree.fromstring(content)
    assert suite.get("timestamp") is None and faults(content) == []


def test_times_that_an_import_does_not_state_are_unknown_in_exports(own: Recording, tmp_path: Path) -> None:
    foreign = imported(tmp_path, "cyclictest-2.4-quiet.txt")
    alone = export([foreign], "hdrhistogram").decode()
    assert (
        "StartTime:" not in alone
        and "#[Unknown in this run, 0 in its lines: StartTimestamp and Interval_Length]" in alone
    )
    both = export([foreign, own], "hdrhistogram").decode()
    assert f"#[StartTime: {own.head.begin.wall_ns / 1e9:.3f} (seconds" in both and both.count("#[Unknown in") == 1
    entries = [line.split(",") for line in both.splitlines() if line.startswith("Tag=")]
    assert {float(start) for _, start, *_ in entries} == {0.0}
    runs = json.loads(export([foreign, own], "json"))["runs"]
    assert [run["duration_ns"] for run in runs] == [None, own.duration_ns]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b' tests="1"', b""),
        (b' tests="1"', b' tests="2"'),
        (b"testcase", b"case"),
        (b' name="load', b' label="load'),
        (b'time="', b'time="about '),
        (b"<system-out>", b"<failure /><error /><system-out>"),
        (b"testsuites", b"suites"),
        (b" timestamp=", b" stamp="),
        (b' hostname="', b' host="'),
    ],
)
def test_what_a_ci_server_would_not_take_is_found(tmp_path: Path, old: bytes, new: bytes) -> None:
    content = export([recording(tmp_path, Plan(quiet("run-1")))], "junit")
    assert old in content and faults(content) == []
    assert faults(content.replace(old, new))


@pytest.mark.parametrize(
    ("limit_ns", "change", "expected"),
    [
        (1_000_000, {}, None),
        (4_000, {}, "failure"),
        (1_000_000, {"lost": 1}, "error"),
        (None, {}, "skipped"),
        (1_000_000, {"marks": ("imported",)}, "error"),
        (1_000_000, {"outcome": None}, "error"),
    ],
)
def test_only_a_pass_is_a_test_that_passed(
    tmp_path: Path, limit_ns: int | None, change: RunFields, expected: str | None
) -> None:
    required = {} if limit_ns is None else {"requirement": {"limit_ns": limit_ns, "miss_rate": 0, "confidence": 0.95}}
    plan = replace(Plan(quiet("run-1"), head=required), **change)
    case = case_of([recording(tmp_path, plan)])
    assert [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None] == (
        [] if expected is None else [expected]
    )


def test_nothing_to_judge_is_an_error() -> None:
    assert case_of([]).find("error") is not None


@pytest.mark.check
def test_the_command_writes_each_form_and_replaces_nothing(tmp_path: Path) -> None:
    there = ("--store", str(tmp_path / "store"))
    case = str(ROOT / "tests/cases/exchange" / "rtla-us.txt")
    assert command_line("import", case, *there).returncode == 0
    out = tmp_path / "run.out"
    assert command_line("export", "last", "--to", "parquet", "--out", str(out), *there).returncode == 0
    assert pq.read_table(out).num_rows == 13
    again = command_line("export", "last", "--to", "csv", "--out", str(out), *there)
    assert again.returncode == 2 and f"{out} exists" in again.stderr
    printed = command_line("export", "last", "--to", "csv", *there)
    assert printed.returncode == 0 and printed.stdout.startswith("run,board,configuration")
    wrong = command_line("export", "last", "--to", "xml", *there)
    assert wrong.returncode == 2 and all(name in wrong.stderr for name in EXPORTERS)
