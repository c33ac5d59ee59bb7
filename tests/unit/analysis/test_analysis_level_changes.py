# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps and trends that were put into series are announced once, and chance is no change more often than stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis.level_changes import LevelChange, level_changes
from fastenough.analysis.records import chance_of_excess, records_expected
from fastenough.analysis.surveillance import first_alarm, sequential_ranks
from fastenough.analysis.trend import line_through, mann_kendall
from tests.support.cycle_maxima import CASES, CYCLES_A_YEAR, MEAN_BETWEEN, independent


def changes(name: str, seed: int) -> list[LevelChange]:
    return level_changes(CASES[name](np.random.default_rng(seed)), MEAN_BETWEEN)


def test_sequential_ranks_count_what_came_before() -> None:
    assert sequential_ranks(np.array([5.0, 7.0, 1.0, 6.0])).tolist() == [1, 2, 1, 3]
    tied = sequential_ranks(np.full(4000, 3.0))
    shares = tied[1000:] / np.arange(1001, 4001)
    assert stats.kstest(shares, "uniform").pvalue > 0.01, "equal values have all ranks alike"


@pytest.mark.check
def test_false_alarms_of_independent_values_are_no_more_than_stated() -> None:
    """A low threshold, so that there are alarms to count: 100 series of a year, at most 3.65 each on average."""
    between, alarms = 200.0, []
    for seed in range(100):
        values, start = independent(np.random.default_rng(seed)), 0
        alarms.append(0)
        while (alarm := first_alarm(values[start:], between)) is not None:
            alarms[-1] += 1
            start += alarm.place + 1
    mean = float(np.mean(alarms))
    assert 0.05 < mean <= CYCLES_A_YEAR / between + 3 * float(np.std(alarms)) / 10


@pytest.mark.parametrize("name", ["independent", "day, night and week", "autocorrelation 0.5"])
def test_where_nothing_changed_nothing_is_announced(name: str) -> None:
    """200 boards of a farm have one such change in a year: 30 have none at this seed."""
    assert [changes(name, seed) for seed in range(30)] == [[]] * 30


@pytest.mark.slow
@pytest.mark.parametrize(("name", "within", "ratio"), [("step of 30 %", 16, 1.3), ("step of 100 %", 10, 2.0)])
def test_a_step_is_announced_once_within_so_many_cycles(name: str, within: int, ratio: float) -> None:
    for seed in range(10):
        (found,) = changes(name, seed)
        assert not found.gradual and found.withdrawn is None
        assert abs(found.first - 300) <= 3 and 300 <= found.noted < 300 + within
        assert found.after / found.before == pytest.approx(ratio, rel=0.05)


@pytest.mark.slow
def test_a_drift_of_a_year_is_one_trend() -> None:
    for seed in range(12):
        (found,) = changes("drift of 30 %", seed)
        assert found.gradual and found.rises and found.withdrawn is None
        assert found.after / found.before == pytest.approx(1.27, abs=0.1)


@pytest.mark.slow
def test_two_steps_in_one_direction_are_no_trend() -> None:
    """The fit that moves an announcement divides it: at the second alarm, one change may still explain both."""
    for seed in range(100, 112):
        first, second = changes("two steps of 20 %", seed)
        assert first.rises and second.rises and not first.gradual and not second.gradual
        assert abs(first.first - 200) <= 5 and abs(second.first - 400) <= 5
        assert first.noted < 230 and 400 <= second.noted < 520


@pytest.mark.check
def test_a_rise_and_a_return_are_two_steps() -> None:
    for seed in range(5):
        rise, fall = changes("step of 30 %, taken back after 200", seed)
        assert rise.rises and not fall.rises and not rise.gradual and not fall.gradual
        assert abs(rise.first - 300) <= 3 and abs(fall.first - 500) <= 3


@pytest.mark.check
def test_what_passes_is_withdrawn() -> None:
    for seed in range(5):
        (found,) = changes("ten cycles 50 % higher", seed)
        assert found.withdrawn is not None and found.noted < found.withdrawn


@pytest.mark.check
def test_mann_kendall_sees_a_trend_and_allows_for_dependence() -> None:
    random = np.random.default_rng(1)
    rising = random.normal(size=200) + np.arange(200) / 100
    assert mann_kendall(rising).rises and mann_kendall(rising).chance < 1e-6
    assert not mann_kendall(-rising).rises
    walks = [CASES["autocorrelation 0.8"](np.random.default_rng(seed))[:200] for seed in range(100)]
    refused = [mann_kendall(values).chance < 0.05 for values in walks]
    uncorrected = [stats.kendalltau(np.arange(200), values).pvalue < 0.05 for values in walks]
    assert sum(refused) < 0.5 * sum(uncorrected)


def test_a_line_goes_from_level_to_level() -> None:
    assert line_through(np.linspace(10.0, 40.0, 700)) == pytest.approx((10.0, 40.0))


def test_a_record_comes_as_often_as_chance_lets_it() -> None:
    assert records_expected(60, CYCLES_A_YEAR) == pytest.approx(11.97, abs=0.02)


def test_how_far_a_record_lies_above_the_rest_is_judged_by_their_spacings() -> None:
    """Of a Pareto tail the chance is uniform; of a lighter one it is overstated."""
    random = np.random.default_rng(3)
    heavy = [chance_of_excess(row.max(), np.sort(row)[:-1]) for row in random.pareto(3.0, (2000, 61)) + 1]
    light = [chance_of_excess(row.max(), np.sort(row)[:-1]) for row in random.gumbel(60_000, 5_000, (2000, 61))]
    assert stats.kstest(heavy, "uniform").pvalue > 0.01
    assert np.mean(np.array(light) < 0.01) <= 0.013
    assert chance_of_excess(5e6, np.full(60, 60_000.0) + np.arange(60)) < 1e-9
    assert chance_of_excess(70_000.0, np.array([60_000.0])) == 1.0
