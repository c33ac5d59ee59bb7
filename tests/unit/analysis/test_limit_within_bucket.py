# SPDX-License-Identifier: GPL-2.0-or-later
"""A limit within a bucket: what is not known of the values there decides nothing, and exact counts are used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis import judge, measure, merge_samples
from fastenough.analysis.compare import compare
from fastenough.analysis.disturbances import gathered_counts
from fastenough.analysis.supported import all_supported
from fastenough.model import Requirement, Verdict
from tests.support.recordings import Plan, recording

PER_INTERVAL, INTERVALS, BURST = 2000, 60, 60
ALLOWED = 1e-3
LIMIT_NS, BURST_NS = 100_300, 101_000
Values = list[list[NDArray[np.int64]]]


def _split(values: NDArray[np.int64]) -> Values:
    return [list(values.reshape(INTERVALS, PER_INTERVAL))]


def _bursts(seed: int, times_allowed: float) -> Values:
    """Bursts at random times, in values that share a bucket of the intervals with the limit and with the bursts."""
    random = np.random.default_rng(seed)
    values = random.integers(100_000, 100_200, PER_INTERVAL * INTERVALS)
    mean = values.size * ALLOWED * times_allowed / BURST
    for begin in random.integers(0, values.size - BURST, random.poisson(mean)):
        values[begin : begin + BURST] = BURST_NS
    return _split(values)


def _verdict(folder: Path, values: Values, rise_k: int | None = None) -> Verdict:
    """``rise_k``: the order of the values is recorded, at other limits than this one."""
    run = recording(folder, Plan(values, views=("response",), rise_k=rise_k, limit_ns=1_000_000))
    return judge([run], Requirement(LIMIT_NS, ALLOWED)).verdict


@pytest.mark.check
@pytest.mark.parametrize("times_allowed", [0.5, 1.0, 2.0])
def test_bursts_that_share_their_bucket_with_all_values_decide_nothing(tmp_path: Path, times_allowed: float) -> None:
    """Where no order of the values is known, all of a burst may lie in one interval."""
    found = Counter(_verdict(tmp_path, _bursts(seed, times_allowed)) for seed in range(12))
    wrong = Verdict.PASS if times_allowed >= 1.0 else Verdict.FAIL
    assert found[wrong] == 0
    assert found[Verdict.INCONCLUSIVE] > 0


def test_single_values_of_one_interval_are_not_taken_as_spread(tmp_path: Path) -> None:
    """The order is known here, but not in which interval the values lie."""
    values = np.random.default_rng(1).integers(100_000, 100_200, PER_INTERVAL * INTERVALS)
    values[10 * PER_INTERVAL : 10 * PER_INTERVAL + 2 * BURST : 2] = BURST_NS
    assert _verdict(tmp_path, _split(values), rise_k=3) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_gathered_in_as_few_intervals_as_possible(seed: int) -> None:
    random = np.random.default_rng(seed)
    least = random.integers(0, 5, 30)
    most = least + random.integers(0, 9, 30)
    exceeded = int(random.integers(least.sum(), most.sum() + 1))
    gathered = gathered_counts(exceeded, most, least)
    assert gathered.sum() == exceeded
    assert ((least <= gathered) & (gathered <= most)).all()
    between = (least < gathered) & (gathered < most)
    assert between.sum() <= 1
    filled, empty = (most - least)[(gathered > least) & ~between], (most - least)[gathered == least]
    assert not filled.size or not empty.size or filled.min() >= empty.max()
    assert (gathered_counts(int(most.sum()), most, least) == most).all()


@pytest.mark.parametrize("limit_ns", [100_110, 100_150, 100_300])
def test_one_greater_value_is_no_significant_difference(tmp_path: Path, limit_ns: int) -> None:
    """It moves the edge of the bucket that holds all others, which then possibly exceed the limit."""
    values = np.random.default_rng(1).integers(100_100, 100_110, PER_INTERVAL * INTERVALS)
    greater = values.copy()
    greater[1234] = 200_000
    runs = [
        recording(tmp_path, Plan(_split(each), run_id=name)) for name, each in (("base", values), ("other", greater))
    ]
    for found in compare(*runs, limits_ns=[limit_ns]):
        (rate,) = found.rates
        assert (rate.first[0], rate.second[0]) == (0, 1)
        assert rate.lower < 0 < rate.upper
        assert not rate.significant and rate.p_value > 0.05


def test_a_difference_that_the_buckets_show_is_significant(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    values = random.integers(50_000, 60_000, PER_INTERVAL * INTERVALS)
    greater = values.copy()
    greater[random.choice(values.size, 600, replace=False)] = 200_000
    runs = [
        recording(tmp_path, Plan(_split(each), run_id=name)) for name, each in (("base", values), ("other", greater))
    ]
    for found in compare(*runs, limits_ns=[100_000]):
        (rate,) = found.rates
        assert (rate.first[0], rate.second[0]) == (0, 600)
        assert rate.lower > 0 and rate.p_value < 0.001


def test_counts_at_the_limit_are_those_of_the_recording(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(100_100, 100_110, PER_INTERVAL * INTERVALS)
    values[7 :: 3 * PER_INTERVAL] = 100_115
    values[30 * PER_INTERVAL + 5] = 200_000
    exceeded = int((values > 100_110).sum())
    plan = Plan(_split(values), rise_k=3, limit_ns=100_110, views=("wakeup_corrected",))
    run = recording(tmp_path, plan)
    (judgment,) = judge([run], Requirement(100_110, ALLOWED)).judgments
    assert judgment.exceeded == judgment.evidence[0].exceeded == exceeded
    merged = merge_samples([(run, run.series[0])])
    assert merged.exceeded(100_110) == (exceeded, exceeded)
    surely, possibly = merged.exceeded(100_112)
    assert surely < exceeded < possibly


@pytest.mark.parametrize(("tick_ps", "ticks", "limit_ns"), [(2240, 575, 1288), (8002, 500, 4001)])
@pytest.mark.parametrize("miss_rate", [0.0, ALLOWED])
def test_a_maximum_of_whole_ticks_that_is_the_limit_keeps_it(
    tmp_path: Path, tick_ps: int, ticks: int, limit_ns: int, miss_rate: float
) -> None:
    """The product of ticks and their length is rounded, to slightly above the limit."""
    values = np.random.default_rng(1).integers(300, ticks, PER_INTERVAL * INTERVALS)
    values[:: 5 * PER_INTERVAL] = ticks
    series = {"unit": "ticks", "tick_ps": tick_ps}
    run = recording(tmp_path, Plan(_split(values), views=("response",), series=series))
    assessment = judge([run], Requirement(limit_ns, miss_rate))
    assert assessment.judgments[0].exceeded == 0
    assert assessment.verdict is not Verdict.FAIL


def test_missed_periods_leave_nothing_to_say_about_values_above_the_maximum(tmp_path: Path) -> None:
    values = _split(np.random.default_rng(1).integers(1_000, 3_000, PER_INTERVAL * INTERVALS))
    run = recording(tmp_path, Plan(values, missed=500, views=("wakeup",)))
    merged = merge_samples([(run, run.series[0])])
    assert merged.missed_uncharged >= 500
    assert measure(merged).bound.n == 0
    assert all(each.miss_rate > 0 for each in all_supported([merged], 0.95))
    complete = recording(tmp_path, Plan(values, run_id="complete", views=("wakeup",)))
    whole = merge_samples([(complete, complete.series[0])])
    assert measure(whole).bound.n == whole.judged
    assert any(each.miss_rate == 0 for each in all_supported([whole], 0.95))


def test_lost_values_may_exceed_a_compared_limit(tmp_path: Path) -> None:
    """600 of 30,000 values exceed the limit, against none of 27,000: among the 3,000 lost ones there may be as many."""
    above = [np.full(1000, 20_000) for _ in range(30)]
    for row in above:
        row[::50] = 200_000
    below = [np.full(900, 20_000) for _ in range(30)]
    for lost, differs in ((0, True), (3000, False)):
        runs = [
            recording(tmp_path, Plan([rows], run_id=name, lost=count, views=("wakeup",)))
            for name, rows, count in (("first", above, 0), ("second", below, lost))
        ]
        [rate] = [rate for found in compare(*runs, limits_ns=[100_000]) for rate in found.rates]
        assert rate.second == (0, 27_000 + lost)
        assert (rate.upper < 0, rate.p_value < 0.05) == (differs, differs)
