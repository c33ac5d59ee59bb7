# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals of quantiles where values depend on each other within one bucket, or for longer than a block."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import blocks
from fastenough.analysis.bucket_movement import movement_of
from fastenough.analysis.resampling import NoInterval
from fastenough.recording.histogram import Histogram
from tests.support.confidence import STATED, WIDTH, blocks_of_values, coverage, growth_errors
from tests.support.differing_runs import LEVELS, differences_contained, quantiles_contained
from tests.support.late_values import Values, gaussian_memory, levels, stalls, uniform

pytestmark = pytest.mark.check

_REPETITIONS = 60


def _memory(cells: int, lasting: float, random: np.random.Generator) -> blocks.FloatArray:
    """A first-order autoregression whose correlation falls to 1/e in so many cells."""
    return gaussian_memory(random, cells, 1, memory=max(1, round(lasting)))[:, 0]


@pytest.mark.parametrize("memory", [50, 1000])
def test_intervals_hold_the_truth_of_dependent_values_in_one_bucket(memory: int) -> None:
    """Counts do not show this dependence; sums do."""
    values = partial(gaussian_memory, memory=memory)
    found = coverage(values, np.random.default_rng(3), _REPETITIONS, 120, 0.5, one_bucket=True)
    wrong = found.given * (1 - min(found.quantile, found.difference))
    assert found.given > 0.3 and wrong <= stats.binom.ppf(0.9999, _REPETITIONS, STATED) / _REPETITIONS


@pytest.mark.parametrize("values", [partial(gaussian_memory, memory=10_000), partial(levels, lasting=20)])
@pytest.mark.parametrize("one_bucket", [False, True])
def test_dependence_that_outlasts_blocks_is_refused(values: Values, one_bucket: bool) -> None:
    found = coverage(values, np.random.default_rng(4), 40, 120, 0.5, one_bucket=one_bucket)
    assert found.given < 0.3


@pytest.mark.parametrize("one_bucket", [False, True])
def test_independent_values_have_an_interval(one_bucket: bool) -> None:
    found = coverage(uniform, np.random.default_rng(5), _REPETITIONS, 120, 0.99, one_bucket=one_bucket)
    assert found.given > 0.95


@pytest.mark.parametrize(
    ("values", "intervals", "quantile", "why"),
    [
        (uniform, 120, 0.99, None),
        (uniform, 20, 0.5, NoInterval.FEW_SAMPLES),
        (partial(stalls, length=500, share=0.02), 120, 0.99, NoInterval.FEW_SAMPLES),
        (partial(levels, lasting=30), 120, 0.5, NoInterval.DEPENDENT),
        (partial(levels, lasting=30), 120, 0.9, NoInterval.DEPENDENT),
    ],
)
def test_the_reason_of_a_missing_interval_is_stated(
    values: Values, intervals: int, quantile: float, why: NoInterval | None
) -> None:
    made_up = values(np.random.default_rng(12), intervals, WIDTH)
    edges = np.r_[np.linspace(0.0, 0.99, 100), 0.999, 1.0]
    of = blocks_of_values(made_up, np.searchsorted(edges, made_up).clip(1) - 1, edges.size - 1)
    assert of.no_interval(quantile) is why
    assert (of.ranks(quantile) is None) == (why is not None)


def test_dependence_is_tested_half_a_block_apart() -> None:
    """Of 300 cells a block has ten."""
    random = np.random.default_rng(8)
    shares = [
        np.mean([blocks.outlasts_blocks([_memory(300, lasting, random)]) for _ in range(200)]) for lasting in (1, 30)
    ]
    assert shares[0] <= 0.02 and shares[1] > 0.9


def test_runs_that_differ_are_not_dependent() -> None:
    random = np.random.default_rng(9)
    assert not blocks.outlasts_blocks([random.standard_normal(100) + 10 * number for number in range(3)])


def test_movement_within_a_bucket_is_about_each_runs_mean() -> None:
    """Values of two runs, 200 units apart in one bucket: independent, so that clusters have one value."""
    random = np.random.default_rng(10)
    runs = [random.normal(19_900 + 200 * number, 60, (120, 100)).astype(np.int64) for number in range(2)]
    counts = [np.full((120, 1), 100)] * 2
    values = Histogram.from_values(np.concatenate(runs).reshape(-1), 10)
    index = np.unique(Histogram.from_values(runs[0].reshape(-1), 10).folded(4).index)
    movement = movement_of([run.sum(axis=1).astype(float) for run in runs], counts, values, index)
    assert movement.size(0) == pytest.approx(1.0, abs=0.3)
    moving = runs[0] + np.repeat(60 * random.standard_normal(12), 10).astype(np.int64)[:, None]
    values = Histogram.from_values(moving.reshape(-1), 10)
    [moved] = movement_of([moving.sum(axis=1).astype(float)], counts[:1], values, index).moved
    assert moved.sum() == pytest.approx(0.0, abs=1e-3)
    assert (movement_of([moving.sum(axis=1).astype(float)], counts[:1], values, index).size(0) or 0.0) > 200


def test_a_bucket_that_others_hide_shows_nothing() -> None:
    """Nearly all variance is in a bucket of stalls."""
    random = np.random.default_rng(11)
    values = np.where(random.random((120, 100)) < 0.05, random.integers(2**24, 2**24 + 2**19, (120, 100)), 20_000)
    values = values + random.integers(0, 50, values.shape)
    total = Histogram.from_values(values.reshape(-1), 10)
    stalls = (values > 2**20).sum(axis=1)
    index = total.folded(4).index
    assert index.size == 2
    counts = np.stack([100 - stalls, stalls], axis=1)
    assert movement_of([values.sum(axis=1).astype(float)], [counts], total, index).size(0) is None


def test_growth_at_its_limit_is_decided_no_more_often_than_stated() -> None:
    found = growth_errors(partial(gaussian_memory, memory=1000), np.random.default_rng(6), _REPETITIONS, 120)
    assert max(found.passed, found.failed) <= stats.binom.ppf(0.9999, _REPETITIONS, STATED) / _REPETITIONS


@pytest.mark.parametrize("runs", [3, 5])
def test_an_interval_of_runs_that_differ_holds_within_these_runs_only(runs: int) -> None:
    """As it is labelled: where runs differ three times as much as chance alone makes them, most others lie outside."""
    (found,) = quantiles_contained(np.random.default_rng(6), _REPETITIONS, runs, 3.0, memory=0, quantiles=[0.5])
    assert found.given == _REPETITIONS
    assert found.these >= _REPETITIONS - stats.binom.ppf(0.9999, _REPETITIONS, STATED)
    assert found.another < 0.7 * _REPETITIONS


@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("runs", [3, 5])
def test_a_difference_over_few_boards_or_runs_has_the_stated_coverage(runs: int, spread: float) -> None:
    repetitions = 400
    held = differences_contained(np.random.default_rng(7), repetitions, runs, spread, LEVELS["normal"])
    assert min(held) >= repetitions - stats.binom.ppf(0.9999, repetitions, STATED)
