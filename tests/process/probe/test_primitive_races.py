# SPDX-License-Identifier: GPL-2.0-or-later
"""ThreadSanitizer watches every hand-over between threads."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fastenough.model import ExitStatus
from tests.support.tools import program, require

SHORT = "-D300ms"
RUNS = [
    "switch",
    "mutex",
    "mutex-contended",
    "mutex-pi",
    "inversion",
    "spinlock",
    "semaphore",
    "condvar",
    "futex",
    "eventfd",
    "signal",
    "mqueue",
    "barrier",
    "fifo-message",
    "semaphore --placement=core",
    "barrier --placement=core",
    "condvar --placement=core --burst=10",
    "fifo --largest=16384",
    "fifo --by=pipe --largest=16384 --placement=core",
    "shm --largest=10240",
    "jitter --size=10240",
]
UNPRIORITIZED = re.compile(r"fastenough-probe: failed: the medium thread .*: nothing was (inverted|inherited)\n")
"""What inversion may say to a user who has no priorities: then any of the three threads may come first."""


@pytest.fixture(scope="module")
def tsan_probe(build_directory: Path) -> Path:
    return program(build_directory, "target/probe/tsan-probe")


@pytest.mark.parametrize("run", RUNS)
def test_no_data_race(tsan_probe: Path, run: str) -> None:
    if ("core" in run or run.startswith(("spinlock", "shm"))) and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    require("setarch")  # the sanitizer wants addresses it knows
    # Contested mutexes are taken in turn, each before the other is let go: one thread alone holds two, so the
    # sanitizer's order of locks says nothing here.
    done = subprocess.run(
        ["setarch", "-R", str(tsan_probe), *run.split(), SHORT, "--quiet", "--allow-difference"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "TSAN_OPTIONS": "detect_deadlocks=0 exitcode=66"},
    )
    assert "ThreadSanitizer" not in done.stderr, done.stderr
    if run == "inversion" and os.geteuid() != 0 and done.returncode != ExitStatus.DONE:
        assert UNPRIORITIZED.fullmatch(done.stderr), done.stderr
    else:
        assert done.returncode == ExitStatus.DONE, done.stderr
