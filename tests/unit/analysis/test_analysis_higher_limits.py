# SPDX-License-Identifier: GPL-2.0-or-later
"""A PASS at a limit needs the same evidence at each higher limit, so that no limit can be chosen to suit the data."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis import judge, merge_samples
from fastenough.analysis.cpu_evidence import CpuEvidence, evidence_per_cpu
from fastenough.analysis.disturbances import limits_above
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from tests.support.recordings import Plan, recording

LOW, HIGH = 50_000, 80_000
"""Limits."""
SHORT, LONG = 60_000, 90_000
"""Latencies: above the lower limit, and above both."""
SECONDS, EACH = 600, 100
"""Intervals, and activations of each."""


def _recorded(folder: Path, short: NDArray[np.int64], long: NDArray[np.int64], rise_k: int | None = 3) -> Recording:
    """One late activation in each of these seconds."""
    rows = np.full((SECONDS, EACH), 1_000, dtype=np.int64)
    rows[short, 50] = SHORT
    rows[long, 20] = LONG
    return recording(
        folder, Plan([list(rows)], views=("wakeup_corrected",), rise_k=rise_k, limit_ns=LOW, period_ns=10_000_000)
    )


def _shown(one: Recording, requirement: Requirement) -> CpuEvidence:
    [shown] = evidence_per_cpu(merge_samples([(one, one.series[0])]), requirement, 0.95)
    return shown


@pytest.mark.check
def test_disturbances_that_a_lower_limit_merges_are_counted_at_the_higher_one(tmp_path: Path) -> None:
    """Six independent long latencies; short ones fill the seconds between two that are close together."""
    long = np.sort(np.random.default_rng(34).choice(SECONDS, 6, replace=False))
    fill = [second for a, b in itertools.pairwise(long) if b - a <= 6 for second in range(a + 1, b)]
    one = _recorded(tmp_path, np.array(fill), long)
    requirement = Requirement(LOW, 18 * 3 / (SECONDS * EACH), longest_burst=3)
    low, high = _shown(one, requirement), _shown(one, replace(requirement, limit_ns=HIGH))
    assert (low.disturbances.events, high.disturbances.events) == (5, 6)
    assert low.within_at_limit and not high.within_at_limit, "more is above the lower limit, in fewer clusters"
    assert not low.within and low.higher is not None and low.higher.disturbances.events == 6
    assert judge([one], requirement).verdict is Verdict.INCONCLUSIVE


@pytest.mark.check
def test_a_regime_of_long_latencies_is_not_hidden_by_short_ones(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    short = np.flatnonzero(random.random(SECONDS) < 0.4)
    spread, late = (np.sort(random.choice(where, 14, replace=False)) for where in (SECONDS, np.arange(480, SECONDS)))
    requirement = Requirement(LOW, 0.02)
    steady = _recorded(tmp_path, short, spread)
    assert _shown(steady, requirement).within
    assert judge([steady], requirement).verdict is Verdict.PASS
    changing = _recorded(tmp_path, short, late)
    shown = _shown(changing, requirement)
    assert shown.steady and shown.within_at_limit and shown.higher is not None and not shown.higher.steady
    assert not shown.within and judge([changing], requirement).verdict is Verdict.INCONCLUSIVE


@pytest.mark.check
def test_only_limits_at_which_the_order_is_as_well_known_are_judged(tmp_path: Path) -> None:
    """Runs are counted at the edges of rises; without any order each exceedance is a disturbance at every limit."""
    some = np.arange(0, SECONDS, 20)

    def limits(one: Recording, limit_ns: int) -> list[int]:
        return limits_above(merge_samples([(one, one.series[0])]), limit_ns)

    risen, plain = (_recorded(tmp_path, some, some + 1, rise_k) for rise_k in (3, None))
    assert all(HIGH > limit > LOW for limit in limits(risen, LOW)) and limits(risen, LOW)
    assert limits(risen, LONG) == [] and limits(plain, LOW)[-1] == 81_919
    rises = {key: value for key, value in risen.aggregate.rises.items() if key < 0}
    assert limits(replace(risen, aggregate=replace(risen.aggregate, rises=rises)), LOW) == []
