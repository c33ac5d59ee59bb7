# SPDX-License-Identifier: GPL-2.0-or-later
"""What the samples of one CPU under one load show about a requirement, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from fastenough.analysis import bounds, clusters
from fastenough.analysis.blocks import is_stationary, runs_agree
from fastenough.analysis.disturbances import Disturbances, disturbances
from fastenough.analysis.merged import Merged, merge_samples
from fastenough.model import Requirement

UNSEEN_WITHOUT_PERIOD = 1e-4
"""Acts that follow no period may be few in much time: for never, so many are needed that this rate would be seen."""


@dataclass(frozen=True, eq=False)
class Shown:
    """``confidence``: of every bound here, above the one required where this is a further look at the same question.

    ``upper``: greatest rate of exceedances per activation; None where fewer than ten disturbances were seen, from which
    none follows.  ``steady``: the system did not change while it was measured.  ``merged``: runs were merged; where
    False though there are several, they differ too much, and each stands by itself.
    """

    values: Merged
    seen: Disturbances
    requirement: Requirement
    confidence: float
    upper: float | None
    p_value: float
    steady: bool
    merged: bool = True

    @property
    def every_ns(self) -> float:
        """No more than one disturbance comes in so long."""
        return self.seen.time_ns / float(clusters.poisson_upper(self.seen.most, self.confidence))

    @property
    def never(self) -> bool:
        """Whether nothing at all is allowed above the limit."""
        return self.requirement.miss_rate == 0

    @property
    def dense(self) -> bool:
        """Whether activations were so many that time says something: of those without a period 1 in 10,000 would have
        been seen."""
        if self.values.period_ns is not None:
            return self.seen.n > 0
        return self.seen.n >= bounds.samples_for_unseen_rate(UNSEEN_WITHOUT_PERIOD, self.confidence)

    @property
    def refuted(self) -> bool:
        """Whether a disturbance is longer, or may be, than the longest that was declared."""
        declared = self.requirement.longest_burst
        return declared is not None and self.seen.longest > declared

    @property
    def needed(self) -> int | None:
        """Activations that show the rate with the longest burst declared; None without one."""
        declared, allowed = self.requirement.longest_burst, self.requirement.miss_rate
        if declared is None or not allowed:
            return None
        return clusters.samples_for_longest(declared, self.seen.most, allowed, self.confidence)

    @property
    def within(self) -> bool:
        """Whether the requirement is shown to be kept."""
        if self.never:
            return self.seen.possibly == 0 and self.dense and self.every_ns >= self.requirement.return_time_ns
        if self.upper is not None:
            return self.steady and self.upper <= self.requirement.miss_rate
        return self.needed is not None and not self.refuted and self.seen.n >= self.needed

    @property
    def deciding(self) -> int | None:
        """How many activations in all would decide, if all goes on as it did; None: none would, or nobody knows."""
        if self.never:
            return None
        if self.upper is not None:
            return clusters.samples_that_decide(
                self.seen.n, self.seen.possibly, self.seen.size, self.requirement.miss_rate,
                self.confidence, longest=_longest(self.seen, self.requirement))
        if self.needed is not None and not self.refuted:
            return self.needed
        return clusters.samples_for_disturbances(self.seen.n, self.seen.independent) if self.seen.independent else None


def _p_value(seen: Disturbances, allowed: float) -> float:
    """Chance of what surely exceeded, or more, at the rate that is allowed."""
    if seen.surely == 0 or seen.n == 0:
        return 1.0
    if allowed == 0:
        return 0.0
    if 2 * seen.surely > seen.n and seen.counts.size:
        return clusters.chance_where_most_exceed(seen.n, seen.surely, seen.counts.size, allowed)
    if seen.enough:
        return float(clusters.chance_of_more(seen.n, seen.surely, seen.size, allowed))
    return float(special.gammainc(max(seen.least, 1e-9), seen.n * allowed)) if seen.least else 1.0


def _longest(seen: Disturbances, requirement: Requirement) -> float:
    """As long as another disturbance may be: as the longest that was seen, or that was declared."""
    return max(seen.longest_run, requirement.longest_burst or 0)


def decided(values: Merged, seen: Disturbances, requirement: Requirement, confidence: float,
            merged: bool = True) -> Shown:
    """What disturbances that were counted show about a requirement."""
    upper = float(clusters.rate_upper(seen.n, seen.possibly, seen.size, _longest(seen, requirement),
                                      confidence)) if seen.enough else None
    several = seen.most >= clusters.LEAST_DISTURBANCES
    steady = not (requirement.miss_rate and several) or all(
        is_stationary(seen.counts[seen.run_of == run]) for run in np.unique(seen.run_of))
    p_value = _p_value(seen, requirement.miss_rate) if steady else 1.0
    return Shown(values, seen, requirement, confidence, upper, p_value, steady, merged)


def shown_of(values: Merged, requirement: Requirement, confidence: float) -> Iterator[Shown]:
    """Of merged samples of one CPU; of each run by itself where the runs differ too much to be merged."""
    seen = disturbances(values, requirement.limit_ns)
    counts = [seen.counts[seen.run_of == run] for run in np.unique(seen.run_of)]
    if not requirement.miss_rate or len(counts) < 2 or runs_agree(counts):
        yield decided(values, seen, requirement, confidence)
        return
    for part in values.parts:
        single = merge_samples([part])
        yield decided(single, disturbances(single, requirement.limit_ns), requirement, confidence, merged=False)
