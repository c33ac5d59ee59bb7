# SPDX-License-Identifier: GPL-2.0-or-later
"""An act lies in the interval that it is counted in, also where the reporting thread is kept from running."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.recording import read_recording
from tests.support.privileges import needs_root
from tests.support.timer_grid import assert_every_period_accounted, furthest_off, latest_periods

INTERVAL_NS = 10_000_000
DRIFT_NS = 4_000
CPUS = sorted(os.sched_getaffinity(0))

needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs: one to measure, one for the reporter")


def _displace_the_reporter(probe: str, timer: Path, cpu: int) -> None:
    """Compute for 4 ms at a time, beginning in turn at every moment of what the reporter does at an interval's end."""
    with timer.open() as lines:
        begin_ns = json.loads(lines.readline())["begin"]["mono_ns"]
    subprocess.run(
        [
            probe,
            "hog",
            "-a",
            str(cpu),
            "-p",
            "90",
            "--sizes",
            "4ms",
            "--lead",
            "100us",
            "--begin",
            str(begin_ns),
            "-i",
            f"{INTERVAL_NS + DRIFT_NS}ns",
            "--each",
            "250",
            "-q",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )


@needs_root("a real-time priority")
@needs_two_cpus
def test_acts_lie_in_their_interval_while_the_reporter_is_displaced(probe_binary: str, tmp_path: Path) -> None:
    reporter_cpu, cpu = CPUS[:2]
    path = tmp_path / "r"
    timer = subprocess.Popen(
        [
            probe_binary,
            "timer",
            "-a",
            str(cpu),
            "-i",
            "100us",
            "-D",
            "3s",
            "-q",
            "--report",
            f"{INTERVAL_NS}ns",
            "--record",
            str(path),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not (path.exists() and path.read_bytes().endswith(b"\n")):
            time.sleep(0.01)
        os.sched_setaffinity(timer.pid, [reporter_cpu])  # the reporter is the first thread
        _displace_the_reporter(probe_binary, path, reporter_cpu)
        assert timer.wait(60) == 0
    finally:
        timer.kill()
    recording = read_recording(path)
    assert len(recording.intervals) > 100
    assert_every_period_accounted(recording)
    assert furthest_off(recording) <= 3 + latest_periods(recording)
