# SPDX-License-Identifier: GPL-2.0-or-later
"""Rates of what comes in clusters, blocks and the extremal index against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fastenough.analysis import blocks, clusters, dependence, extremal, sequential
from tests.support.late_values import remembered


def test_the_rate_is_as_the_method_says_it() -> None:
    """With clusters all of one size, that size times the bound of independent events."""
    n, x, size, confidence = 120_000, 400, 20.0, 0.95
    e = size * (1 + np.sqrt(size / x))
    upper = e * sequential.events_upper(x / e, confidence) / n
    assert clusters.rate_upper(n, x, size, 1, confidence) == pytest.approx(upper)
    for allowed in (0.999 * upper, 1.001 * upper):
        within = clusters.rate_is_within(n, x, size, 1, allowed=allowed, confidence=confidence)
        assert within is (allowed > upper), "sentence and verdict agree"
    assert clusters.chance_of_more(n, 0, 1.0, 0.01) == 1.0


def test_bounds_of_independent_exceedances_cost_little_more_than_the_exact_binomial_one() -> None:
    """They hold at every look; the exact one at a single one."""
    exact = stats.beta.ppf(0.95, 101, 99_900)
    assert 1.0 < clusters.rate_upper(100_000, 100, 1.0, 1, 0.95) / exact < 1.2


def test_the_size_of_clusters_is_found_from_counts_over_time() -> None:
    random = np.random.default_rng(3)
    assert clusters.size_over_time(random.poisson(5, 20_000)) == pytest.approx(1, abs=0.05)
    assert clusters.size_over_time(20 * random.poisson(0.3, 20_000)) == pytest.approx(20, rel=0.05)
    assert clusters.size_over_time(np.full(100, 500)) == 1.0, "every second value late, always, is no cluster"
    both = np.stack([random.poisson(5, 100), 20 * random.poisson(5, 100)])
    assert clusters.size_over_time(both).tolist() == [clusters.size_over_time(row) for row in both]


def test_runs_as_spread_as_independent_ones_are_the_clusters() -> None:
    """Then their size is known, and nothing is set aside for its error."""
    random = np.random.default_rng(8)
    singles = random.poisson(0.3, 240)
    x = int(singles.sum())
    assert clusters.cluster_size(x, x, x, singles, independent=True) == (1.0, 0.0)
    assert clusters.cluster_size(5 * x, x, 25 * x, 5 * singles, independent=True) == (5.0, 0.0)
    assert clusters.cluster_size(x, x, x, singles, independent=False).error == 1.0
    clumped = clusters.cluster_size(5 * x, 5 * x, 5 * x, 5 * singles, independent=True)
    assert clumped.error == 1.0 and clumped.mean == pytest.approx(5, rel=0.3)
    busy = np.repeat(random.poisson(0.3, 30), 8)
    assert clusters.cluster_size(int(busy.sum()), int(busy.sum()), busy.sum(), busy, independent=True).mean > 2.0
    lengths = random.geometric(0.1, x)
    varied = clusters.cluster_size(int(lengths.sum()), x, float(lengths @ lengths), 10 * singles, independent=True)
    assert 0.7 < varied.error <= 1.0


def test_one_more_of_the_longest_is_taken_as_seen() -> None:
    """300 runs of 1 and two of 60: at least the gamma interval of Fay and Feuer, of runs of which each is Poisson."""
    weights, seen = np.array([1.0, 60.0]), np.array([300, 2])
    total, variance = weights @ seen + 60.0, weights**2 @ seen + 60.0**2
    upper = variance / (2 * total) * stats.chi2.ppf(0.95, 2 * total**2 / variance)
    x = float(weights @ seen)
    size = float(weights**2 @ seen) / x
    found = 100_000 * clusters.rate_upper(100_000, x, size, 60, 0.95)
    assert upper < found < 2 * upper
    assert found > 1.1 * 100_000 * clusters.rate_upper(100_000, x, size, 1, 0.95)


def test_where_most_exceed_the_rest_is_counted() -> None:
    assert clusters.chance_where_most_exceed(30_000, 30_000, 30, 0.6) < 0.01
    assert clusters.chance_where_most_exceed(30_000, 30_000, 2, 0.6) > 0.05, "two intervals are not enough"
    assert clusters.chance_where_most_exceed(30_000, 20_000, 30, 0.6) > 0.05


def test_holm_rejects_step_by_step() -> None:
    assert clusters.holm([0.01, 0.04, 0.03], 0.05) == [True, False, False]
    assert clusters.holm([0.01, 0.04, 0.02], 0.05) == [True, True, True]
    assert clusters.holm([0.06], 0.05) == [False] and clusters.holm([], 0.05) == []


def test_a_drift_is_seen_and_bursts_are_none() -> None:
    random = np.random.default_rng(5)
    steady = [blocks.is_stationary([50 * (random.random(300) < 0.1)]) for _ in range(300)]
    assert np.mean(steady) >= 1 - stats.binom.ppf(0.9999, 300, 0.01) / 300
    rising = [blocks.is_stationary([random.poisson(np.linspace(0, 8, 300))]) for _ in range(20)]
    assert not any(rising)
    assert blocks.is_stationary([np.full(100, 7)]) and blocks.is_stationary([np.array([1, 9])])


@pytest.mark.check
def test_drifts_are_seen_at_the_same_level_with_any_number_of_runs() -> None:
    random = np.random.default_rng(7)
    sound = [blocks.is_stationary([5 * (random.random(60) < 0.3) for _ in range(30)]) for _ in range(60)]
    assert np.mean(sound) >= 1 - stats.binom.ppf(0.9999, 60, 0.01) / 60
    shared = [random.poisson(np.linspace(2, 4, 60)) for _ in range(30)]
    assert all(map(blocks.is_stationary, ([run] for run in shared[:3]))), "not seen in any of three runs"
    assert not blocks.is_stationary(shared)
    of_one = [random.poisson(3, 60) for _ in range(29)] + [random.poisson(np.linspace(0, 8, 60))]
    assert not blocks.is_stationary(of_one)


def test_runs_that_differ_more_than_their_blocks_are_told_apart() -> None:
    random = np.random.default_rng(6)
    alike = [blocks.runs_agree([random.poisson(3, 60) for _ in range(3)]) for _ in range(300)]
    assert np.mean(alike) >= 1 - stats.binom.ppf(0.9999, 300, 0.01) / 300
    assert not blocks.runs_agree([random.poisson(3, 60), random.poisson(3, 60), random.poisson(9, 60)])
    assert blocks.runs_agree([random.poisson(3, 60)])
    assert blocks.runs_agree([random.poisson(3, 60), random.poisson(9, 3)]), "too short to tell"
    several = [random.poisson(3, 60), random.poisson(9, 60), random.poisson(3, 4)]
    assert not blocks.runs_agree(several), "a short run beside them hides nothing"


def test_cells_are_of_equal_length() -> None:
    assert blocks.cells(np.arange(7), 3).tolist() == [1, 5, 9]
    assert blocks.cells(np.arange(7), 30).tolist() == list(range(7))


def test_draws_of_blocks_never_reach_from_one_run_into_another_and_need_thirty() -> None:
    assert blocks.resample([np.ones((29, 2), dtype=np.int64)]) is None
    assert blocks.resample([np.ones((29, 2), dtype=np.int64)] * 2) is not None
    runs = [np.tile([10, 0], (60, 1)), np.tile([0, 10], (60, 1))]
    draws = blocks.resample(runs)
    assert draws is not None and draws.shape[1] == 2
    assert np.all(draws % 40 == 0), "blocks of four intervals, each of one run"
    assert np.ptp(draws.sum(axis=1)) == 0


def test_ranks_of_a_quantile_are_those_of_all_samples() -> None:
    total = np.array([50, 40, 10])
    up_to = np.cumsum([[50.0, 40, 10], [5, 4, 1], [80, 10, 10]], axis=1)
    assert blocks.ranks_of_quantile(up_to, total, 0.7, lambda _: 0.0) == pytest.approx([70, 70, 43.75])
    one_by_one = blocks.ranks_of_quantile(np.tile(up_to, (500, 1)), total, 0.7, lambda _: 1.0).reshape(-1, 3)
    assert one_by_one.mean(axis=0) == pytest.approx([70, 70, 43.75], abs=0.5), "of the chance within a bucket"
    assert one_by_one.std(axis=0) == pytest.approx(np.sqrt([10, 10, 50 * 0.875 * 0.125]), rel=0.1)


def test_a_quantile_spreads_wider_where_neighbouring_blocks_are_alike() -> None:
    """Nothing that hangs together: no wider, or little.  Each block like its neighbours: nearly by sqrt(3)."""
    random = np.random.default_rng(3)
    apart = random.binomial(1000, 0.5, 240).astype(np.float64)
    below = np.repeat(random.binomial(1000, 0.5, 10), 24).astype(np.float64)
    for values, least, most in ((apart, 1.0, 1.3), (below, 1.5, 1.75)):
        assert least <= blocks.wider_by([values - 500.0]) <= most
    assert blocks.wider_by([np.zeros(240)]) == 1.0
    assert blocks.wider_by([np.zeros(29)]) == 1.0


@pytest.mark.parametrize("place", [0, 15, 16, 18])
def test_one_cluster_has_its_size_wherever_it_lies(place: int) -> None:
    """Also behind the last whole pair or four of intervals."""
    counts = np.zeros(19, dtype=np.int64)
    counts[place] = 3
    assert clusters.cluster_size(3, 1, 9.0, counts, counts, independent=True) == (3.0, 0.0)


def _moving_maxima(random: np.random.Generator, n: int, window: int) -> NDArray[np.float64]:
    """Of independent values: the extremal index is 1 / window."""
    noise = random.random(n + window - 1)
    maxima: NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(noise, window).max(axis=1)
    return maxima


@pytest.mark.parametrize("window", [1, 2, 5, 20])
def test_both_estimators_find_a_known_extremal_index(window: int) -> None:
    values = _moving_maxima(np.random.default_rng(window), 2_000_000, window)
    late = np.flatnonzero(values > np.quantile(values, 0.9985))
    times = np.diff(late)
    runs = 1 + int(np.count_nonzero(times > 1))
    assert extremal.intervals_estimator(times) == pytest.approx(1 / window, rel=0.15)
    assert extremal.runs_estimator(late.size, runs) == pytest.approx(1 / window, rel=0.15)


def test_times_between_exceedances_from_counts_give_about_the_same_index() -> None:
    values = _moving_maxima(np.random.default_rng(1), 400_000, 5)
    late = values > np.quantile(values, 0.998)
    counts = late.reshape(-1, 1000).sum(axis=1)
    runs = np.count_nonzero(np.diff(late.astype(int)) == 1)
    times = extremal.times_between(counts, np.full(400, 1000), runs / late.sum())
    assert times.size == late.sum() - 1
    assert extremal.intervals_estimator(times) == pytest.approx(0.2, rel=0.25)


@pytest.mark.parametrize("length", [1, 20, 500])
def test_bursts_are_no_long_memory(length: int) -> None:
    counts = np.random.default_rng(1).poisson(5.0, (200, 300)) * length
    assert np.mean([dependence.has_long_memory(each, int(each.sum()) // (30 * length)) for each in counts]) < 0.01


def test_a_long_memory_shows_in_the_order_of_frequent_exceedances() -> None:
    """And not in the same counts in another order."""
    random = np.random.default_rng(2)
    counts = random.poisson(6.0 * remembered(random, 100, 300, hurst=0.9))
    shares = [
        np.mean([dependence.has_long_memory(each, 60) for each in rows])
        for rows in (counts, random.permuted(counts, axis=1))
    ]
    assert shares[0] > 0.96 and shares[1] < 0.35
    assert not dependence.has_long_memory(counts[0][:80], 60), "too few intervals to tell"
