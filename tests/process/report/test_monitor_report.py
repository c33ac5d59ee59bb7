# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report says of a monitored run: the station that is long, the culprit that was told, and no number beside."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.analysis.stations import blamed_tasks, tail_of, worst_wakeups
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.recording.content import LazySequence
from fastenough.recording.culprits import TIMER_INTERRUPT, UNKNOWN, cause_of_delay, culprit_text
from fastenough.recording.interval import Interval
from fastenough.recording.wakeups import key_of, wakeups
from fastenough.report import write_report
from fastenough.report.context import make_context
from fastenough.report.document import Picture, ReportTable, Text
from fastenough.report.sections import events, stations
from fastenough.web.pages.run import sections_of
from tests.support.browser import faults_of
from tests.support.monitor_recordings import CULPRIT, PARTS, Watched, watched
from tests.support.presence import present
from tests.support.recordings import Plan, latencies, recording

pytestmark = pytest.mark.untimed

INTERRUPTED = CULPRIT | {
    "waited_for": "swapper/1",
    "waited_for_pid": 0,
    "idle_state": "C6",
    "interrupt": "nvme0q1",
    "interrupt_ns": 250_000,
    "stack": "bpf_prog_1_on < bpf_trace_run4 < nvme_irq < common",
}
LOADS = {
    "none": Watched("m-none", load="none"),
    "io": Watched("m-io", load="io", long={"expiry-to-interrupt": 320_000}, culprit=INTERRUPTED),
}


@pytest.fixture
def runs(tmp_path: Path) -> list[Recording]:
    return [watched(tmp_path, plan) for plan in LOADS.values()]


def _report(runs: list[Recording], out: Path) -> Path:
    write_report(runs, judge(runs), out)
    return out


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _never() -> list[Interval]:
    raise AssertionError("a report of a year would read each interval of each recording out of its text")


def _without_intervals(run: Recording) -> Recording:
    return replace(run, intervals=LazySequence(_never), over_time=lambda: run.timeline)


@pytest.mark.slow
def test_a_report_goes_by_what_recordings_add_up_to_and_their_course(runs: list[Recording], tmp_path: Path) -> None:
    kept = [_without_intervals(run) for run in runs]
    assert (_report(kept, tmp_path / "report") / "index.html").is_file()


@pytest.mark.slow
def test_thousands_are_set_off_on_axes_as_in_the_text_beside_them(tmp_path: Path) -> None:
    run = watched(tmp_path, Watched(long={"runnable-to-running": 5_000_000}))
    drawn = (_report([run], tmp_path / "report") / "figures" / "stations-1.svg").read_text()
    assert ">4,000<" in drawn and ">4000<" not in drawn


def test_several_series_tell_of_one_wakeup(runs: list[Recording]) -> None:
    found = wakeups(runs[0].head, runs[0].events)
    assert len(runs[0].events) == 2 * len(found) == 2 * LOADS["none"].intervals
    assert [wakeup.delay_ns for wakeup in found] == sorted((wakeup.delay_ns for wakeup in found), reverse=True)
    for wakeup in found:
        assert list(wakeup.parts) == list(PARTS)
        assert wakeup.delay_ns == wakeup.culprit[key_of("expiry-to-return")]


@pytest.mark.parametrize("station", PARTS)
def test_the_tail_comes_from_the_station_that_was_made_long(tmp_path: Path, station: str) -> None:
    run = watched(tmp_path, Watched(long={station: 90_000}))
    tail = tail_of(worst_wakeups([run]))
    assert tail is not None and (tail.station, tail.longest_in) == (station, LOADS["none"].intervals)
    assert tail.share > 0.7
    said = stations.tail_sentence(make_context([run], judge([run])).watched[0], tail)
    assert f"load none: the tail comes from {station.replace('-', ' ')} (" in said
    assert "in 6 of the 6 worst " in said


def test_the_page_of_a_run_says_whom_the_monitor_blames(runs: list[Recording]) -> None:
    (told,) = [section for section in sections_of(make_context(runs, judge(runs))) if section.id == "culprits"]
    (table,) = [part for part in told.parts if isinstance(part, ReportTable)]
    assert {row[1] for row in table.rows} == {"task kworker/0:1", "interrupt nvme0q1"}


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({}, "task kworker/0:1"),
        ({"interrupt": "eth0", "interrupt_ns": 70_000}, "interrupt eth0"),
        ({"interrupt": "eth0", "interrupt_ns": 30_000}, "task kworker/0:1"),
        ({"softirq": "net_rx", "softirq_ns": 70_000, "interrupt": "eth0", "interrupt_ns": 60_000}, "soft-IRQ net_rx"),
        ({"waited_for_pid": 4711}, "the task itself (overrun)"),
        ({"waited_for": "swapper/0", "waited_for_pid": 0, "idle_state": "C6"}, "idle state C6"),
        ({"waited_for": None}, "not known"),
        ({"waited_for": None, "idle_state": "C6"}, "not known"),
        ({"interrupt_ns": "60000"}, "task kworker/0:1"),
    ],
)
def test_who_is_blamed(tmp_path: Path, more: dict[str, object], who: str) -> None:
    """Of about 100 µs at one station: half of them is enough, a number that is none counts for nothing."""
    run = watched(tmp_path, Watched(intervals=1, long={"runnable-to-running": 100_000}, culprit=CULPRIT | more))
    (row,) = blamed_tasks(worst_wakeups([run]))
    assert (row.who, row.station, row.times) == (who, "runnable-to-running", 1)


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({}, TIMER_INTERRUPT),
        ({"waited_for": "swapper/0", "waited_for_pid": 0, "idle_state": "C6"}, TIMER_INTERRUPT),
        ({"waited_for_pid": 4711}, TIMER_INTERRUPT),
        ({"softirq": "timer", "softirq_ns": 70_000}, "soft-IRQ timer"),
    ],
)
def test_no_task_is_blamed_for_a_slow_timer_interrupt(tmp_path: Path, more: dict[str, object], cause: str) -> None:
    """It runs the handlers of other timers first: whatever task it interrupted has no part in that."""
    run = watched(tmp_path, Watched(intervals=1, long={"interrupt-to-runnable": 100_000}, culprit=CULPRIT | more))
    (row,) = blamed_tasks(worst_wakeups([run]))
    assert (row.who, row.station) == (cause, "interrupt-to-runnable")


def test_the_rest_of_a_devices_wakeup_is_a_part_too(tmp_path: Path) -> None:
    """A device's wake-up has two series, one within the other: what it took is told whole, and nothing twice."""
    told = CULPRIT | {key_of("device-to-runnable"): 9_000, key_of("device-to-return"): 60_000}
    run = watched(tmp_path, Watched())
    event = replace(run.events[0], culprit=told)
    (wakeup,) = wakeups(run.head, [event])
    assert wakeup.parts == {"device-to-runnable": 9_000, "runnable-to-return": 51_000}
    assert (wakeup.delay_ns, wakeup.longest) == (60_000, "runnable-to-return")


def test_a_culprit_in_words() -> None:
    assert culprit_text(INTERRUPTED) == (
        "robot (pid 4711, fifo 80) waited for the idle CPU; interrupt nvme0q1 took 250.0 µs; last vector 236; "
        "left idle state C6; at 2,400 MHz; in nvme_irq < common"
    )
    assert culprit_text({"task": "a", "task_pid": 3, "waited_for": "a", "waited_for_pid": 3}) == (
        "a (pid 3) was still running its previous cycle"
    )
    assert culprit_text({"made_up": "x", "interval_smi": 1, "interval_steal_ns": 10_000_000}) == (
        "the hypervisor took 10 ms of the CPUs in this interval; 1 SMI in this interval; made_up x"
    )
    assert cause_of_delay({"interval_smi": 1, "interval_steal_ns": 10_000_000}, 50_000.0) == UNKNOWN
    assert culprit_text({"expiry_to_return_ns": 5}) == ""


@pytest.mark.slow
def test_the_report_says_it_for_each_load(runs: list[Recording], tmp_path: Path) -> None:
    out = _report(runs, tmp_path / "report")
    page = (out / "index.html").read_text()
    assert "load none: the tail comes from runnable to running (the task waited for its CPU)" in page
    assert "load io: the tail comes from expiry to interrupt (the timer interrupt came late)" in page
    assert [
        (row["load"], row["tail from station"], row["most frequent cause"])
        for row in _rows(out / "tables/overview.csv")
    ] == [("none", "runnable to running", "task kworker/0:1"), ("io", "expiry to interrupt", "interrupt nvme0q1")]
    assert [(row["load"], row["cause"], row["wake-ups"]) for row in _rows(out / "tables/culprits.csv")] == [
        ("none", "task kworker/0:1", "6"),
        ("io", "interrupt nvme0q1", "6"),
    ]
    drawn = _rows(out / "figures/stations-2.csv")
    assert [float(row["delay_ns"]) for row in drawn] == [
        sum(int(row[f"{name} [ns]"]) for name in PARTS) for row in drawn
    ]
    by_station = {(row["load"], row["station"]): row for row in _rows(out / "tables/stations.csv")}
    for run, load in zip(runs, LOADS, strict=True):
        for name in (*PARTS, "expiry-to-return"):
            row = by_station[load, name.replace("-", " ")]
            totals = [run.totals[series.id] for series in run.named(name)]
            assert int(row["n"]) == sum(total.total for total in totals)
            assert float(row["maximum [µs]"]) == max(total.maximum or 0 for total in totals)


@pytest.mark.slow
def test_what_takes_a_cpu_is_a_share_of_its_time(runs: list[Recording], tmp_path: Path) -> None:
    rows = {(row["load"], row["taken by"]): row for row in _rows(_report(runs, tmp_path / "r") / "tables/noise.csv")}
    taken = [runs[0].totals[series.id] for series in runs[0].named("noise-thread")]
    seconds = LOADS["none"].cpus * LOADS["none"].intervals
    row = rows["none", "other threads"]
    assert float(row["share of CPU time"]) == pytest.approx(sum(total.sum for total in taken) / 1e9 / seconds)
    assert float(row["times per second per CPU"]) == pytest.approx(sum(total.total for total in taken) / seconds)


@pytest.mark.slow
def test_the_monitor_changes_no_number_of_the_run_beside_it(runs: list[Recording], tmp_path: Path) -> None:
    measured = [recording(tmp_path, Plan(latencies(1, intervals=6), run_id=f"t-{load}", load=load)) for load in LOADS]
    alone, both = _report(measured, tmp_path / "alone"), _report([*measured, *runs], tmp_path / "both")
    for table in ("overview", "percentiles", "bounds"):
        assert (alone / f"tables/{table}.csv").read_bytes() == (both / f"tables/{table}.csv").read_bytes()
    assert "the tail comes from" in (both / "index.html").read_text()
    assert "the tail comes from" not in (alone / "index.html").read_text()


def test_what_is_said_of_the_blame_is_what_is_done(runs: list[Recording]) -> None:
    """Whole intervals know of time stolen and of SMIs: they are told, and nobody is blamed for them."""
    assert cause_of_delay(CULPRIT | {"interval_steal_ns": 10**9, "interval_smi": 7}, 1000) == cause_of_delay(
        CULPRIT, 1000
    )
    said = stations.causes(make_context(runs, judge(runs)))
    assert said is not None
    (note,) = (leaf.note for leaf in said.leaves() if isinstance(leaf, ReportTable))
    blame, _, told = note.partition("The time of hypervisor and system management interrupts")
    assert "hypervisor" not in blame and "system management" not in blame and "never named as the cause" in told


def test_nothing_seen_is_said(tmp_path: Path) -> None:
    """No wake-up at all, or none told one by one: no figure, no table of nothing, one sentence each."""
    empty = watched(tmp_path, Watched("empty", per_interval=0, intervals=2, load="io"))
    untold = watched(tmp_path, Watched("untold"))
    object.__setattr__(untold, "events", ())
    context = make_context([untold, empty], judge([untold, empty]))
    section = stations.kernel_stages(context)
    assert section is not None and [leaf.kind for leaf in section.leaves()] == ["text", "table", "table"]
    text = section.leaves()[0]
    assert isinstance(text, Text)
    sentences = text.lines
    assert "no wake-up was recorded station by station" in sentences[0] and "runnable to running" in sentences[0]
    assert sentences[1].startswith("load io: no wake-up ")
    said = stations.causes(context)
    assert said is not None and [leaf.kind for leaf in said.leaves()] == ["text"]
    assert judge([empty]).verdict is Verdict.NO_LIMIT
    assert judge([empty]).headline == "No wake-up of a monitored task was recorded"


def test_the_parts_of_a_latency_are_its_stations_in_order(runs: list[Recording]) -> None:
    section = stations.latency_stages(make_context(runs, judge(runs)))
    assert section is not None
    (*pictures,) = section.leaves()
    for picture, run in zip(pictures, runs, strict=True):
        assert isinstance(picture, Picture)
        rows = picture.data[1]
        assert tuple(row[1] for row in rows) in stations.WAYS
        for row in rows:
            totals = [run.totals[series.id] for series in run.named(row[1])]
            assert row[2] == sum(total.total for total in totals)
            assert row[5] == max(present(total.maximum, "maximum") for total in totals)
        assert all(row[0] in picture.svg for row in rows)
    measured = make_context([], judge([]))
    assert stations.latency_stages(measured) is None


def test_events_of_the_monitor_stand_with_the_culprits_only(runs: list[Recording]) -> None:
    assert events.section(make_context(runs, judge(runs))) is None


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_axe_finds_nothing(runs: list[Recording], tmp_path: Path, width: int, dark: bool) -> None:
    assert faults_of(_report(runs, tmp_path / "report") / "index.html", tmp_path, width=width, dark=dark) == []


def test_of_several_runs_the_worst_wakeups_are_told_by_date(tmp_path: Path) -> None:
    """After how many hours tells nothing where nobody knows of which run."""
    runs = [watched(tmp_path, Watched(f"m-{number}", begin_ns=number * 10**13)) for number in range(2)]
    for chosen, said in ((runs, " UTC: "), (runs[:1], "after ")):
        (page, *_) = write_report(chosen, judge(chosen), tmp_path / said.strip())
        drawn = (page.parent / "figures" / "stations-1.svg").read_text()
        assert said in drawn and (" UTC: " in drawn) == (len(chosen) > 1)
