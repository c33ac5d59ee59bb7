# SPDX-License-Identifier: GPL-2.0-or-later
"""The account of periods that module_trials requires of the module's tasks holds for exact counts only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.recording import Histogram, Recording
from tests.support.module_trials import assert_every_period_is_accounted_for, missed_by
from tests.support.recordings import Plan, recording

PERIOD_NS = 1_000_000
DELAYS_NS = np.array([5_000] * 500 + [1_200_000, 20_500_000])
MISSED = 1 + 20


def _of_a_module(folder: Path, missed: int, periods: int) -> Recording:
    made = recording(folder, Plan([[DELAYS_NS]], interval_ns=periods * PERIOD_NS))
    assert made.end is not None
    wakeup, corrected = made.end.series.values()
    series = {0: replace(wakeup, missed=missed), 1: replace(corrected, taken=corrected.taken + missed)}
    return replace(made, end=replace(made.end, series=series))


@pytest.mark.parametrize(
    ("missed", "periods", "holds"),
    [
        (MISSED, 0, True),
        (MISSED - 1, 0, False),
        (MISSED + 1, 0, False),
        (0, 0, False),
        (MISSED, -21, True),
        (MISSED, -23, False),
        (MISSED, 42, True),
        (MISSED, 43, False),
    ],
)
def test_only_an_exact_account_holds(tmp_path: Path, missed: int, periods: int, holds: bool) -> None:
    made = _of_a_module(tmp_path, missed, len(DELAYS_NS) + missed + periods)
    try:
        assert_every_period_is_accounted_for(made, PERIOD_NS)
    except AssertionError:
        assert not holds
    else:
        assert holds


def test_periods_missed_follow_from_the_delays() -> None:
    delays_ns = np.array([-50, 0, 999_000, 1_001_000, 20_500_000])
    least, most = missed_by(Histogram.from_values(delays_ns, 10), PERIOD_NS)
    assert least <= 1 + 20 <= most <= least + 2
