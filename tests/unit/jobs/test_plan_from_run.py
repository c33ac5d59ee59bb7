# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses that a plan expects, from those of a run: how long disturbances are, and which of them have one cause."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis.power import ExpectedMisses
from fastenough.jobs.plan_test import plan_from_run
from fastenough.model import Requirement
from tests.support.recordings import Plan, recording

pytestmark = pytest.mark.slow

LIMIT_NS, LATE_NS = 50_000, 80_000
SECONDS, EACH = 600, 1000


def expected_of(folder: Path, late: NDArray[np.int64]) -> list[ExpectedMisses]:
    values = np.full(SECONDS * EACH, 1_000, dtype=np.int64)
    values[late] = LATE_NS
    rows = list(values.reshape(SECONDS, EACH))
    run = recording(folder, Plan([rows], views=("wakeup_corrected",), rise_k=3, limit_ns=LIMIT_NS))
    return [one.misses for one in plan_from_run(Requirement(LIMIT_NS, 0.4), run).verdicts]


def test_lengths_that_vary_are_planned_as_such(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    begins = np.sort(random.choice(SECONDS * EACH // 100, 80, replace=False)) * 100
    lengths = np.resize([1, 9], 80)
    late = np.concatenate([begin + np.arange(length) for begin, length in zip(begins, lengths, strict=True)])
    single, seen = expected_of(tmp_path, late)
    assert (single.burst, single.variation, single.cluster_size) == (1, 0.0, 1)
    assert (seen.burst, seen.longest, seen.cluster_size) == (5, 9.0, 1)
    assert seen.variation == pytest.approx(0.8), "lengths of 1 and 9: the standard deviation is 4"
    assert seen.rate == single.rate == late.size / (SECONDS * EACH)


def test_disturbances_of_one_cause_are_planned_together(tmp_path: Path) -> None:
    """Late activations 3 s apart, three of each cause, one cause in 30 s."""
    random = np.random.default_rng(4)
    begins = np.arange(10, SECONDS - 20, 30)
    begins = begins + random.integers(0, 8, begins.size)
    late = np.concatenate([(begins + more) * EACH + 500 for more in (0, 3, 6)])
    _, seen = expected_of(tmp_path, np.sort(late))
    assert (seen.burst, seen.cluster_size, seen.per_cause) == (1, 3, 3)
    assert 3e9 <= seen.cluster_gap_ns < 30e9


def test_the_period_is_that_of_the_worst_cpu(tmp_path: Path) -> None:
    """Series with different labels may have different periods."""
    good, bad = np.full(EACH // 2, 1_000, dtype=np.int64), np.full(EACH, 1_000, dtype=np.int64)
    bad[::100] = LATE_NS
    first = {"period_ns": 2_000_000, "labels": {"task": "a"}}
    cpus = Plan([[good] * 40, [bad] * 40], views=("wakeup_corrected",), first_series=first, interval_ns=10**9)
    plan = plan_from_run(Requirement(LIMIT_NS, 0.4), recording(tmp_path, cpus))
    assert plan.basis is not None and plan.basis.cpu == 1
    assert plan.period_ns == 1_000_000
