# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread may be held up right after it has read a clock: what it read must not be taken for the present."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.recording import Recording, read_recording
from fastenough.recording.samples import SampleFile, read_samples
from tests.support.tools import program

PERIOD_NS = 1_000_000
NEAR_NS = PERIOD_NS // 5


@pytest.fixture(scope="module")
def halting_probe(build_directory: Path) -> Path:
    """A probe that is held up for thirty and a half periods before and after every other reading of the wall clock.

    Its threads are held up for a millisecond behind every other reading of the other one.
    """
    return program(build_directory, "target/probe/halting-probe")


def _run(probe: Path, directory: Path, *arguments: str) -> tuple[Recording, SampleFile]:
    recording, samples = directory / "r", directory / "s"
    recording.unlink(missing_ok=True)
    samples.unlink(missing_ok=True)
    subprocess.run(
        [
            probe,
            "timer",
            "-i",
            f"{PERIOD_NS}ns",
            "-q",
            "--policy",
            "other",
            "--allow-difference",
            "--record",
            str(recording),
            "--samples",
            str(samples),
            *arguments,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    return read_recording(recording), read_samples(samples)


@pytest.mark.slow
def test_being_held_up_between_the_clocks_shifts_neither_grid_nor_instants(halting_probe: Path, tmp_path: Path) -> None:
    recording, kept = _run(
        halting_probe, tmp_path, "--clock", "realtime", "-D", "500ms", "-t", "1", "--report", "100ms"
    )
    offset_ns = next(event.at.wall_ns - event.at.mono_ns for event in recording.events)
    offsets_ns = [interval.end_wall_ns - interval.end_mono_ns for interval in recording.intervals]
    assert max(abs(other_ns - offset_ns) for other_ns in offsets_ns) < NEAR_NS
    (samples,) = kept.series.values()
    first_due_ns = int(samples.due_ns[0]) - offset_ns
    off_ns = (first_due_ns - recording.head.begin.mono_ns + PERIOD_NS // 2) % PERIOD_NS - PERIOD_NS // 2
    assert abs(off_ns) < NEAR_NS


def test_a_run_ends_with_its_last_act_whoever_says_so_last(halting_probe: Path, tmp_path: Path) -> None:
    """Threads that end one after the other; one that is held up tells when it ended after those that ended later."""
    for _ in range(12):
        recording, kept = _run(halting_probe, tmp_path, "-l", "5", "-t", "8", "--offset", "60us")
        assert recording.end is not None
        last_act_ns = max(int((samples.due_ns + samples.latency_ns).max()) for samples in kept.series.values())
        assert last_act_ns <= recording.end.at.mono_ns
