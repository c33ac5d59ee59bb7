# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fixed phase between due times and the tick hides at most, and when a report states it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis.differences import difference, run_values
from fastenough.analysis.judgment import judge
from fastenough.analysis.keys import FOR_COMPARING, FOR_MERGING, RUN_KEYS
from fastenough.analysis.phase_lock import PhaseLock, phase_lock_cautions
from fastenough.recording import Recording
from tests.support.recordings import PROFILE, Plan, recording

CPUS = 2


def _run(folder: Path, *, hz: str | None = "250", period_ns: int = 1_000_000, **change: Any) -> Recording:
    """A timer's recording on a kernel with this CONFIG_HZ; ``parameters`` and ``nohz_full`` as in its head."""
    options = {} if hz is None else {"CONFIG_HZ": hz}
    profile = PROFILE | {
        "kernel_config": {"sha256": "a1" * 32, "of_interest": options},
        "cpu_isolation": {"online": "0-1", "nohz_full": change.get("nohz_full", "")},
    }
    head = {"profile": profile, "parameters": {"interval_ns": period_ns} | change.get("parameters", {})}
    values = [[np.full(1000, 5_000, dtype=np.int64)]] * CPUS
    kind: dict[str, Any] = {"views": ("wakeup",), "series": {"relative": True}} if change.get("relative") else {}
    return recording(folder, Plan(values, period_ns=period_ns, head=head, **kind))


@pytest.mark.parametrize(
    ("interval_us", "tick_us", "gap_us"), [(1000, 4000, 1000), (200, 4000, 200), (300, 4000, 100), (1000, 1000, 1000)]
)
def test_what_a_fixed_phase_hides(interval_us: int, tick_us: int, gap_us: int) -> None:
    """Simulated: stalls of one length at each tick, at every phase; the greatest delay that no due time shows."""
    gap_ns = PhaseLock(interval_us * 1000, tick_us * 1000).gap_ns
    assert gap_ns == gap_us * 1000
    stall_us, phases_us = gap_us + 30, np.arange(tick_us)[:, None]
    dues_us = np.arange(0, math.lcm(interval_us, tick_us), interval_us)[None, :]
    since_us = (dues_us - phases_us) % tick_us
    hidden_us = stall_us - np.maximum(0, stall_us - since_us).max(axis=1)
    assert hidden_us.max() == gap_us - 1
    assert hidden_us.min() == 0


def test_the_caveat_is_stated_once(tmp_path: Path) -> None:
    (said,) = phase_lock_cautions([_run(tmp_path), _run(tmp_path, period_ns=300_000)])
    assert "(1 ms)" in said and "(4 ms)" in said
    assert "random due times: fastenough run timer interval=1ms dither=500us" in said
    assert judge([_run(tmp_path)]).cautions.count(said) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"hz": None},
        {"hz": "x"},
        {"period_ns": 333_000},
        {"parameters": {"dither_ns": 100_000, "seed": 1}},
        {"nohz_full": "0-1"},
        {"relative": True},
    ],
)
def test_no_caveat_without_a_fixed_phase(tmp_path: Path, change: dict[str, Any]) -> None:
    assert not list(phase_lock_cautions([_run(tmp_path, **change)]))


def test_the_caveat_states_the_interval_exactly(tmp_path: Path) -> None:
    (said,) = phase_lock_cautions([_run(tmp_path, period_ns=62_500)])
    assert "interval=62500ns dither=31us" in said


def test_a_cpu_with_a_tick_remains(tmp_path: Path) -> None:
    assert list(phase_lock_cautions([_run(tmp_path, nohz_full="1")]))


def test_runs_of_different_dither_are_compared_and_never_merged(tmp_path: Path) -> None:
    heads: list[dict[str, int]] = [{}, {"dither_ns": 100_000, "seed": 1}, {"dither_ns": 500_000, "seed": 1}]
    for one, other in pairwise(run_values(_run(tmp_path, parameters=parameters)) for parameters in heads):
        assert difference(RUN_KEYS, one, other, FOR_COMPARING) is None
        assert difference(RUN_KEYS, one, other, FOR_MERGING) is not None
    one, other = (run_values(_run(tmp_path, parameters=heads[1] | {"seed": seed})) for seed in (1, 2))
    assert difference(RUN_KEYS, one, other, FOR_MERGING) is None
