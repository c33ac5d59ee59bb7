# SPDX-License-Identifier: GPL-2.0-or-later
"""Dithered due times: one in each interval, at every instant of it, and so a stall in phase with the grid is found."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.model import ExitStatus
from fastenough.recording import Recording, read_recording
from fastenough.recording.samples import SampleFile, read_samples
from tests.support.privileges import needs_root
from tests.support.timer_grid import assert_every_period_accounted

CPU = str(max(os.sched_getaffinity(0)))
PERIOD_NS = 4_000_000
STALL_NS = 2_000_000
STALL_BEGINS_NS = 1_200_000
"""Behind every second point of the grid."""
LATE_NS = PERIOD_NS // 4
SHARE = (STALL_NS - LATE_NS) / (2 * PERIOD_NS)
"""Share of the acts that such stalls make later than this."""


def _timer(probe: str, directory: Path, *arguments: str) -> list[str]:
    """Its grid has a point at each full second."""
    directory.mkdir()
    where = ["--record", str(directory / "r"), "--samples", str(directory / "s")]
    return [probe, "timer", "-q", "-i", f"{PERIOD_NS}ns", "-a", CPU, "--secaligned", *where, *arguments]


def _measured(directory: Path) -> tuple[Recording, SampleFile]:
    return read_recording(directory / "r"), read_samples(directory / "s")


def _delayed(samples: SampleFile) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each act: whether a stall makes it late by its due time, and whether it was late."""
    (kept,) = samples.series.values()
    since_stall_ns = (kept.due_ns - STALL_BEGINS_NS) % (2 * PERIOD_NS)
    return since_stall_ns < STALL_NS - LATE_NS, kept.latency_ns > LATE_NS


def _intervals(samples: SampleFile) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many intervals lie between each act and the next, and how many should by its latency.

    An act follows at once in a period that has begun.  A thread that starts late waits for the next one instead, where
    its dither begins.
    """
    (kept,) = samples.series.values()
    steps_ns, behind = np.diff(kept.due_ns), kept.latency_ns[:-1] // PERIOD_NS
    expected = 1 + np.maximum(0, behind - 1)
    if steps_ns[0] % PERIOD_NS == 0:
        expected[0] = 1 + behind[0]
    return np.diff(-(-kept.due_ns // PERIOD_NS)), expected


def _hog(probe: str) -> list[str]:
    begin_ns = time.monotonic_ns() // 10**9 * 10**9 + STALL_BEGINS_NS
    stalls = ["--sizes", f"{STALL_NS}ns", "--lead", "100us", "--begin", str(begin_ns), "--each", "1000"]
    return [probe, "hog", "-q", "-a", CPU, "-p", "90", "-i", f"{2 * PERIOD_NS}ns", *stalls]


@needs_root("a real-time priority")
def test_a_stall_in_phase_with_the_grid_is_found(probe_binary: str, tmp_path: Path) -> None:
    """The same stalls delay both timers, and so does whatever else delays this machine."""
    hog = subprocess.Popen(_hog(probe_binary), stdout=subprocess.DEVNULL)
    plain, dithered = tmp_path / "plain", tmp_path / "dithered"
    commands = [
        _timer(probe_binary, plain, "-D", "3s", "-p", "80"),
        _timer(probe_binary, dithered, "-D", "3s", "-p", "80", "--dither", f"{PERIOD_NS // 2}ns"),
    ]
    timers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [timer.wait(60) for timer in timers] == [0, 0]
    hog.terminate()
    hog.wait(30)
    hit, late = _delayed(_measured(dithered)[1])
    assert SHARE / 2 < hit.mean() < 2 * SHARE
    assert late[hit].mean() > max(0.8, 3 * late[~hit].mean())
    never_hit, late_on_grid = _delayed(_measured(plain)[1])
    assert not never_hit.any()
    assert late_on_grid.mean() < late[hit].mean() / 3
    assert_every_period_accounted(_measured(dithered)[0])


@pytest.mark.parametrize("method", ["clock_nanosleep-abs", "futex"])
def test_each_interval_has_one_due_time(probe_binary: str, tmp_path: Path, method: str) -> None:
    dither_ns = PERIOD_NS // 4
    ordinary = ["--policy", "other", "--allow-difference", "--method", method]
    dues: list[set[int]] = []
    for seed in (1, 1, 2):
        directory = tmp_path / str(len(dues))
        command = _timer(
            probe_binary, directory, "-l", "100", "--dither", f"{dither_ns}ns", f"--seed={seed}", *ordinary
        )
        subprocess.run(command, check=True, timeout=60)
        recording, samples = _measured(directory)
        assert recording.head.parameters["dither_ns"] == dither_ns
        assert recording.head.parameters["seed"] == seed
        (kept,) = samples.series.values()
        intervals, expected = _intervals(samples)
        assert intervals.tolist() == expected.tolist()
        assert np.diff(kept.due_ns).min() >= PERIOD_NS - dither_ns
        assert np.diff(kept.due_ns).max() > PERIOD_NS
        dues.append(set((kept.due_ns % PERIOD_NS).tolist()))
    assert len(dues[0] & dues[1]) > 90
    assert len(dues[0] & dues[2]) < 10


@pytest.mark.parametrize(
    "arguments",
    [
        ["--dither", "600us"],
        ["--dither", "9us"],
        ["--dither", "2s", "-i", "10s"],
        ["--dither", "100us", "--method", "timerfd"],
        ["--dither", "100us", "--method", "clock_nanosleep-rel"],
        ["--dither", "100us", "--policy", "deadline"],
    ],
)
def test_what_cannot_be_dithered_is_refused(probe_binary: str, arguments: list[str]) -> None:
    command = [probe_binary, "timer", "-D", "10ms", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr.count("\n")) == (ExitStatus.BAD_INPUT, 1)
    assert "--dither" in done.stderr
