# SPDX-License-Identifier: GPL-2.0-or-later
"""The module's grid of due times and its series, as a program: the same on machines with longs of 32 and 64 bits.

What a long stall is charged with is added at once for all periods of a bucket; here it is held against one at a time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.order_of_values import Order, coarse

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
MODULE = ROOT / "target" / "module"
HOST = Path(__file__).parents[2] / "sources/grid_host"
K, RISE_K = 10, 3
SUM_MOST = 2**62
LEAD_NS = 10_000_000
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
    subprocess.run(
        [
            compiler,
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            f"-I{HOST}",
            f"-I{MODULE}",
            f"-I{ROOT / 'format'}",
            "-o",
            str(program),
            str(HOST / "run.c"),
            str(MODULE / "grid.c"),
            str(MODULE / "tally.c"),
        ],
        check=True,
    )
    return [*emulator, str(program)]


def _acted(grid: list[str], period_ns: int, *lates_ns: int) -> dict[str, Any]:
    done = subprocess.run([*grid, str(period_ns), *map(str, lates_ns)], capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout)
    assert said.pop("long_bytes") in LONG_BYTES.values()
    return said


def _one_by_one(values: list[int], missed: int) -> dict[str, Any]:
    rises, _ = Order(RISE_K, 0).interval(values)
    squares = sum(value * value for value in values)
    return {
        "missed": missed,
        "lost": 0,
        "gaps": 0,
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "sum": sum(values),
        "sum_sq": [squares >> 64, squares % 2**64],
        "buckets": [list(entry) for entry in sorted(Counter(coarse(value, K, False) for value in values).items())],
        "rises": rises.entries(),
    }


@pytest.mark.parametrize("period_ns", [20_000, 1_000_000, 429_496_729, 429_496_730, 500_000_000, 1_000_000_000])
@pytest.mark.parametrize("periods_late", [(0,), (1,), (2, 0, 7), (5000, 3, 4097), (60_000,)])
def test_due_times_and_charged_periods(grid: list[str], period_ns: int, periods_late: tuple[int, ...]) -> None:
    lates_ns = [periods * period_ns + 123 for periods in periods_late]
    said = _acted(grid, period_ns, *lates_ns)
    missed = sum(periods_late)
    charged = [late_ns - n * period_ns for late_ns in lates_ns for n in range(late_ns // period_ns + 1)]
    assert said == {
        "begin": LEAD_NS,
        "first": LEAD_NS + period_ns,
        "steps": [periods + 1 for periods in periods_late],
        "wakeup": _one_by_one(lates_ns, missed),
        "corrected": _one_by_one(charged, missed),
    }


def test_what_no_sum_can_hold_is_lost_as_a_whole(grid: list[str]) -> None:
    """An hour at 20 µs: its delays come to more than 2^62 ns.  What comes after it is counted as ever."""
    period_ns, hour_ns, ten_ms = 20_000, 3_600_000_000_000, 10_000_000
    corrected = _acted(grid, period_ns, hour_ns, ten_ms)["corrected"]
    assert corrected["missed"] == (hour_ns + ten_ms) // period_ns
    assert corrected["lost"] == hour_ns // period_ns
    assert corrected["gaps"] == 1
    assert corrected["count"] == 2 + ten_ms // period_ns
    assert corrected["sum"] == hour_ns + sum(range(0, ten_ms + 1, period_ns)) <= SUM_MOST


def test_minutes_are_charged_period_by_period(grid: list[str]) -> None:
    period_ns, late_ns = 20_000, 240_000_000_000
    corrected = _acted(grid, period_ns, late_ns)["corrected"]
    periods = late_ns // period_ns
    assert (corrected["lost"], corrected["count"], corrected["min"]) == (0, periods + 1, 0)
    assert corrected["sum"] == period_ns * periods * (periods + 1) // 2
    squares = period_ns**2 * periods * (periods + 1) * (2 * periods + 1) // 6
    assert corrected["sum_sq"] == [squares >> 64, squares % 2**64]
    assert sum(count for _, count in corrected["buckets"]) == periods + 1


def test_one_of_them_has_longs_of_32_bits(grid: list[str]) -> None:
    done = subprocess.run([*grid, "1000000", "0"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["long_bytes"] == (4 if grid[0] == "qemu-arm" else 8)


@pytest.mark.parametrize("reading", range(1, 7))
@pytest.mark.parametrize("when", ["before", "after"])
def test_acts_lie_in_the_time_of_their_bank_wherever_the_reader_is_stopped(
    tmp_path_factory: pytest.TempPathFactory, reading: int, when: str
) -> None:
    """A hypervisor may stop the CPU at any instruction: between naming the instant and reading the clock as well."""
    program = tmp_path_factory.getbasetemp() / "recorder"
    if not program.exists():
        subprocess.run(
            [
                "gcc",
                "-std=gnu11",
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                f"-I{HOST}",
                f"-I{MODULE}",
                f"-I{ROOT / 'format'}",
                "-o",
                str(program),
                str(HOST / "recorder.c"),
                str(MODULE / "recorder.c"),
            ],
            check=True,
        )
    done = subprocess.run([program, str(reading), when], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
