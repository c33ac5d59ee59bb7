# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost model of a deterministic guest: its counts repeat, and show what a load does to the caches.

A loop of the same instructions runs beside the probe, once within a line of the cache and once through twice the cache.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.analysis.costs import COUNTED, CostFigures, cost_figures
from fastenough.virtual.cost_model import COST_MODELS, CostModel
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Background, Command, DeterministicGuest, GuestRun
from fastenough.virtual.module import compiler
from fastenough.virtual.packages import GUEST_ARCH
from fastenough.virtual.probe import PROBE
from tests.support.virtual_boards import BOOT_S

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=100ms", "--record=-"))
MODEL = COST_MODELS["cache"]
WALK = "tools/bin/cache-walk"
NEAR, FAR = 64, 65_536
DATA_LINES = 512
"""Lines of the data cache: no path can miss more of the probe's and the kernel's lines that the loop has replaced."""


def _walk(folder: Path) -> bytes:
    """The loop as a static program for the guest."""
    program = folder / "cache-walk"
    source = ROOT / "tests/sources/cache_walk.c"
    subprocess.run([compiler(GUEST_ARCH), "-O2", "-static", "-s", "-o", program, source], check=True, timeout=60)
    return program.read_bytes()


def _boot(walk: bytes, size: int, model: CostModel | None) -> GuestRun:
    load = Background((("cache-walk", str(size)),), ("/var/tmp/walk",), 0.1, {WALK: walk})
    return DeterministicGuest(find_kernel("stock"), cost_model=model).boot([TIMER], load)


def _results(run: GuestRun) -> tuple[bytes, bytes | None]:
    """The recording and the costs of a guest."""
    results = run.results(BOOT_S)
    (done,) = results.commands
    assert done.status == 0, done.stderr
    return done.stdout, results.costs


def _figures(costs: bytes | None) -> dict[str, CostFigures]:
    assert costs is not None
    figures = {each.counted: each for each in cost_figures([costs])}
    assert set(figures) == set(COUNTED)
    return figures


def test_costs_repeat_leave_the_recording_alone_and_show_a_load_on_the_cache(tmp_path: Path) -> None:
    walk = _walk(tmp_path)
    plain, nothing = _results(_boot(walk, FAR, None))
    recording, costs = _results(_boot(walk, FAR, MODEL))
    again = _results(_boot(walk, FAR, MODEL))
    assert nothing is None and (recording, costs) == again and recording == plain
    far, near = _figures(costs), _figures(_results(_boot(walk, NEAR, MODEL))[1])
    instructions, _, data_misses = COUNTED
    assert all(figures[name].wakeups >= 100 for figures in (far, near) for name in COUNTED)
    assert far[instructions].median == pytest.approx(near[instructions].median, rel=0.01)
    assert 5 * near[data_misses].median < far[data_misses].median < DATA_LINES
