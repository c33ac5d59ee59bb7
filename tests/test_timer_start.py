# SPDX-License-Identifier: GPL-2.0-or-later
"""What it takes the probe to get under way is not charged to the machine that it measures."""

from __future__ import annotations

import fcntl
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from timer_grid import accounted, assert_every_period_accounted

from fastenough.model import Outcome
from fastenough.recording import Recording, read_recording

CPU = str(max(os.sched_getaffinity(0)))
PERIOD_NS = 500_000
STUCK_S = 0.3
METHODS = ["clock_nanosleep-abs", "clock_nanosleep-rel", "posix-timer", "setitimer", "timerfd", "futex"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a real-time priority")


def _through_a_stuck_pipe(probe: str, path: Path, *arguments: str) -> Recording:
    """The recording of a run whose reader takes the head only after a while."""
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b" " * size)
    run = subprocess.Popen([probe, *arguments, "--record", "-", "-a", CPU], stdout=writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        time.sleep(STUCK_S)
        stream.read(size)
        path.write_bytes(stream.read())
    assert run.wait(30) == 0
    return read_recording(path)


@needs_root
@pytest.mark.parametrize("method", METHODS)
def test_a_head_that_is_late_delays_the_start(probe_binary: str, tmp_path: Path, method: str) -> None:
    recording = _through_a_stuck_pipe(probe_binary, tmp_path / "r", "timer", "-D", "500ms", "--report", "100ms",
                                      "-i", f"{PERIOD_NS}ns", "--method", method)
    late_ns = recording.intervals[0].begin_mono_ns - recording.head.begin.mono_ns
    assert late_ns > STUCK_S * 1e9 / 2
    maximum = recording.totals[recording.named("wakeup")[0].id].maximum
    assert maximum is not None and maximum < late_ns / 2
    if method != "clock_nanosleep-rel":
        assert_every_period_accounted(recording)
        due, held = accounted(recording)[-1]
        assert held <= due + 1


@needs_root
def test_due_times_stay_on_the_grid_that_the_head_tells(probe_binary: str, tmp_path: Path) -> None:
    recording = _through_a_stuck_pipe(probe_binary, tmp_path / "r", "timer", "-D", "500ms", "-i", f"{PERIOD_NS}ns")
    (wakeup,) = recording.named("wakeup")
    begin_ns = recording.head.begin.mono_ns
    offs_ns = [(event.at.mono_ns - event.value - begin_ns) % PERIOD_NS for event in recording.events
               if event.kind == "max" and event.series == wakeup.id]
    assert statistics.median(offs_ns) < PERIOD_NS / 4  # an event is told a little after its act began


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_start_does_not_end_an_interval_before_it_began(probe_binary: str, tmp_path: Path,
                                                                         sent: signal.Signals) -> None:
    run = subprocess.Popen([probe_binary, "timer", "--record", "-", "--allow-difference"], stdout=subprocess.PIPE)
    assert run.stdout is not None
    head = run.stdout.readline()
    run.send_signal(sent)
    (tmp_path / "r").write_bytes(head + run.stdout.read())
    assert run.wait(30) in (130, 143)
    recording = read_recording(tmp_path / "r")
    assert recording.outcome is Outcome.ABORTED
    assert recording.intervals[0].begin_mono_ns >= recording.head.begin.mono_ns
    assert all(interval.end_mono_ns >= interval.begin_mono_ns for interval in recording.intervals)
    assert recording.end is not None
    assert recording.end.at.mono_ns >= recording.head.begin.mono_ns
