# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing is counted in a run that happened before it began or after it ended."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.recording import read_recording

EAGER = [
    ("timer", "--method", "clock_nanosleep-rel"),
    ("timer", "--method", "nanosleep"),
    ("timer", "--method", "ppoll"),
    ("shm",),
]


@pytest.mark.parametrize("probe_and_method", EAGER, ids=" ".join)
def test_no_act_comes_before_the_first_interval(
    probe_binary: str, tmp_path: Path, probe_and_method: tuple[str, ...]
) -> None:
    """These lay no grid of due times: only the start holds them back. Each first act is a maximum, and so an event."""
    path = tmp_path / "r"
    subprocess.run(
        [
            probe_binary,
            *probe_and_method,
            "-i",
            "200us",
            "-D",
            "1s",
            "-q",
            "--record",
            str(path),
            "--policy",
            "other",
            "--allow-difference",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    recording = read_recording(path)
    begin_ns, end_ns = recording.intervals[0].begin_mono_ns, recording.intervals[-1].end_mono_ns
    acts = [event.at.mono_ns for event in recording.events if event.kind == "max"]
    assert acts
    assert begin_ns <= min(acts) <= max(acts) <= end_ns
