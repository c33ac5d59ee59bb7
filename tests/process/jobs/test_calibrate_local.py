# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough calibrate``: what is injected is found; what is not there is missed, and said so."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fastenough.analysis.injections import (
    Injection,
    InjectionResult,
    in_order,
    injections,
    match_by_due_time,
    too_late,
)
from fastenough.board import AS_BOOTED, Booted, open_board
from fastenough.implementations import IMPLEMENTATIONS
from fastenough.implementations.core_user import CoreUser
from fastenough.implementations.task import Probing
from fastenough.jobs.calibrate import WitnessResult, calibrate, timer_finds
from fastenough.jobs.hunt import examine_board
from fastenough.jobs.injectors import HogInjector, InjectionPlan
from fastenough.link import LocalLink
from fastenough.model import BadInput, Configuration, FastenoughError
from fastenough.settings import Settings
from tests.support.cli_calls import command_line
from tests.support.json_documents import require_valid
from tests.support.privileges import needs_root

ROOT = Path(__file__).resolve().parents[3]
PLAN = InjectionPlan((500_000, 2_000_000, 8_000_000), 5)
LEAST_SHARE = 0.998
LEAST_NS = 2_000


@needs_root("real-time priorities")
def test_the_timer_probe_finds_every_delay_and_none_shorter_than_injected(probe_binary: str) -> None:
    board = Booted(LocalLink(), Configuration("here"), probe_binary)
    calibration = timer_finds(board, PLAN, HogInjector(board, PLAN))
    assert calibration.passed, calibration
    injected = PLAN.per_size
    assert all(row.injected == injected or row.injected + row.too_late == 2 * injected for row in calibration.rows)
    assert len(calibration.rows) == len(PLAN.sizes_ns)
    for row in calibration.rows:
        assert row.injected_median_ns is not None and row.measured_median_ns is not None
        assert row.injected_median_ns >= row.requested_ns
        assert row.measured_median_ns >= row.injected_median_ns * LEAST_SHARE - LEAST_NS


def test_a_board_that_another_bench_measures_is_neither_delayed_nor_loaded() -> None:
    board = open_board("local")
    with Settings(LocalLink()):
        with pytest.raises(FastenoughError, match="another fastenough is measuring"):
            next(calibrate(board, AS_BOOTED, PLAN))
        with pytest.raises(FastenoughError, match="another fastenough is measuring"):
            examine_board(board, ("cpu",))


@needs_root("real-time priorities")
def test_a_delay_of_another_cpu_is_not_found(probe_binary: str) -> None:
    """The proof can fail: the hog runs where the delayed task does not."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU only")
    board = Booted(LocalLink(), Configuration("here"), probe_binary)
    elsewhere = InjectionPlan(PLAN.sizes_ns, PLAN.per_size, cpu=1)
    for _ in range(5):  # a busy machine comes too late for some delays, and may for all
        missed = timer_finds(board, PLAN, HogInjector(board, elsewhere))
        assert not missed.passed
        if any(row.injected for row in missed.rows):
            break
    assert sum(row.detected for row in missed.rows) < sum(row.injected for row in missed.rows)


@needs_root("real-time priorities")
def test_tasks_of_a_core_are_delayed_by_the_cores_own_program(
    probe_binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, acts, plan = tmp_path / "fastenough-probe-made-up", tmp_path / "acts", InjectionPlan((2_000_000,), 30)
    program.write_text(f'#!/bin/sh\necho "$1" >> {acts}\nexec {probe_binary} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    made_up = CoreUser("made-up-user", core="/proc/version", without="no core", platform="made-up")
    monkeypatch.setitem(IMPLEMENTATIONS, made_up.name, made_up)
    first, *others = calibrate(open_board("local"), AS_BOOTED, plan, implementation=made_up.name)
    assert sum(row.injected for row in first.rows) > 0 and not first.missed
    assert len(others) == 2 and not any(other.applicable for other in others)
    assert sorted(acts.read_text().split()) == ["hog", "timer"]


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("implementation", "status"),
    [("xenomai-user", 5), ("evl-user", 5), ("linux-kernel", 2), ("evl-kernel", 2), ("unknown", 2)],
)
def test_a_board_without_the_core_is_not_applicable(implementation: str, status: int) -> None:
    assert command_line("calibrate", "--implementation", implementation).returncode == status


def test_the_hog_counts_what_it_was_too_late_for(probe_binary: str) -> None:
    argv = [
        probe_binary,
        "hog",
        "--policy=other",
        "--allow-difference",
        "--sizes=1ms",
        "--each=20",
        "--interval=10ms",
        "--lead=0",
        "--record=-",
        "--threshold=1ns",
        "--affinity=0",
    ]
    with Probing(LocalLink(), argv, 30.0) as hogging:
        hogging.wait(20.0)
    recording = hogging.recording()
    tries = len(injections(recording)) + too_late(recording)[1_000_000]
    assert tries == 40 or len(injections(recording)) == 20 < tries
    assert too_late(recording)[1_000_000] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes=1s",), "up to 500ms"),
        (("--sizes=1ms,2x",), "'2x'"),
        (("--sizes=10ms", "--interval=10ms"), "--interval longer"),
    ],
)
def test_the_hog_says_what_is_wrong(probe_binary: str, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run([probe_binary, "hog", *words], text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_order_needs_every_median() -> None:
    def row(found_ns: int | None) -> InjectionResult:
        return InjectionResult(1, 1, 0, 1, 1, found_ns, 0)

    assert in_order([row(1), row(2)])
    assert not in_order([row(2), row(1)])
    assert not in_order([row(1), row(None)])


def test_nothing_injected_is_no_pass() -> None:
    assert not WitnessResult("hog", "timer", ()).passed
    assert not WitnessResult("hog", "timer", (InjectionResult(1000, 0, 5, 0, None, None, None),)).passed


@pytest.mark.parametrize("sizes", [(), (2_000, 1_000), (1_000, 1_100)])
def test_sizes_that_cannot_be_told_apart_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(BadInput):
        InjectionPlan(sizes, 5)


@pytest.mark.slow
@needs_root("real-time priorities")
def test_the_command_prints_a_table_and_the_reason_for_what_it_cannot_try(probe_binary: str) -> None:
    done = command_line("calibrate", "--sizes=1ms,5ms", "--each=5")
    assert done.returncode == 0, done.stderr
    assert "all detected, in order" in done.stdout
    assert re.search(r"module.*not applicable: .+", done.stdout)
    as_json = require_valid("calibrate", command_line("calibrate", "--sizes=1ms,5ms", "--each=5", "--json").stdout)
    assert [calibration["passed"] for calibration in as_json["calibrations"]] == [True, None, None]
    assert "--gauge" in as_json["calibrations"][1]["reason"]


@pytest.mark.untimed
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--sizes=5ms,1ms",),
        ("--sizes=soon",),
        ("--board=moon",),
        ("--each=0",),
        ("--pin=17",),
        ("--gauge=/dev/null",),
        ("--configuration=rt", "--board=virtual:stock"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words: tuple[str, ...]) -> None:
    done = command_line("calibrate", *words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_task_without_a_head_says_why(probe_binary: str) -> None:
    with pytest.raises(BadInput, match="unknown probe 'nothing'"):
        Probing(LocalLink(), [probe_binary, "nothing"], 5.0)
    with pytest.raises(FastenoughError, match="false ended with status 1: no error message"):
        Probing(LocalLink(), ["false"], 5.0)


def test_matching_is_by_due_time(probe_binary: str) -> None:
    """A recording without the delayed act finds nothing, whatever else it holds."""
    with Probing(
        LocalLink(),
        [
            probe_binary,
            "timer",
            "--affinity=0",
            "--duration=300ms",
            "--threshold=1ns",
            "--report=50ms",
            "--record=-",
            "--allow-difference",
        ],
        20.0,
    ) as timer:
        timer.wait(60)
    recording = timer.recording()
    long_ago = Injection(1_000_000, 1_000_000, recording.head.begin.mono_ns - 10**9)
    (row,) = match_by_due_time([long_ago], {}, recording, "wakeup", 1_000_000)
    assert (row.injected, row.detected) == (1, 0)
