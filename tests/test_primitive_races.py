# SPDX-License-Identifier: GPL-2.0-or-later
"""ThreadSanitizer watches every hand-over between threads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tools import build_probe, require

from fastenough.model import ExitStatus

SHORT = "-D300ms"
RUNS = [
    "switch", "mutex", "mutex-contended", "mutex-pi", "inversion", "spinlock", "semaphore", "condvar", "futex",
    "eventfd", "signal", "mqueue", "barrier", "fifo-message", "semaphore --placement=core", "barrier --placement=core",
    "condvar --placement=core --burst=10", "fifo --largest=16384", "fifo --by=pipe --largest=16384 --placement=core",
    "shm --largest=10240", "jitter --size=10240",
]


@pytest.fixture(scope="module")
def tsan_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_probe(tmp_path_factory.mktemp("tsan"), "tsan-probe")


@pytest.mark.parametrize("run", RUNS)
def test_no_data_race(tsan_probe: Path, run: str) -> None:
    if ("core" in run or run.startswith(("spinlock", "shm"))) and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    require("setarch")  # the sanitizer wants addresses it knows
    # Contested mutexes are taken in turn, each before the other is let go: one thread alone holds two, so the
    # sanitizer's order of locks says nothing here.
    done = subprocess.run(
        ["setarch", "-R", str(tsan_probe), *run.split(), SHORT, "--quiet", "--allow-difference"], capture_output=True,
        text=True, timeout=120, check=False, env={**os.environ, "TSAN_OPTIONS": "detect_deadlocks=0 exitcode=66"})
    assert "ThreadSanitizer" not in done.stderr, done.stderr
    if run != "inversion" or os.geteuid() == 0:  # without priorities nothing is inverted, which is said
        assert done.returncode == ExitStatus.DONE, done.stderr
