# SPDX-License-Identifier: GPL-2.0-or-later
"""A real-time thread that never sleeps and never looks up is stopped by the frame, which says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.privileges import needs_root
from tests.support.tools import program


@needs_root("a real-time thread that never sleeps")
@pytest.mark.parametrize("duration", [["-D", "500ms"], []], ids=["stopped", "endless"])
def test_a_thread_that_never_stops_is_stopped(build_directory: Path, tmp_path: Path, duration: list[str]) -> None:
    stuck = program(build_directory, "target/probe/stuck-probe")
    path = tmp_path / "r"
    done = subprocess.run(
        [str(stuck), "stuck", "-q", "-a", str(max(os.sched_getaffinity(0))), "--record", str(path), *duration],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr
    recording = read_recording(path)
    assert recording.outcome is Outcome.FAILED
    assert recording.totals[0].total > 0
