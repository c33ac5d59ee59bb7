# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of ``make bench`` that shows how far lists, merging and reports reach still runs, on a small scale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_a_small_scale_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.scale", "--runs", "2", "--listed", "20", "--seconds", "60", "--times", "1"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        timeout=250,
        check=False,
    )
    assert [line.split(":")[0][:10] for line in done.stdout.splitlines() if "s of CPU" in line] == [
        "200 runs o",
        "fastenough",
        "fastenough",
    ], done.stdout + done.stderr
