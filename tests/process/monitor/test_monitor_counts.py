# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor loses nothing: what its stations count is what the watched task did, and adds up."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import Recording
from tests.support.monitored import TIMER_STATIONS, Slept, added, counted, events, sleeper, stored, unseen, watching
from tests.support.tools import ROOT


def watched(
    monitor: Path, program: Path, folder: Path, *options: str, period_ns: int = 1_000_000, acts: int = 1000
) -> tuple[Slept, Recording]:
    """A sleeper that only the monitor of this test watches: what each of them says."""
    with sleeper(program, "fe-sleeper", period_ns=period_ns, acts=acts) as task:
        with watching(monitor, folder / "recording.jsonl", "--pid", str(task.pid), *options) as watch:
            slept = task.sleep()
        return slept, watch.recording()


def assert_counts_agree(recording: Recording, slept: Slept) -> None:
    """By the kernel's own count of the task's switches; a sleep that was over before it began is no switch, or one that
    others made."""
    assert recording.outcome is Outcome.COMPLETED
    assert unseen(recording) <= slept.times // 10
    no_sleep = counted(recording, "monitor_no_sleep")
    slept_by_monitor = stored(recording, "expiry-to-running") + unseen(recording) - no_sleep
    assert slept.times <= slept_by_monitor <= slept.times + slept.preempted


def assert_sums_agree(recording: Recording) -> None:
    """Each wake-up by a timer has each station, or is counted as one without return; they add up to the ns."""
    assert len({stored(recording, station) for station in (*TIMER_STATIONS, "expiry-to-running")}) == 1
    assert sum(added(recording, station) for station in TIMER_STATIONS) == added(recording, "expiry-to-running")
    began = stored(recording, "expiry-to-running") + stored(recording, "device-to-runnable")
    returned = stored(recording, "expiry-to-return") + stored(recording, "device-to-return")
    assert began == returned + counted(recording, "monitor_no_return")
    assert stored(recording, "running-to-return") == stored(recording, "expiry-to-return")


def test_every_wakeup_is_counted_once_and_its_stations_add_up(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path
) -> None:
    slept, recording = watched(monitor_binary, sleeper_binary, tmp_path, acts=3000)
    assert_counts_agree(recording, slept)
    assert_sums_agree(recording)
    running, returned = stored(recording, "expiry-to-running"), stored(recording, "expiry-to-return")
    assert running == returned == stored(recording, "running-to-return")
    parts = added(recording, "expiry-to-running") + added(recording, "running-to-return")
    assert added(recording, "expiry-to-return") == parts
    assert not stored(recording, "device-to-runnable")


@pytest.mark.slow
def test_flips_at_50_hz_lose_nothing(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    slept, recording = watched(
        monitor_binary, sleeper_binary, tmp_path, "--report", "20ms", period_ns=200_000, acts=40_000
    )
    assert len(recording.intervals) >= 200
    assert_counts_agree(recording, slept)
    assert_sums_agree(recording)


def test_a_recording_ends_when_its_counting_does(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    """The task goes on: all that it did until the end that the recording states is in it."""
    with sleeper(sleeper_binary, "fe-sleeper", period_ns=200_000, acts=15_000) as task:
        with watching(monitor_binary, tmp_path / "recording.jsonl", "--pid", str(task.pid)) as watch:
            task.let_go()
            time.sleep(1)
        slept, recording = task.sleep(), watch.recording()
    begin_ns, end_ns = recording.head.begin.mono_ns, recording.stopped.mono_ns
    woken = sum(begin_ns < back_ns <= end_ns for back_ns in slept.back_ns)
    assert slept.back_ns[-1] > end_ns and woken > 1000
    missing = woken - stored(recording, "expiry-to-running") - unseen(recording)
    assert missing <= 2 + counted(recording, "monitor_no_sleep")


def test_each_wakeup_is_the_tasks_own(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    """Joined on the exact due time: the stations add up to what the task saw, but for its own reading of the clock."""
    slept, recording = watched(monitor_binary, sleeper_binary, tmp_path, "--threshold", "1ns", acts=500)
    assert_counts_agree(recording, slept)
    total_ns = {
        int(event.culprit["expiry_mono_ns"] or 0): event.value or 0
        for event in events(recording, "expiry-to-return")
        if event.culprit
    }
    late_ns = {due: back - due for due, back in zip(slept.due_ns, slept.back_ns, strict=True)}
    assert set(total_ns) <= set(late_ns)
    assert slept.times <= len(total_ns) + unseen(recording) <= len(late_ns) + slept.preempted
    beyond_ns = sorted(late_ns[due] - value for due, value in total_ns.items())
    assert beyond_ns[0] >= 0
    assert beyond_ns[len(beyond_ns) // 2] < 50_000


@pytest.mark.parametrize("k", [4, 10])
def test_buckets_of_each_width_hold_what_was_counted(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path, k: int
) -> None:
    slept, recording = watched(monitor_binary, sleeper_binary, tmp_path, "--k", str(k), acts=500)
    assert_counts_agree(recording, slept)
    assert {series.k for series in recording.series} == {k}


TWO_OF_ONE_TIMER = """
import ctypes, os, sys, threading

acts = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
timer = libc.timerfd_create(1, 0)
print("ready", flush=True)
sys.stdin.readline()

def read():
    for _ in range(acts):
        os.read(timer, 8)

threads = [threading.Thread(target=read) for _ in range(2)]
for thread in threads:
    thread.start()
libc.timerfd_settime(timer, 0, (ctypes.c_long * 4)(0, 2_000_000, 0, 2_000_000), None)
for thread in threads:
    thread.join()
"""
"""Each time both are woken; one of them finds nothing, and sleeps again within its system call."""


def test_who_sleeps_again_before_its_return_is_counted_as_such(monitor_binary: Path, tmp_path: Path) -> None:
    acts = 200
    with subprocess.Popen(
        [sys.executable, "-c", TWO_OF_ONE_TIMER, str(acts)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as task:
        assert task.stdout is not None and task.stdout.readline() == "ready\n"
        with watching(monitor_binary, tmp_path / "recording.jsonl", f"--pid={task.pid}", "--policy=any") as watch:
            task.communicate("go\n", timeout=60)
    recording = watch.recording()
    assert_sums_agree(recording)
    assert counted(recording, "monitor_no_return") > acts


SAME_PLACE = """
import os, sys, threading, time

acts, places, begin = int(sys.argv[1]), int(sys.argv[2]), threading.Event()

def sleep():
    begin.wait()
    for _ in range(acts):
        time.sleep(0.002)

def one_of_place(place):
    \"\"\"A thread whose number has that place.\"\"\"
    while True:
        said, go = [], threading.Event()
        def run():
            said.append(threading.get_native_id())
            go.set()
            if said[0] % places == place:
                sleep()
        thread = threading.Thread(target=run)
        thread.start()
        go.wait()
        if said[0] % places == place:
            return thread
        thread.join()

threads = [one_of_place(7) for _ in range(3)]
print("ready", flush=True)
sys.stdin.readline()
begin.set()
for thread in threads:
    thread.join()
"""


def test_tasks_whose_numbers_have_the_same_place_are_each_counted(monitor_binary: Path, tmp_path: Path) -> None:
    (places,) = re.findall(r"#define PLACES (\d+)", (ROOT / "target" / "monitor" / "bpf" / "tasks.h").read_text())
    acts = 200
    with subprocess.Popen(
        [sys.executable, "-c", SAME_PLACE, str(acts), places], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as task:
        assert task.stdout is not None and task.stdout.readline() == "ready\n"
        with watching(monitor_binary, tmp_path / "recording.jsonl", f"--pid={task.pid}", "--policy=any") as watch:
            task.communicate("go\n", timeout=60)
    recording = watch.recording()
    assert counted(recording, "monitor_dropped") == 0
    assert 3 * acts <= stored(recording, "expiry-to-running") + unseen(recording) <= 3 * acts + 3
