# SPDX-License-Identifier: GPL-2.0-or-later
"""A timer that was stopped, continued or sent foreign signals in mid-run still measures against the right due times.

The truth is injected: `hog` computes until a known time after a due time of the timer's own grid, so the timer must
see at least as many acts that late.  A grid that slipped by a period would show none of them.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.model import ExitStatus, Outcome
from fastenough.recording import Recording, read_recording
from tests.support.privileges import needs_root
from tests.support.processes import eventually, recorded
from tests.support.timer_grid import assert_every_period_accounted

PERIOD_NS = 1_000_000
STALL_NS = 900_000
STALLS = 20
TOLERANCE_NS = 2_000  # setitimer lays a grid of its own, in whole microseconds
CPU = str(max(os.sched_getaffinity(0)))
GRID_METHODS = ["clock_nanosleep-abs", "posix-timer", "setitimer", "timerfd", "futex"]

pytestmark = needs_root("two real-time priorities")


@contextmanager
def _timer(probe: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A timer that is under way: its head and its first interval are written."""
    timer = subprocess.Popen(
        [
            probe,
            "timer",
            "-a",
            CPU,
            "-p",
            "80",
            "-i",
            f"{PERIOD_NS}ns",
            "--report",
            "100ms",
            "-q",
            "--record",
            str(path),
            *arguments,
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        assert eventually(lambda: timer.poll() is not None or recorded(path))
        assert timer.poll() is None
        yield timer
    finally:
        timer.kill()
        timer.wait()


def _ended(timer: subprocess.Popen[bytes], path: Path) -> Recording:
    timer.send_signal(signal.SIGINT)
    assert timer.wait(30) == 130
    recording = read_recording(path)
    assert recording.outcome is Outcome.ABORTED
    return recording


def _stall(probe: str, head: Path, record: Path) -> int:
    """Stall the timer of this recording again and again; how often the hog really came in time for it."""
    with head.open() as lines:
        begin_ns = json.loads(lines.readline())["begin"]["mono_ns"]
    done = subprocess.run(
        [
            probe,
            "hog",
            "-a",
            CPU,
            "-p",
            "90",
            "--sizes",
            f"{STALL_NS}ns",
            "--each",
            str(STALLS),
            "-i",
            "10ms",
            "--begin",
            str(begin_ns),
            "--record",
            str(record),
            "-q",
        ],
        check=False,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    hog = read_recording(record)
    acts = hog.totals[hog.named("injected")[0].id].total
    assert done.returncode == (ExitStatus.DONE if acts else ExitStatus.BROKEN)
    return acts


def _stop_and_continue(timer: subprocess.Popen[bytes]) -> None:
    for _ in range(5):
        timer.send_signal(signal.SIGSTOP)
        time.sleep(0.01)
        timer.send_signal(signal.SIGCONT)
        time.sleep(0.01)


def _foreign_alarm(timer: subprocess.Popen[bytes]) -> None:
    for _ in range(20):
        timer.send_signal(signal.SIGALRM)
        time.sleep(0.0017)


def _foreign_alarm_to_each_thread(timer: subprocess.Popen[bytes]) -> None:
    tgkill = ctypes.CDLL(None).tgkill
    for _ in range(20):
        for thread in Path(f"/proc/{timer.pid}/task").iterdir():
            assert tgkill(timer.pid, int(thread.name), signal.SIGALRM) == 0
        time.sleep(0.0017)


@pytest.mark.slow
@pytest.mark.parametrize("disturb", [_stop_and_continue, _foreign_alarm, _foreign_alarm_to_each_thread])
@pytest.mark.parametrize("method", GRID_METHODS)
def test_stalls_are_seen_after_an_interruption(
    probe_binary: str, tmp_path: Path, method: str, disturb: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    path = tmp_path / "timer"
    with _timer(probe_binary, path, "--method", method) as timer:
        disturb(timer)
        before = read_recording(path)
        injected = 0
        for turn in range(20):  # a busy host may keep the hog itself from coming in time
            injected += _stall(probe_binary, path, tmp_path / f"hog-{turn}")
            if injected >= STALLS:
                break
        recording = _ended(timer, path)
    assert injected >= STALLS
    (wakeup,) = recording.named("wakeup")
    seen = sum(
        interval.histograms[wakeup.id].count_above(STALL_NS - TOLERANCE_NS)
        for interval in recording.intervals[len(before.intervals) :]
    )
    assert seen >= injected
    minimum = recording.totals[wakeup.id].minimum
    assert minimum is not None and minimum >= 0
    assert_every_period_accounted(recording)


@pytest.mark.parametrize("method", ["posix-timer", "setitimer"])
def test_foreign_signals_are_no_acts(probe_binary: str, tmp_path: Path, method: str) -> None:
    path = tmp_path / "timer"
    with _timer(probe_binary, path, "--method", method, "--loops", "1000") as timer:
        _foreign_alarm_to_each_thread(timer)
        assert timer.wait(60) == 0
    recording = read_recording(path)
    assert recording.totals[recording.named("wakeup")[0].id].total == 1000
