# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up machines that are measured every night beside a baseline, with a known growth, and when a gate notices it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fastenough.analysis.bootstrap import Edges, difference_of
from fastenough.analysis.clusters import size_at_all_scales
from fastenough.analysis.nights import (
    RunExceedances,
    error_of_baseline,
    evidence_required,
    log_capitals,
    log_evidence,
    nights_of,
    ratios_of,
)
from fastenough.analysis.resampling import Blocks

FloatArray = NDArray[np.float64]

WIDTH = 1000
"""Activations in an interval: one second at 1 kHz."""
INTERVALS = 120
"""Of a night."""
CONFIDENCE = 0.95
SPREAD = 0.5
"""Standard deviation of the logarithm of a latency; its median is 1."""
_TAIL = 0.25
"""Share of the values that are in the tail."""
DAY_NS = 86_400 * 10**9
_DRAWS = 4000
_CELLS = 240
"""To so many the intervals of a long baseline are gathered."""
_EDGES = np.geomspace(1e-3, 1e3, 1400)
"""Of buckets, 1 % wide."""


@dataclass(frozen=True)
class Machine:
    """``burst``: so many successive activations have one latency.  ``nightly``: standard deviation of the logarithm of
    a factor that each night has."""

    burst: int = 1
    nightly: float = 0.0


@dataclass(frozen=True)
class Growth:
    """A regression: all latencies become ``slower`` times as long, and latencies in the tail come ``more`` times as
    often."""

    slower: float = 1.0
    more: float = 1.0

    def share_above(self, latency: FloatArray) -> FloatArray:
        """Share of the values above a latency in the tail."""
        return np.asarray(self.more * special.ndtr(-np.log(latency / self.slower) / SPREAD))

    def latencies(self, uniform: FloatArray) -> FloatArray:
        """Latencies from shares above them, uniform in (0, 1)."""
        tail = 0.25
        share = np.where(
            uniform < tail * self.more, uniform / self.more, 1 - (1 - uniform) * (1 - tail) / (1 - tail * self.more)
        )
        return np.asarray(self.slower * np.exp(-SPREAD * special.ndtri(share)))


def level(machine: Machine, random: np.random.Generator, nights: int) -> FloatArray:
    """The factor of each night."""
    return np.asarray(np.exp(machine.nightly * random.standard_normal(nights)))


def values_of(machine: Machine, growth: Growth, random: np.random.Generator, nights: int = 1) -> FloatArray:
    """Latencies of some nights (intervals x activations)."""
    bursts = random.random((nights * INTERVALS, WIDTH // machine.burst))
    factors = np.repeat(level(machine, random, nights), INTERVALS)
    return np.repeat(growth.latencies(bursts), machine.burst, axis=1) * factors[:, None]


def edges_of(values: FloatArray, quantile: float) -> Edges | None:
    """The quantile in draws of blocks, as the program draws them; None with too few disturbances above it."""
    bucket = np.searchsorted(_EDGES, values)
    cell = np.repeat(np.arange(values.shape[0]) * _CELLS // max(_CELLS, values.shape[0]), values.shape[1])
    found = np.bincount(cell * _EDGES.size + bucket.reshape(-1), minlength=(cell[-1] + 1) * _EDGES.size)
    counts = found.reshape(-1, _EDGES.size)
    counts = counts[:, counts.any(axis=0)]
    blocks = Blocks((counts,), None, _DRAWS)
    ranks = blocks.ranks(quantile)
    if ranks is None:
        return None
    at = np.sort(values, axis=None)[np.ceil(ranks).astype(np.int64) - 1]
    return Edges(at, at, blocks.number - 1)


@dataclass(frozen=True)
class Baseline:
    """``limits``: bounds of the quantile.  ``size``: mean size of the clusters above it."""

    edges: Edges
    limits: tuple[float, float]
    size: float


def baseline_of(machine: Machine, random: np.random.Generator, nights: int, quantile: float) -> Baseline:
    values = values_of(machine, Growth(), random, nights)
    edges = edges_of(values, quantile)
    assert edges is not None
    above = (values > np.quantile(values, quantile)).sum(axis=1)
    return Baseline(edges, edges.interval(1 - 2 * error_of_baseline(CONFIDENCE)), size_at_all_scales(above))


def _runs(
    machine: Machine, growth: Growth, baseline: Baseline, random: np.random.Generator, nights: int
) -> Iterator[RunExceedances]:
    """What is counted of each night, without its values."""
    factors = level(machine, random, nights)
    for number, factor in enumerate(factors):
        possible, sure = growth.share_above(np.array(baseline.limits) / factor)
        possibly = machine.burst * random.binomial(WIDTH // machine.burst, possible, INTERVALS)
        surely = machine.burst * random.binomial(possibly.sum() // machine.burst, sure / possible)
        size = max(baseline.size, size_at_all_scales(possibly))
        yield RunExceedances(str(number), number * DAY_NS, INTERVALS * WIDTH, surely, int(possibly.sum()), size)


def first_night(found: NDArray[np.bool_]) -> float:
    """The first night of which it is true, infinite if there is none."""
    return float(found.argmax() + 1) if found.any() else np.inf


def by_evidence(
    machine: Machine, growth: Growth, baseline: Baseline, random: np.random.Generator, nights: int, *, quantile: float
) -> tuple[float, float]:
    """The first night with a FAIL, and with a PASS, by the evidence of all nights."""
    allowed = 1 - quantile
    ratios = ratios_of(nights_of(list(_runs(machine, growth, baseline, random, nights)), allowed), allowed)
    required = np.log(evidence_required(CONFIDENCE))
    failed, passed = (first_night(log_evidence(log_capitals(each)) >= required) for each in ratios)
    return failed, passed


def alone(
    machine: Machine, growth: Growth, baseline: Baseline, random: np.random.Generator, nights: int, *, quantile: float
) -> float:
    """The first night with a FAIL where each is judged alone; infinite if there is none."""
    for night in range(1, nights + 1):
        drawn = difference_of(baseline.edges, edges_of(values_of(machine, growth, random), quantile))
        if drawn is not None and drawn.chance_of_no_more() <= 1 - CONFIDENCE:
            return float(night)
    return np.inf
