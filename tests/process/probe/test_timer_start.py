# SPDX-License-Identifier: GPL-2.0-or-later
"""From the stated begin on every period counts; what the probe takes to get under way before it is no latency."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import Recording, read_recording
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.timer_grid import accounted, assert_every_period_accounted

CPU = str(max(os.sched_getaffinity(0)))
PERIOD_NS = 500_000
STUCK_S = 0.3
METHODS = ["clock_nanosleep-abs", "clock_nanosleep-rel", "posix-timer", "setitimer", "timerfd", "futex"]


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


@pytest.mark.slow
@needs_root("a real-time priority")
@pytest.mark.parametrize("method", METHODS)
def test_a_head_that_is_late_delays_the_start(probe_binary: str, tmp_path: Path, method: str) -> None:
    recording = _through_a_stuck_pipe(
        probe_binary,
        tmp_path / "r",
        "timer",
        "-D",
        "500ms",
        "--report",
        "100ms",
        "-i",
        f"{PERIOD_NS}ns",
        "--method",
        method,
    )
    late_ns = recording.intervals[0].begin_mono_ns - recording.head.begin.mono_ns
    assert late_ns > STUCK_S * 1e9 / 2
    maximum = recording.totals[recording.named("wakeup")[0].id].maximum
    assert maximum is not None and maximum < late_ns / 2
    if method != "clock_nanosleep-rel":
        assert_every_period_accounted(recording)
        due, held = accounted(recording)[-1]
        assert held <= due + 1


@needs_root("a real-time priority")
def test_due_times_stay_on_the_grid_that_the_head_tells(probe_binary: str, tmp_path: Path) -> None:
    recording = _through_a_stuck_pipe(probe_binary, tmp_path / "r", "timer", "-D", "500ms", "-i", f"{PERIOD_NS}ns")
    (wakeup,) = recording.named("wakeup")
    begin_ns = recording.head.begin.mono_ns
    offs_ns = [
        (event.at.mono_ns - present(event.value, "value of an event") - begin_ns) % PERIOD_NS
        for event in recording.events
        if event.kind == "max" and event.series == wakeup.id
    ]
    assert statistics.median(offs_ns) < PERIOD_NS / 4  # an event is told a little after its act began


def _covered_from_before_the_begin(probe: str, path: Path, hog_ns: int, *arguments: str) -> tuple[int, Recording]:
    """How long after its begin, in ns, a run's CPU was taken by another task, from 1 ms before; and its recording."""
    ours = os.sched_getaffinity(0)
    run = subprocess.Popen(
        [probe, "timer", *arguments, "-i", f"{PERIOD_NS}ns", "--record", "-", "-a", CPU, "-q"], stdout=subprocess.PIPE
    )
    assert run.stdout is not None
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
        os.sched_setaffinity(0, ours - {int(CPU)})
        head = run.stdout.readline()
        end_ns = json.loads(head)["begin"]["mono_ns"] - 1_000_000 + hog_ns
        while time.monotonic_ns() < end_ns - hog_ns:
            pass
        os.sched_setaffinity(0, {int(CPU)})
        begun_ns = time.monotonic_ns()
        while time.monotonic_ns() < end_ns:
            pass
        ended_ns = time.monotonic_ns()
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, ours)
    path.write_bytes(head + run.stdout.read())
    assert run.wait(30) == 0
    recording = read_recording(path)
    begin_ns = recording.intervals[0].begin_mono_ns
    return (ended_ns - begin_ns if begun_ns < begin_ns else 0), recording


@pytest.mark.slow
@needs_root("a task above the probe's priority")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU to wait on and one to take")
@pytest.mark.parametrize("method", [*METHODS, "nanosleep", "ppoll"])
@pytest.mark.parametrize("hog_ms", [80, 300])
def test_a_stall_that_covers_the_begin_is_measured(probe_binary: str, tmp_path: Path, method: str, hog_ms: int) -> None:
    """The longer one covers the whole run: its one act is as late as the run is long."""
    for _ in range(5):  # the machine itself may be stalled as well, or let the hog come too late
        stall_ns, recording = _covered_from_before_the_begin(
            probe_binary, tmp_path / "r", hog_ms * 1_000_000, "-D", "150ms", "--method", method
        )
        (wakeup,), (corrected,) = recording.named("wakeup"), recording.named("wakeup_corrected")
        missed = (stall_ns - PERIOD_NS) // PERIOD_NS
        if stall_ns and recording.missed(wakeup.id) <= missed + 1:
            break
    else:
        pytest.skip("this machine stalled five times in a row beside the stall that was made")
    maximum = recording.totals[corrected.id].maximum
    assert recording.outcome is Outcome.COMPLETED
    assert recording.totals[wakeup.id].maximum == maximum
    assert abs(recording.missed(wakeup.id) - missed) <= 1
    assert maximum is not None
    assert stall_ns - 2 * PERIOD_NS <= maximum
    assert hog_ms == 80 or recording.totals[wakeup.id].total <= 2
    if "rel" not in method and method not in ("nanosleep", "ppoll"):
        assert_every_period_accounted(recording)


def test_a_run_without_an_act_is_not_completed(probe_binary: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    done = subprocess.run(
        [
            probe_binary,
            "timer",
            "-i",
            "500ms",
            "-D",
            "100ms",
            "-q",
            "--record",
            str(path),
            "--policy",
            "other",
            "--allow-difference",
        ],
        capture_output=True,
        timeout=30,
        check=False,
    )
    recording = read_recording(path)
    assert done.returncode == 4
    assert recording.outcome is Outcome.FAILED
    assert len(recording.reasons) == 1


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_start_does_not_end_an_interval_before_it_began(
    probe_binary: str, tmp_path: Path, sent: signal.Signals
) -> None:
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
