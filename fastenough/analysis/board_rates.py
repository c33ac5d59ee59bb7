# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards of one type: the share that keeps a requirement, and rates of disturbances that differ from board to board.

A board is the unit: boards are drawn at random from those of the type, and measured one by one.

Sources: Wilks 1941, Clopper and Pearson 1934 (share of units within a limit); Ville 1939 (validity at every look);
Potthoff and Whittinghill 1966, Dean 1992 (homogeneity of Poisson rates); Greenwood and Yule 1920 (gamma-distributed
rates).  docs/method.md derives what is computed, and prints its simulated error rates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special
from fastenough.analysis.sequential import least_between, log_required

FloatArray = NDArray[np.float64]
CountArray = NDArray[np.int64]

LEAVING_OUT_NONE = 0.5
"""Weight of a share of 0 in the mixture of shares."""
_HALVINGS = 30
_SEED = 20260101
_DRAWS = 9_999
_TRIALS = 500
"""Simulated fleets for the power of the test of homogeneity."""
POWER = 0.8
_VARIATIONS = np.r_[np.arange(0.1, 1.0, 0.1), np.arange(1.0, 5.1, 0.5)]
"""Coefficients of variation for which that power is computed."""

LEAST_FOR_PREDICTION = 3
"""Least number of boards for a statement on the variation between boards."""
MOST_VARIATION = 1.5
"""Greatest coefficient of variation between boards that the prediction takes into account."""
_VARIATION_GRID = np.linspace(0.05, MOST_VARIATION, 16)
_MEAN_GRID = np.logspace(-3.0, 3.0, 97)
"""Mean rates, in units of the rate of all boards together."""
_NEGLIGIBLE = 1e-9
"""Relative weight below which a mean rate and a variation are ignored."""


def log_evidence_of_share(without: int, boards: int, share: float) -> float:
    """Logarithm of the evidence that less than ``share`` of all boards lack the property that ``without`` of ``boards``
    lack.

    An e-process over boards: a mixture of a share of 0 and of a uniform distribution below ``share``.
    """
    null = without * math.log(share) + (boards - without) * math.log1p(-share)
    uniform = (
        special.betaln(without + 1, boards - without + 1)
        + math.log(max(special.betainc(without + 1, boards - without + 1, share), 1e-300))
        - math.log(share)
        - null
    )
    some = math.log1p(-LEAVING_OUT_NONE) + float(uniform)
    if without:
        return some
    return float(np.logaddexp(some, math.log(LEAVING_OUT_NONE) - null))


def share_upper(without: int, boards: int, confidence: float) -> float:
    """Upper bound of the share of all boards without the property that ``without`` of ``boards`` lack, valid at
    every look."""
    if without >= boards:
        return 1.0
    required = log_required(confidence)
    least = max(without / boards, 1e-9)
    return least_between(
        least, 1.0 - 1e-9, lambda share: log_evidence_of_share(without, boards, share) >= required, _HALVINGS
    )


def share_within(within: int, boards: int, confidence: float) -> float:
    """Lower bound of the share of all boards that keep a requirement, if ``within`` of ``boards`` are shown to keep it.

    Each board was judged at the same ``confidence``: a board that exceeds the requirement is shown to keep it with a
    probability of at most 1 - ``confidence``.  Undecided boards count as exceeding it.
    """
    return max(0.0, 1.0 - share_upper(boards - within, boards, confidence) / confidence)


def boards_needed(without: int, share: float, confidence: float, most: int = 10_000) -> int | None:
    """Number of boards at which :func:`share_within` reaches ``share`` if all but ``without`` are shown to keep the
    requirement; None if it is more than ``most``."""
    allowed, required = (1.0 - share) * confidence, log_required(confidence)
    fits = (
        boards
        for boards in range(without + 1, most + 1)
        if without < allowed * boards and log_evidence_of_share(without, boards, allowed) >= required
    )
    return next(fits, None)


def _scatter(counts: NDArray[Any], expected: FloatArray) -> FloatArray:
    """Sum of squared deviations: the score of extra variation that is proportional to the rate, at a given total."""
    return np.asarray(((counts - expected) ** 2).sum(axis=-1), dtype=np.float64)


def chance_of_homogeneity(counts: CountArray, time: FloatArray) -> float:
    """p-value of one rate of all boards: counts at least as scattered, at the same total and the same ``time``.

    Exact but for the number of draws, however small the counts are; seeded.
    """
    total = int(counts.sum())
    if counts.size < 2 or not total:
        return 1.0
    part = time / time.sum()
    expected = total * part
    simulated = np.random.default_rng(_SEED).multinomial(total, part, _DRAWS)
    as_scattered = np.count_nonzero(_scatter(simulated, expected) >= _scatter(counts, expected) * (1.0 - 1e-12))
    return float((1 + as_scattered) / (1 + _DRAWS))


def detectable_variation(total: int, time: FloatArray, level: float) -> float | None:
    """Least coefficient of variation between boards that the test of homogeneity finds with the probability
    :data:`POWER`, with so many disturbances in all; None if it finds none up to 5."""
    if time.size < 2 or not total:
        return None
    random = np.random.default_rng(_SEED)
    part = time / time.sum()
    expected = total * part
    critical = np.quantile(_scatter(random.multinomial(total, part, _DRAWS), expected), 1.0 - level)
    for variation in _VARIATIONS.tolist():
        rates = random.gamma(variation**-2, size=(_TRIALS, time.size)) * part + 1e-300
        simulated = random.multinomial(total, rates / rates.sum(axis=1, keepdims=True))
        if np.mean(_scatter(simulated, expected) > critical) >= POWER:
            return float(variation)
    return None


def rate_of_new_board(counts: CountArray, time: FloatArray, confidence: float) -> float | None:
    """Upper bound of the rate of one more board of the type, with the probability ``confidence``.

    Rates are gamma-distributed over boards, with an unknown mean and an unknown variation, over both of which the
    probability is averaged: the fewer boards, the greater is the bound.  Its unit is 1 over the unit of ``time``.  None
    with fewer than three boards.
    """
    if counts.size < LEAST_FOR_PREDICTION:
        return None
    means = (float(counts.sum()) + 0.5) / float(time.sum()) * _MEAN_GRID
    weights = _posterior(counts, time, means)
    likely = weights > _NEGLIGIBLE * weights.max()
    weight = weights[likely] / weights[likely].sum()
    mean, shape = (
        np.broadcast_to(values, weights.shape)[likely] for values in (means[:, np.newaxis], _VARIATION_GRID**-2.0)
    )

    def reached(logarithm: float) -> bool:
        return float(weight @ special.gammaincc(shape, shape * math.exp(logarithm) / mean)) <= 1.0 - confidence

    return math.exp(least_between(math.log(means[0]), math.log(100.0 * means[-1]), reached, _HALVINGS))


def _posterior(counts: CountArray, time: FloatArray, mean: FloatArray) -> FloatArray:
    """Weights of mean rates (rows) and of variations (columns): their likelihood, both uniform before."""
    shape = _VARIATION_GRID**-2.0
    expected = mean[:, np.newaxis, np.newaxis] * time
    least = shape[:, np.newaxis]
    log_likelihood = (
        special.gammaln(counts + least)
        - special.gammaln(least)
        - least * np.log1p(expected / least)
        + counts * (np.log(expected) - np.log(least + expected))
    ).sum(axis=2)
    logarithm = log_likelihood + np.log(mean)[:, np.newaxis]  # the grid is logarithmic
    weight = np.exp(logarithm - logarithm.max())
    return np.asarray(weight / weight.sum(), dtype=np.float64)
