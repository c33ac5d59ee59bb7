# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor loses nothing: what its stations count is what the watched task did, and adds up."""

from __future__ import annotations

from pathlib import Path

import pytest
from monitored import TIMER_STATIONS, Sleeper, added, build_monitor, build_sleeper, counters, events, sleeper, stored, watching

from fastenough.model import Outcome
from fastenough.recording import Recording


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_monitor(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sleeper(tmp_path_factory.mktemp("sleeper"))


def unseen(recording: Recording) -> int:
    """Wake-ups that were not counted, as far as the monitor knows."""
    counted = counters(recording)
    return int(counted["monitor_unmatched"] + counted["monitor_dropped"] + counted["monitor_suppressed"])


def assert_counts_agree(recording: Recording, slept: int) -> None:
    """By the kernel's own count of the task's switches; a sleep that was over before it began is no switch."""
    assert recording.outcome is Outcome.COMPLETED
    assert unseen(recording) <= slept // 10
    assert stored(recording, "expiry-to-running") + unseen(recording) == slept + counters(recording)["monitor_no_sleep"]


def assert_sums_agree(recording: Recording) -> None:
    """Each wake-up by a timer has each station, and they add up to the nanosecond."""
    assert len({stored(recording, station) for station in (*TIMER_STATIONS, "expiry-to-running")}) == 1
    assert sum(added(recording, station) for station in TIMER_STATIONS) == added(recording, "expiry-to-running")


def test_every_wakeup_is_counted_once_and_its_stations_add_up(monitor: Path, program: Path, tmp_path: Path) -> None:
    with sleeper(program, "fe-counted", acts=3000) as task:
        with watching(monitor, tmp_path / "recording.jsonl", "--pid", str(task.pid)) as watch:
            slept = task.sleep()
        recording = watch.recording()
    assert_counts_agree(recording, slept.times)
    assert_sums_agree(recording)
    returned = stored(recording, "expiry-to-return")
    assert returned == stored(recording, "running-to-return") == stored(recording, "expiry-to-running")
    assert added(recording, "expiry-to-return") == added(recording, "expiry-to-running") + added(recording, "running-to-return")
    assert not stored(recording, "device-to-runnable")


def test_flips_at_50_hz_lose_nothing(monitor: Path, program: Path, tmp_path: Path) -> None:
    with sleeper(program, "fe-flipped", period_ns=200_000, acts=40_000) as task:
        with watching(monitor, tmp_path / "recording.jsonl", "--pid", str(task.pid), "--report", "20ms") as watch:
            slept = task.sleep()
        recording = watch.recording()
    assert len(recording.intervals) >= 200
    assert_counts_agree(recording, slept.times)
    assert_sums_agree(recording)


def joined(recording: Recording, task: Sleeper) -> dict[int, int]:
    """Expiry to return of each wake-up that was told of, by its exact expiry."""
    return {int(event.culprit["expiry_mono_ns"]): int(event.value or 0) for event in events(recording, "expiry-to-return")
            if event.culprit and event.culprit["task_pid"] == task.pid}


def test_each_wakeup_is_the_tasks_own(monitor: Path, program: Path, tmp_path: Path) -> None:
    """Joined on the exact due time: what the stations add up to is what the task saw, but for its own reading of the clock."""
    with sleeper(program, "fe-joined", acts=500) as task:
        with watching(monitor, tmp_path / "recording.jsonl", "--pid", str(task.pid), "--threshold", "1ns") as watch:
            slept = task.sleep()
        total_ns = joined(watch.recording(), task)
    late_ns = {due: back - due for due, back in zip(slept.due_ns, slept.back_ns, strict=True)}
    recording = watch.recording()
    assert_counts_agree(recording, slept.times)
    assert len(total_ns) + unseen(recording) == len(late_ns)
    assert set(total_ns) <= set(late_ns)
    beyond_ns = sorted(late_ns[due] - total_ns[due] for due in total_ns)
    assert beyond_ns[0] >= 0
    assert beyond_ns[len(beyond_ns) // 2] < 50_000


@pytest.mark.parametrize("k", [4, 10])
def test_buckets_of_each_width_hold_what_was_counted(monitor: Path, program: Path, tmp_path: Path, k: int) -> None:
    with sleeper(program, "fe-wide", acts=500) as task:
        with watching(monitor, tmp_path / "recording.jsonl", "--pid", str(task.pid), "--k", str(k)) as watch:
            slept = task.sleep()
        recording = watch.recording()
    assert_counts_agree(recording, slept.times)
    assert {series.k for series in recording.series} == {k}
