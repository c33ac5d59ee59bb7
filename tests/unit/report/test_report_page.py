# SPDX-License-Identifier: GPL-2.0-or-later
"""The report: complete, self-contained, right in its numbers, and whole with odd data."""

from __future__ import annotations

import csv
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge, merge_samples
from fastenough.model import BadInput, Configuration, Requirement
from fastenough.recording import Histogram, Interval, Recording
from fastenough.recording.aggregate import Aggregate
from fastenough.report import plot, write, write_report
from fastenough.report.context import make_context
from fastenough.report.sections import SECTIONS, before_after, heat_map, latency_plot
from tests.support.recordings import PROFILE, Plan, latencies, recording

pytestmark = pytest.mark.check

EVIL = "<script>alert('x')</script> $\\frac{ & \"q\""
LOADS = ("none", "cpu", "io")


class _Page(HTMLParser):
    """Collects texts, attributes and ids, and whether every element that was opened is closed."""

    void = frozenset({"meta", "link", "br", "img", "input", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def _titles(report: Path) -> set[str]:
    """What stands above the latency plots."""
    return {
        text
        for path in (report / "figures").glob("latency-*.svg")
        for text in re.findall(
            r"<text[^>]*font-weight[^>]*>(.*?)</text>|<text[^>]*bold[^>]*>(.*?)</text>", path.read_text()
        )
        for text in text
        if text
    }


def _values() -> list[Any]:
    return latencies(1, intervals=6, per_interval=500)


def _runs(folder: Path, loads: tuple[str, ...] = LOADS) -> list[Recording]:
    return [
        recording(
            folder,
            Plan(
                latencies(seed, intervals=6, per_interval=500), run_id=f"run-{load}", load=load, begin_ns=seed * 10**10
            ),
        )
        for seed, load in enumerate(loads)
    ]


def _report(recordings: list[Recording], out: Path, requirement: Requirement | None = None) -> _Page:
    write_report(recordings, judge(recordings, requirement), out)
    page = _Page((out / "index.html").read_text())
    assert page.open == [], "every element is closed"
    return page


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Recording]]:
    folder = tmp_path_factory.mktemp("ordinary")
    recordings = _runs(folder)
    _report(recordings, folder / "report", Requirement(200_000))
    return folder / "report", recordings


def test_the_page_needs_nothing_else(ordinary: tuple[Path, list[Recording]]) -> None:
    source = (ordinary[0] / "index.html").read_text()
    page = _Page(source)
    links = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "data", "action")]
    assert all(value.startswith(("#", "data:")) for value in links)
    assert "script" not in page.tags and "iframe" not in page.tags and "link" not in page.tags
    assert all(inside.lstrip("'\"").startswith(("#", "data:")) for inside in re.findall(r"url\(([^)]*)\)", source))
    assert "@import" not in source


def test_ids_are_unique_and_every_reference_has_its_target(ordinary: tuple[Path, list[Recording]]) -> None:
    page = _Page((ordinary[0] / "index.html").read_text())
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for name, value in page.attributes if "href" in name and value.startswith("#")} <= set(ids)


def _parts(page: str) -> dict[str, list[str]]:
    """The ids of the sections in each part of the page below the summary."""
    starts = [*re.finditer(r'<(?:div|details) class="part" id="part-([a-z]+)"', page)]
    ends = [*(start.start() for start in starts[1:]), len(page)]
    return {
        start[1]: re.findall(r'<section id="([a-z-]+)"', page[start.start() : end])
        for start, end in zip(starts, ends, strict=True)
    }


def test_the_verdict_comes_first_and_everything_is_labelled(ordinary: tuple[Path, list[Recording]]) -> None:
    text = _Page((ordinary[0] / "index.html").read_text()).text
    source = (ordinary[0] / "index.html").read_text()
    assert _parts(source) == {
        "evidence": ["percentiles", "supported", "bounds", "views", "stress-matrix", "latency", "checks"],
        "details": ["heat", "frequency", "uncertainty", "extremes"],
        "appendix": ["machine", "settings", "audit", "runs", "method", "profile"],
    }
    headings = ["Reasons", "Next steps", "Caveats", "Evidence", "Details", "Appendix"]
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", source) == headings
    assert source.count('<details class="part"') == 2, "details and appendix are folded"
    first = [
        source.index(part)
        for part in ("<nav", '<span class="word">', 'id="table-overview"', 'id="figure-overview"', "<h2")
    ]
    assert first == sorted(first)
    assert "no verdict where a missed deadline may injure or kill" in text
    captions = re.findall(r"<figcaption[^>]*>(.*?)<", source)
    figures = [caption for caption in captions if caption.startswith("wakeup")]
    assert len(figures) >= 2 * len(LOADS)
    for caption in figures:
        for word in ("n = 6,000", "3 s", "load ", "measured by the board itself"):
            assert word in caption


def test_date_and_system_are_said_once(ordinary: tuple[Path, list[Recording]]) -> None:
    text = _Page((ordinary[0] / "index.html").read_text()).text
    assert "Measured 2026-09-21 14:13 UTC in 3 runs" in text
    assert text.count("testboard") == text.count("Example <CPU> & co;") == 1


def test_all_files_are_there_and_agree_with_the_recordings(ordinary: tuple[Path, list[Recording]]) -> None:
    out, recordings = ordinary
    for kind in ("svg", "png", "csv"):
        assert len(list((out / "figures").glob(f"*.{kind}"))) == 2 * len(LOADS) + 1
    with (out / "tables" / "stress-matrix-1.csv").open() as stream:
        matrix = {row[0]: row[1:] for row in csv.reader(stream)}
    assert matrix["latency [µs]"] == ["no stress", "cpu", "io"]
    for place, one in enumerate(recordings):
        together = merge_samples([(one, series) for series in one.named("wakeup_corrected")])
        assert float(matrix["Max"][place]) == together.histogram.maximum
        assert float(matrix["Min"][place]) == together.histogram.minimum
        assert float(matrix["Average"][place]) == pytest.approx(together.histogram.mean)
    numbers = json.loads((out / "report.json").read_text())
    assert numbers["assessment"]["verdict"] == "INCONCLUSIVE"
    assert numbers["runs"] == [one.run_id for one in recordings]
    assert [row[3:5] for row in numbers["tables"]["bounds"]["rows"][1:3]] == [["0", 3000], ["1", 3000]]
    assert [budget["load"] for budget in numbers["uncertainty"]] == list(LOADS)
    assert all(budget["latencies"][-1]["latency"] == "maximum" for budget in numbers["uncertainty"])
    evidence = [one["text"] for judgment in numbers["assessment"]["judgments"] for one in judgment["evidence"]]
    assert evidence and [row[7] for row in numbers["tables"]["shown"]["rows"][1:]] == evidence
    assert [row[1] for row in numbers["tables"]["overview"]["rows"][1:]] == [6000] * len(LOADS)


def test_published_figures_stand_beside_ones_own(ordinary: tuple[Path, list[Recording]]) -> None:
    with (ordinary[0] / "tables" / "enea-a5.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["latency [µs]", "no stress", "cpu", "io", "vm", "hdd", "full"]
    assert [float(cell) / 1000 for cell in rows[3][1:]] == [16, 12, 19, 13, 27, 18]


def test_stairs_hold_every_sample(ordinary: tuple[Path, list[Recording]]) -> None:
    one = ordinary[1][0]
    values = merge_samples([(one, series) for series in one.named("wakeup_corrected")])
    us, counts = plot.one_microsecond_view(values)
    heights, edges = plot.stairs(us, counts)
    assert counts.sum() == values.n
    assert heights[heights >= 1].sum() == values.n
    assert edges[-1] - 1 <= (values.histogram.maximum or 0) / 1000 < edges[-1]
    raw = np.concatenate([interval for cpu in latencies(0, intervals=6, per_interval=500) for interval in cpu])
    exact = np.bincount(raw // 1000)
    assert [int(exact[whole]) for whole in us] == list(counts)


def test_foreign_words_are_only_words(tmp_path: Path) -> None:
    head = {"board": EVIL, "configuration": EVIL, "profile": PROFILE | {EVIL: EVIL}}
    plan = Plan(
        _values(),
        load=EVIL,
        head=head,
        reasons=(EVIL,),
        outcome="failed",
        settings=({"name": EVIL, "requested": EVIL, "in_effect": EVIL, "reason": EVIL},),
        events=({"kind": "max", "series": 0, "value": 5, "culprit": {"comm": EVIL}},),
    )
    page = _report([recording(tmp_path, plan)], tmp_path / "report")
    assert "script" not in page.tags
    assert EVIL.replace("  ", " ") in page.text


def test_why_data_are_of_no_use_stands_beside_the_verdict(tmp_path: Path) -> None:
    page = _report(
        [recording(tmp_path, Plan(_values(), reasons=("the load died",), outcome="failed"))], tmp_path / "report"
    )
    source = (tmp_path / "report" / "index.html").read_text()
    summary = source[source.index('id="summary"') : source.index('id="part-')]
    assert "BROKEN" in summary and summary.count("the load died") == 1
    assert "runs" in _parts(source)["appendix"] and "the load died" in page.text.rpartition("Runs")[2]


ODD: dict[str, dict[str, Any]] = {
    "no interval": {"values": []},
    "no sample": {"values": [[np.array([], dtype=np.int64)] * 3] * 2, "interval_ns": 10**9},
    "one CPU without a sample": {
        "values": [[np.array([5], dtype=np.int64)], [np.array([], dtype=np.int64)]],
        "interval_ns": 10**9,
    },
    "one sample": {"values": [[np.array([5123])]]},
    "one sample of nothing": {"values": [[np.array([0])]]},
    "early wake-ups": {"values": [[np.array([-4000, -2, 0, 5000])]]},
    "only early wake-ups": {"values": [[np.array([-4000, -2000])]]},
    "early and a huge outlier": {"values": [[np.array([-4000, 5000, 10**9])]]},
    "one second beside 5 µs": {"values": [[np.append(np.full(2000, 5000), 10**9)]]},
    "the greatest value": {"values": [[np.array([2**62])]]},
    "jitter": {"values": [[np.array([-9000, 0, 3000])]], "views": ("jitter",)},
    "cut off": {"values": [[np.array([5123, 7000])]], "outcome": None},
    "no load, no profile": {"values": [[np.array([5123])]], "load": None, "head": {"profile": None}},
    "refused": {"values": [[np.array([], dtype=np.int64)]], "series": {"refused": "too large"}},
    "ticks": {
        "values": [[np.array([16, 99])]],
        "series": {"unit": "ticks", "tick_ps": 62_500},
        "head": {"instrument": {"name": "uno"}},
    },
}


@pytest.mark.parametrize("name", list(ODD))
def test_odd_recordings_are_reported_whole(tmp_path: Path, name: str) -> None:
    page = _report([recording(tmp_path, replace(Plan([]), **ODD[name]))], tmp_path / "report")
    assert "runs" in _parts((tmp_path / "report" / "index.html").read_text())["appendix"]
    assert not re.search(r"\b(nan|inf|None(?! above))\b", page.text)


def test_nothing_measured_is_reported_too(tmp_path: Path) -> None:
    unfit = recording(tmp_path, Plan([], outcome="not-applicable", reasons=("no stress-ng",)))
    assert "no stress-ng" in _report([unfit], tmp_path / "report").text
    assert "INCONCLUSIVE" in _report([], tmp_path / "empty").text


def test_an_outlier_cuts_the_linear_axis_and_shows_the_tail_beside(tmp_path: Path) -> None:
    values = _values()
    values[0][0] = np.append(values[0][0], 10**9)
    page = _report([recording(tmp_path, Plan(values))], tmp_path / "report")
    assert "The axis is cut: 1 sample beyond it, up to 1,000,000 µs" in page.text
    assert (tmp_path / "report" / "figures" / "latency-1-tail.svg").exists()


def test_groups_under_one_load_are_told_apart(tmp_path: Path) -> None:
    plans = [Plan(_values(), run_id=f"run-{kernel}", head={"configuration": kernel}) for kernel in ("stock", "rt")]
    _report([recording(tmp_path, plan) for plan in plans], tmp_path / "report")
    assert {"stock", "rt"} <= _titles(tmp_path / "report")
    tables = {path.stem for path in (tmp_path / "report" / "tables").glob("stress-matrix*.csv")}
    assert tables == {"stress-matrix-all"}, "of one load there is no matrix"


def test_settings_that_differ_tell_groups_apart(tmp_path: Path) -> None:
    runs = [
        recording(
            tmp_path,
            Plan(
                _values(),
                run_id=f"run-{priority}",
                settings=tuple(
                    {"name": "priority", "cpu": cpu, "requested": priority, "in_effect": priority} for cpu in (0, 1)
                ),
            ),
        )
        for priority in (98, 50)
    ]
    _report(runs, tmp_path / "report")
    assert {"priority 98", "priority 50"} <= _titles(tmp_path / "report")


def test_the_next_report_leaves_nothing_of_the_former(tmp_path: Path) -> None:
    out = tmp_path / "report"
    recordings = _runs(tmp_path)
    _report(recordings, out)
    mine = [out / "figures" / "mine.svg", out / "tables" / "mine.csv"]
    for file in mine:
        file.write_text("kept")
    _report(recordings[:1], out)
    assert len(list((out / "figures").glob("*.svg"))) == 3 + 1
    assert all(file.exists() for file in mine)


@pytest.mark.parametrize(
    "numbers",
    [
        "{}",
        "[" * 100_000,
        '{"files": ["figures/mine.svg"]}',
        '{"fastenough": "1", "files": ["tables/../figures/mine.svg", "figures/\\u0000.svg", 1]}',
    ],
)
def test_a_folder_of_others_loses_no_file(tmp_path: Path, numbers: str) -> None:
    """Its report.json is not that of a report, or lists what no report writes."""
    out = tmp_path / "report"
    (out / "figures").mkdir(parents=True)
    (out / "figures" / "mine.svg").write_text("kept")
    (out / "report.json").write_text(numbers)
    write_report([], judge([]), out)
    assert (out / "figures" / "mine.svg").exists()


def test_a_first_screen_that_cannot_be_made_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(_: object) -> None:
        raise ValueError("too odd")

    monkeypatch.setattr(write, "make_overview", odd)
    text = _report([recording(tmp_path, Plan(_values()))], tmp_path / "report").text
    assert "(ValueError: too odd)" in text
    assert "runs" in _parts((tmp_path / "report" / "index.html").read_text())["appendix"]


def test_where_it_cannot_write_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write the report to"):
        write_report([], judge([]), tmp_path / "file")


def test_every_section_is_listed_and_named_once() -> None:
    modules = {path.stem for path in Path(plot.__file__).parent.joinpath("sections").glob("*.py")} - {"__init__"}
    assert modules == {section.__module__.rsplit(".", 1)[1] for section in SECTIONS}
    assert len(SECTIONS) == len(set(SECTIONS))


def _many(tmp_path: Path, runs: int) -> list[Recording]:
    """Runs of 100 million samples each in five-minute intervals, as a farm keeps them."""
    random = np.random.default_rng(5)
    first = recording(tmp_path, Plan(_values()))
    base = Histogram.from_values((random.lognormal(1.5, 0.6, 50_000) * 1000).astype(np.int64), 10)
    part = 100_000_000 // base.total // 20 // 2
    each = Histogram(10, base.index, base.count * part, base.minimum, base.maximum, base.sum * part, base.sum_sq * part)
    total = Histogram.merged([each] * 20, 10)
    ids = [series.id for series in first.series]
    none = dict.fromkeys(ids, 0)
    length = each.total * 1_000_000
    intervals = tuple(
        Interval(i, i * length, (i + 1) * length, 0, 0, dict.fromkeys(ids, each), none, none, {}) for i in range(20)
    )
    added = Aggregate(dict.fromkeys(ids, total), none, none, 20, 0, 20 * length)
    return [
        replace(first, head=replace(first.head, run_id=f"run-{i}"), intervals=intervals, aggregate=added)
        for i in range(runs)
    ]


def test_twenty_thousand_million_samples_are_drawn_in_seconds(tmp_path: Path) -> None:
    recordings = _many(tmp_path, 200)
    begin = time.process_time()
    page = _report(recordings, tmp_path / "report")
    assert "n = 20,000,000,000, 200 runs" in page.text
    assert time.process_time() - begin < 60, "seconds, with much to spare for a slow machine"


def test_many_groups_do_not_draw_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_plot, "MOST_PLOTS", 2)
    monkeypatch.setattr(heat_map, "MOST_MAPS", 2)
    monkeypatch.setattr(before_after, "MOST_PAIRS", 2)
    one = recording(tmp_path, Plan([[np.array([5000, 6000])]]))
    groups = [replace(one, head=replace(one.head, configuration=Configuration(f"kernel {i}"))) for i in range(4)]
    context = make_context(groups, judge(groups))
    assert len(context.groups) == 4
    page = _report(groups, tmp_path / "report")
    assert page.text.count("2 more are not drawn") == 2
    assert page.text.count("1 more are not drawn") == 1
    assert len(list((tmp_path / "report" / "figures").glob("*.svg"))) == 7
