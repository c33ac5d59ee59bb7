# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is to blame for a late wake-up is named: injected delays are told with the one who caused them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fastenough.recording import Event
from tests.support.monitored import Sleeper, Watch, events, sleeper, unseen, watching
from tests.support.privileges import needs_kernel_pids

DELAY_NS = 4_000_000
PRIORITY = 97
"""Of the task that is delayed: above all but the one who delays it."""
LEAST = 5
"""Delays, of ten."""
_HOLD = """
import os, sys, time
priority, hold_ns = map(int, sys.argv[1:])
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print(flush=True)
due_ns = int(input())
for round in range(10):
    time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
    until_ns = time.monotonic_ns() + hold_ns
    while time.monotonic_ns() < until_ns:
        pass
    due_ns += 50_000_000
"""


def delay(probe: str, cpu: int) -> tuple[set[int], int]:
    """Takes a CPU at FIFO 99 a few times for so long; returns the threads that did, and how often they did."""
    command = [
        probe,
        "hog",
        "-a",
        str(cpu),
        "-p",
        "99",
        "-i",
        "50ms",
        "--sizes",
        f"{DELAY_NS}ns",
        "--each",
        "10",
        "--allow-difference",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as hog:
        threads: set[int] = set()
        while hog.poll() is None:
            threads |= {int(path.name) for path in Path(f"/proc/{hog.pid}/task").glob("*")}
            time.sleep(0.02)
        said, _ = hog.communicate()
    assert hog.returncode == 0
    return threads, json.loads(said)["series"][0]["count"]


def blamed_on(found: list[Event], threads: set[int]) -> list[Event]:
    """Of these events, those that name one of these threads: others of the machine are late at times, too."""
    return [event for event in found if event.culprit is not None and event.culprit.get("waited_for_pid") in threads]


def assert_told(event: Event, task: Sleeper) -> None:
    assert event.culprit is not None
    assert (event.culprit["task"], event.culprit["task_pid"]) == ("fe-delayed", task.pid)
    assert (event.culprit["task_policy"], event.culprit["task_priority"]) == ("fifo", PRIORITY)
    assert (event.culprit["waited_for"], event.culprit["waited_for_priority"]) == ("fastenough-prob", 99)
    assert event.culprit["waited_for_policy"] == "fifo"


def test_who_had_the_cpu_is_named(
    monitor_binary: Path, sleeper_binary: Path, probe_binary: str, tmp_path: Path
) -> None:
    with sleeper(sleeper_binary, "fe-delayed", priority=PRIORITY, acts=2000) as task:
        with watching(
            monitor_binary, tmp_path / "recording.jsonl", "--pid", str(task.pid), "--threshold", f"{DELAY_NS // 2}ns"
        ) as watch:
            task.let_go()
            hogs, times = delay(probe_binary, 0)
            if times < LEAST:  # a hog that was itself held up has missed its times
                more, again = delay(probe_binary, 0)
                hogs, times = hogs | more, times + again
            task.sleep()
        recording = watch.recording()
    found = [event for event in events(recording, "runnable-to-running") if event.kind == "threshold"]
    blamed = blamed_on(found, hogs)
    assert times >= LEAST and 0 <= times - len(blamed) <= unseen(recording)
    for event in blamed:
        assert_told(event, task)
        assert event.culprit is not None and event.culprit["runnable_to_running_ns"] == event.value
        assert int(event.culprit["expiry_to_running_ns"] or 0) >= (event.value or 0)
        stack = str(event.culprit.get("stack", "schedule"))
        assert "schedule" in stack and "bpf" not in stack, "of who had the CPU last, without what looked"


@contextmanager
def holding(priority: int, hold_ns: int) -> Iterator[subprocess.Popen[str]]:
    """A task that takes CPU 0 ten times for so long, once it has read the first instant; it is ready to read it."""
    command = [sys.executable, "-c", _HOLD, str(priority), str(hold_ns)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        yield process
        assert process.wait(60) == 0


def begin_at(process: subprocess.Popen[str], due_mono_ns: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{due_mono_ns}\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("selected_all", "others"),
    [
        (False, [(98, DELAY_NS)] * 10),
        (True, [(99, DELAY_NS), (97, DELAY_NS // 2)]),
    ],
    ids=["many-others", "another-selected-task-ran"],
)
def test_the_longest_holder_is_named_if_others_had_the_cpu_later(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path, selected_all: bool, others: list[tuple[int, int]]
) -> None:
    """Others: priority, and time after the longest holder's begin."""
    with ExitStack() as tasks, sleeper(sleeper_binary, "fe-delayed", priority=PRIORITY - 1, acts=2000) as task:
        hog = tasks.enter_context(holding(98 if selected_all else 99, 2 * DELAY_NS))
        holders = [tasks.enter_context(holding(priority, 100_000)) for priority, _ in others]
        options = ["--threshold", f"{DELAY_NS // 2}ns", *([] if selected_all else ["--pid", str(task.pid)])]
        with watching(monitor_binary, tmp_path / "recording.jsonl", *options) as watch:
            due_mono_ns = time.monotonic_ns() + 200_000_000
            begin_at(hog, due_mono_ns)
            for holder, (_, after_ns) in zip(holders, others, strict=True):
                begin_at(holder, due_mono_ns + after_ns)
            task.let_go()
            task.sleep()
        found = [
            event
            for event in events(watch.recording(), "runnable-to-running")
            if event.kind == "threshold" and event.culprit is not None and event.culprit["task_pid"] == task.pid
        ]
    assert len(blamed_on(found, {hog.pid})) >= LEAST


@needs_kernel_pids
def test_what_ends_a_run_is_its_threshold(
    monitor_binary: Path, sleeper_binary: Path, probe_binary: str, tmp_path: Path
) -> None:
    with sleeper(sleeper_binary, "fe-delayed", acts=1000) as task:
        path = tmp_path / "recording.jsonl"
        command = [str(monitor_binary), "-q", "-D", "30s", "--pid", str(task.pid), "-b", "1ns", "--record", str(path)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            Watch(process, path).await_begin()
            task.sleep()
            assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("station", ["expiry-to-return", "expiry-to-interrupt"])
def test_the_maximum_is_among_the_events(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path, station: str
) -> None:
    with sleeper(sleeper_binary, "fe-delayed", acts=500) as task:
        with watching(monitor_binary, tmp_path / "recording.jsonl", "--pid", str(task.pid)) as watch:
            task.sleep()
        recording = watch.recording()
    assert recording.end is not None
    (cpu,) = (series for series in recording.named(station) if series.cpu == 0)
    found = [event for event in recording.events if event.series == cpu.id and event.kind == "max"]
    assert found[-1].value == recording.end.series[cpu.id].maximum
    assert found[-1].culprit is not None and found[-1].culprit["task_pid"] == task.pid
