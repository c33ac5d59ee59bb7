# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough calibrate --monitor``: what is injected into a station is found there, and a wrong place is noticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis.station_delays import STATIONS, StationAgreement, StationResult
from fastenough.board import AS_BOOTED, open_board
from fastenough.jobs.calibrate_monitor import StationTrial, trial_of
from fastenough.jobs.injectors import InjectionPlan
from fastenough.jobs.monitored_task import TaskMonitor, _process_of
from fastenough.link.fake import FakeLink
from fastenough.model import FastenoughError
from tests.support.cli_calls import command_line
from tests.support.json_documents import require_valid
from tests.support.privileges import needs_kernel_pids, needs_root

EACH = 10
SIZES_NS = [300_000, 1_000_000]
MOST_TRIALS = 5
"""Of one in which everything came too late: the machine had no time for it."""
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="interrupts are kept off a second CPU")


@pytest.fixture(scope="module")
def calibrated(
    monitor_binary: Path, inject_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, dict[str, Any], Path]:
    figure = tmp_path_factory.mktemp("figure") / "found.svg"
    done = command_line(
        "calibrate", "--monitor", f"--each={EACH}", "--sizes=300us,1ms", "--figure", str(figure), "--json"
    )
    return done.returncode, require_valid("calibrate", done.stdout), figure


@needs_root("BPF and real-time priorities")
@needs_kernel_pids
@two_cpus
def test_each_station_is_found_with_its_size_and_its_culprit(calibrated: tuple[int, dict[str, Any], Path]) -> None:
    status, found, _ = calibrated
    assert status in (0, 3), "on a busy machine not everything may be shown; nothing is missed"
    assert [trial["station"] for trial in found["stations"]] == list(STATIONS)
    for trial in found["stations"]:
        assert trial["passed"] or trial["shortfall"]
        assert [row["requested_ns"] for row in trial["rows"]] == SIZES_NS
        for row in trial["rows"]:
            assert row["injected"] == EACH or row["injected"] + row["too_late"] == 2 * EACH
            assert row["detected"] + row["unrecorded"] == row["injected"] > 0
            assert row["at_other_station"] == 0
        assert trial["rows"][0]["station_median_ns"] < trial["rows"][1]["station_median_ns"]
    without_preemption = found["stations"][STATIONS.index("runnable-to-running")]
    assert all(row["culprits"][0][0] == "task fastenough-inj" for row in without_preemption["rows"])


@needs_root("BPF and real-time priorities")
@needs_kernel_pids
@two_cpus
def test_the_task_and_its_stations_agree(calibrated: tuple[int, dict[str, Any], Path]) -> None:
    _, found, _ = calibrated
    (agreed,) = found["agreement"]
    assert agreed["activations"] > 1000
    assert agreed["unexplained"] == 0
    assert (
        agreed["matched"] + agreed["awake"] + sum(count for _, count in agreed["unrecorded_by_reason"])
        >= agreed["activations"]
    )
    assert agreed["remainder_ns"][0] >= 0, "the task reads its clock behind the last station"


@needs_root("BPF and real-time priorities")
@needs_kernel_pids
@two_cpus
def test_what_was_found_is_drawn(calibrated: tuple[int, dict[str, Any], Path]) -> None:
    _, _, figure = calibrated
    drawn = figure.read_text()
    assert drawn.startswith("<svg")
    assert all(station in drawn for station in STATIONS)


@needs_root("BPF and real-time priorities")
@needs_kernel_pids
@two_cpus
def test_an_injection_is_missed_where_it_is_not(monitor_binary: Path, inject_binary: Path) -> None:
    """The proof can fail: what was injected behind the system call is looked for before it."""
    plan = InjectionPlan((1_000_000,), 5, min(os.sched_getaffinity(0)), 2_000_000)
    with open_board("local").boot(AS_BOOTED) as booted:
        for _ in range(MOST_TRIALS):
            watched = TaskMonitor(booted, plan).injecting("running-to-return")
            if trial_of(watched, "running-to-return", plan).rows[0].injected:
                break
    assert trial_of(watched, "running-to-return", plan).rows[0].detected > 0
    wrong = trial_of(watched, "interrupt-to-runnable", plan)
    assert wrong.missed
    assert wrong.rows[0].at_other_station > 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--figure=x.svg",), ("--monitor", "--figure=x.pdf"), ("--monitor", "--sizes=1x")])
def test_bad_input_is_one_line_and_status_2(words: tuple[str, ...]) -> None:
    done = command_line("calibrate", *words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def row(*, injected: int = 10, unrecorded: int = 0, detected: int = 10, station_ns: int = 305_000) -> StationResult:
    return StationResult(
        STATIONS[0],
        300_000,
        injected,
        10 - injected,
        unrecorded,
        detected,
        0,
        300_000 if injected else None,
        3_000,
        station_ns,
    )


def test_what_is_missed_is_told_from_what_is_not_shown() -> None:
    assert StationTrial(STATIONS[0], 0, (row(),)).passed
    assert StationTrial(STATIONS[0], 0, (row(detected=9),)).missed
    for lacking, said in (
        (row(detected=9, unrecorded=1), "missed 1 delayed wake-ups"),
        (row(injected=0, detected=0), "no delay of 300 µs was injected"),
        (row(station_ns=320_000), "measured size of 300 µs is outside the tolerance"),
    ):
        trial = StationTrial(STATIONS[0], 0, (lacking,))
        assert not trial.passed and not trial.missed
        assert said in str(trial.shortfall)
    counts = (("monitor_suppressed", 2), ("monitor_no_return", 1))
    assert "reasons it counted: 2 suppressed, 1 no return" in str(
        StationTrial(STATIONS[0], 0, (row(detected=9, unrecorded=1),), unrecorded_by_reason=counts).shortfall
    )
    assert not StationTrial(STATIONS[0], 0).passed
    impossible = StationTrial(STATIONS[0], 0, reason="no module here")
    assert (impossible.passed, impossible.missed, impossible.shortfall) == (False, False, None)


def test_a_wake_up_without_a_reason_is_unexplained() -> None:
    assert StationAgreement(100, 90, 4, (0, 1, 2, 3), (("monitor_suppressed", 5),)).unexplained == 1


def test_a_board_that_names_no_processes_is_told() -> None:
    link = FakeLink({"/proc/7/task/7/children": "8 9", "/proc/8/task/8/children": ""})
    assert _process_of(link, 7) == 8
    for children in (b"\xff\xfe", b"7", b"9" * 5000, b"-1"):
        link.write("/proc/8/task/8/children", children)
        with pytest.raises(FastenoughError, match="lists no process"):
            _process_of(link, 7)
