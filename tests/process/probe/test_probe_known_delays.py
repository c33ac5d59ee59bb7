# SPDX-License-Identifier: GPL-2.0-or-later
"""The uncertainty budget of the timer probe holds delays that are known exactly, on a clock of known errors."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import merge_samples
from fastenough.analysis.uncertainty import LatencyUncertainty, budget_of
from fastenough.recording import Recording, read_recording
from fastenough.recording.samples import read_samples
from tests.support.tools import program

STEP_NS, READ_NS = 250, 400
"""As in target/probe/frame/tests/known_delays.c."""
LOOPS = 300
TRIES = 5
"""A machine that is busy may start the thread after its first due time: that act is no sleep, and its delay unknown."""


@pytest.fixture(scope="module")
def known_probe(build_directory: Path) -> Path:
    """A probe whose sleeps end at known times, on a clock that advances in steps and takes its time to be read."""
    return program(build_directory, "target/probe/known-probe")


def _run(probe: Path, folder: Path) -> tuple[Recording, dict[int, int], dict[int, int]]:
    """The recording; its latencies and the true delays, by due time."""
    for attempt in range(TRIES):
        place = folder / str(attempt)
        place.mkdir()
        subprocess.run(
            [
                *(probe, "timer", "-i", "1000137ns", "-l", str(LOOPS), "-t", "1", "-q", "--policy", "other"),
                *("--allow-difference", "--record", place / "r", "--samples", place / "s"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"KNOWN_DELAYS": str(place / "known")},
            timeout=60,
        )
        pairs = (line.split() for line in (place / "known").read_text().splitlines())
        true = {int(due): int(delay) for due, delay in pairs}
        (samples,) = read_samples(place / "s").series.values()
        measured = dict(zip(samples.due_ns.tolist(), samples.latency_ns.tolist(), strict=True))
        if measured.keys() <= true.keys():  # a thread also sleeps until the start
            return read_recording(place / "r"), measured, {due: true[due] for due in measured}
    pytest.fail("the thread never began before its first due time")


def _true_ns(true: dict[int, int], one: LatencyUncertainty) -> int:
    shares = {"minimum": 0.0, "median": 0.5, "maximum": 1.0}
    share = shares[one.latency] if one.latency in shares else float(one.latency.removesuffix(" %")) / 100
    return sorted(true.values())[max(1, math.ceil(share * len(true) - 1e-9)) - 1]


@pytest.mark.slow
def test_known_delays_lie_in_the_intervals(known_probe: Path, tmp_path: Path) -> None:
    recording, measured, true = _run(known_probe, tmp_path)
    assert recording.head.cost_ns["clock_step_ns"] == STEP_NS
    assert READ_NS <= (recording.head.cost_ns["clock_read_ns"] or 0) < 10 * READ_NS
    (series,) = recording.named("wakeup_corrected")
    budget = budget_of(merge_samples([(recording, series)]))
    assert [one.latency for one in budget.latencies] == ["minimum", "median", "95 %", "99 %", "maximum"]
    for one in budget.latencies:
        assert one.lower_ns <= _true_ns(true, one) <= one.upper_ns
    maximum = budget.latencies[-1]
    errors = np.array([measured[due] - maximum.bias_ns - true[due] for due in true])
    assert np.mean(np.abs(errors) <= maximum.expanded_ns) >= maximum.level
    assert maximum.expanded_ns <= 2 * np.ptp(errors) * (recording.head.cost_ns["clock_read_ns"] or 0) / READ_NS
    assert (maximum.unknown_lower, maximum.unknown_higher) == (True, False)
