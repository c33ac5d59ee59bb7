# SPDX-License-Identifier: GPL-2.0-or-later
"""Only a thread that sleeps is woken, also in a burst and where the waiting thread has a CPU of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.analysis.machine import counter_total
from fastenough.recording import read_recording
from tests.support.privileges import needs_root

ACTS = 2000
PAIRS = [
    "barrier",
    "condvar",
    "eventfd",
    "fifo-message",
    "futex",
    "mqueue",
    "mutex-contended",
    "mutex-pi",
    "semaphore",
    "signal",
]

pytestmark = needs_root("real-time priorities")


@pytest.mark.parametrize("name", PAIRS)
def test_each_act_of_a_burst_wakes_a_thread_that_slept(probe_binary: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / "r"
    done = subprocess.run(
        [probe_binary, name, "--placement=core", "--burst=500", f"-l{ACTS}", "-q", "--record", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    recording = read_recording(path)
    assert recording.totals[0].total == ACTS
    switches = counter_total(recording, "voluntary_switches")
    assert switches is not None and switches >= ACTS  # the waiting thread alone gave up its CPU once for each
