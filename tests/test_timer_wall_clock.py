# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe puts two clocks side by side: being held up between its readings of them must not shift one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tools import build_probe

from fastenough.recording import read_recording
from fastenough.recording.samples import read_samples

PERIOD_NS = 1_000_000
NEAR_NS = PERIOD_NS // 5


@pytest.fixture(scope="module")
def halting_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe that is held up for thirty and a half periods before and after every other reading of the wall clock."""
    return build_probe(tmp_path_factory.mktemp("halting"), "halting-probe")


def test_being_held_up_between_the_clocks_shifts_neither_grid_nor_instants(halting_probe: Path, tmp_path: Path) -> None:
    subprocess.run([halting_probe, "timer", "--clock", "realtime", "-i", f"{PERIOD_NS}ns", "-D", "500ms", "-t", "1",
                    "--report", "100ms", "-q", "--policy", "other", "--allow-difference", "--record",
                    str(tmp_path / "r"), "--samples", str(tmp_path / "s")], check=True, stdout=subprocess.DEVNULL,
                   timeout=60)
    recording = read_recording(tmp_path / "r")
    offset_ns = next(event["at"]["wall_ns"] - event["at"]["mono_ns"] for event in recording.events)
    offsets_ns = [interval.end_wall_ns - interval.end_mono_ns for interval in recording.intervals]
    assert max(abs(other_ns - offset_ns) for other_ns in offsets_ns) < NEAR_NS
    (samples,) = read_samples(tmp_path / "s").series.values()
    first_due_ns = int(samples.due_ns[0]) - offset_ns
    off_ns = (first_due_ns - recording.head["begin"]["mono_ns"] + PERIOD_NS // 2) % PERIOD_NS - PERIOD_NS // 2
    assert abs(off_ns) < NEAR_NS
