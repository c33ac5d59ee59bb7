# SPDX-License-Identifier: GPL-2.0-or-later
"""The module's grid of due times, as an ordinary program: the same on machines with longs of 32 and of 64 bits."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "target" / "module"
HOST = Path(__file__).parent / "grid_host"
MOST_CHARGED = 4096
LONG_BYTES = {"gcc": 8, "arm-linux-gnueabihf-gcc": 4}


@pytest.fixture(scope="module", params=LONG_BYTES)
def grid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Runs it: on this machine, and as a program of a 32-bit one."""
    compiler = request.param
    emulator = [] if compiler == "gcc" else ["qemu-arm"]
    for tool in (compiler, *emulator):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program = tmp_path_factory.mktemp("grid") / "grid"
    subprocess.run([compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", f"-I{HOST}",
                    f"-I{MODULE}", f"-I{ROOT / 'format'}", "-o", str(program), str(HOST / "run.c"),
                    str(MODULE / "grid.c")], check=True)
    return [*emulator, str(program)]


@pytest.mark.parametrize("period_ns", [20_000, 1_000_000, 429_496_729, 429_496_730, 500_000_000, 1_000_000_000])
@pytest.mark.parametrize("periods_late", [0, 1, 2, 7, 5000])
def test_due_times_and_charged_periods(grid: list[str], period_ns: int, periods_late: int) -> None:
    late_ns = periods_late * period_ns + 123
    done = subprocess.run([*grid, str(period_ns), str(late_ns)], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    charged = min(periods_late, MOST_CHARGED) + 1
    assert said.pop("long_bytes") in LONG_BYTES.values()
    assert said == {
        "first": 10 * period_ns, "steps": periods_late + 1, "missed": periods_late,
        "missed_corrected": periods_late, "charged": charged,
        "largest": late_ns, "smallest": late_ns - (charged - 1) * period_ns,
        "sum": charged * late_ns - period_ns * charged * (charged - 1) // 2, "lost": periods_late + 1 - charged,
    }


def test_one_of_them_has_longs_of_32_bits(grid: list[str]) -> None:
    done = subprocess.run([*grid, "1000000", "0"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["long_bytes"] == (4 if grid[0] == "qemu-arm" else 8)
