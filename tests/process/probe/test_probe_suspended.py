# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that is suspended while it is watched: told and counted, and no step of the wall clock."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

from fastenough.model import Outcome
from tests.support.rings import follows, recordings
from tests.support.tools import program

SUSPENDED_NS = 5_000_000_000


def test_being_suspended_is_counted_and_is_no_step_of_the_clock(build_directory: Path, tmp_path: Path) -> None:
    probe = program(build_directory, "target/probe/suspended-probe")
    ring = tmp_path / "ring"
    subprocess.run(
        [
            probe,
            "timer",
            "--interval=2ms",
            "--report=100ms",
            "--ring-cycle=1s",
            "--policy=other",
            "--quiet",
            "--allow-difference",
            "--affinity=0",
            "--default-system",
            "--duration=2s",
            f"--ring={ring}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    found = recordings(ring)
    assert all(recording.outcome is Outcome.COMPLETED for recording in found)
    assert all(follows(one, other) for one, other in pairwise(found))  # the jump of the wall clock moved no boundary
    counters = [recording.end.counters for recording in found if recording.end is not None]
    assert sum(each["suspended_ns"] or 0 for each in counters) - SUSPENDED_NS in range(-1_000_000, 1_000_000)
    assert all(each["clock_step_ns"] == 0 and each["clock_sets"] == 0 for each in counters)
    events = [event for recording in found for event in recording.events]
    assert [event.text for event in events if event.kind in ("note", "clock-step")] == ["the machine was suspended"]
    intervals = [interval for recording in found for interval in recording.intervals]
    across = max(intervals, key=lambda one: one.end_wall_ns - one.begin_wall_ns)
    assert across.end_mono_ns - across.begin_mono_ns < SUSPENDED_NS // 2
    assert across.end_wall_ns - across.begin_wall_ns >= SUSPENDED_NS
    assert (across.counters["suspended_ns"] or 0) > 0
    assert sum(recording.totals[1].total for recording in found) >= 900  # it went on measuring
