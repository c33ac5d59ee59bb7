# SPDX-License-Identifier: GPL-2.0-or-later
"""The evidence of one CPU under one load about a requirement, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fastenough.analysis import bounds, clusters, sequential
from fastenough.analysis.blocks import is_stationary, runs_agree
from fastenough.analysis.disturbances import Disturbances, disturbances, limits_above
from fastenough.analysis.merged import Merged, merge_samples
from fastenough.model import Requirement

MINIMUM_DURATION_NS = 10 * 10**9
"""Shortest measurement for a PASS: activities that recur every second have then occurred ten times."""
UNSEEN_WITHOUT_PERIOD = 1e-4
UNSEEN_WITH_PERIOD = 1e-2
"""Rates that must be detectable before "never" is concluded, since few activations may cover a long time."""


@dataclass(frozen=True, eq=False)
class CpuEvidence:
    """Samples of one CPU under one load, with their disturbances, against a requirement.

    ``confidence``: of every bound; each is valid at every look.  ``merged``: False if several runs differ too much and
    are judged one by one.
    """

    values: Merged
    disturbances: Disturbances
    requirement: Requirement
    confidence: float
    merged: bool = True

    @cached_property
    def upper(self) -> float | None:
        """Upper bound of the rate of exceedances per activation; None with fewer than ten disturbances."""
        disturbances = self.disturbances
        if not disturbances.enough:
            return None
        longest = longest_event(disturbances, self.requirement)
        return clusters.rate_upper(
            disturbances.n,
            disturbances.possibly,
            disturbances.size,
            longest,
            self.confidence,
            error=disturbances.size_error,
        )

    @property
    def rate_within(self) -> bool:
        """Whether the upper bound of the rate is at most the allowed one."""
        return self.disturbances.enough and clusters.rate_is_within(
            self.disturbances.n,
            self.disturbances.possibly,
            self.disturbances.size,
            longest_event(self.disturbances, self.requirement),
            allowed=self.requirement.miss_rate,
            confidence=self.confidence,
            error=self.disturbances.size_error,
        )

    @cached_property
    def p_value(self) -> float:
        """p-value of the allowed rate; 1.0 unless disturbances are steady and resolved."""
        p_value = p_value_of(self.disturbances, self.requirement.miss_rate)
        return p_value if p_value < 1.0 and self.resolved and self.steady else 1.0

    @cached_property
    def steady(self) -> bool:
        """Whether the system did not change during the measurement, as far as a rate is concerned."""
        if self.never or self.disturbances.most < clusters.LEAST_DISTURBANCES:
            return True
        return is_stationary(self.disturbances.counts_per_run)

    @cached_property
    def higher(self) -> CpuEvidence | None:
        """Evidence at the lowest higher limit at which the data do not show the requirement that they show at its own.

        A requirement that is met at a limit is met at each higher one.  But a low limit can merge several disturbances
        into one, and many short disturbances can hide that the long ones depend on each other.  Without this check, a
        suitable limit could be chosen after looking.  If the required limit has a rate, a higher limit with too few
        disturbances for one must only be steady.
        """
        if self.never or not self.within_at_limit:
            return None
        for limit_ns in limits_above(self.values, self.requirement.limit_ns):
            above = replace(
                self,
                disturbances=disturbances(self.values, limit_ns),
                requirement=replace(self.requirement, limit_ns=limit_ns),
            )
            if self.disturbances.enough and above.disturbances.possibly < clusters.LEAST_DISTURBANCES:
                break
            if not (
                above.within_at_limit if above.disturbances.enough or not self.disturbances.enough else above.steady
            ):
                return above
        return None

    @property
    def every_ns(self) -> float:
        """Lower bound of the mean time between disturbances, in ns; dependent ones count as one.

        If none is allowed, one would refute the requirement, so no evidence is reserved for rates above 0.
        """
        if self.never and not self.disturbances.possibly:
            return self.disturbances.time_ns / sequential.unseen_upper(self.confidence)
        return self.disturbances.time_ns / self.disturbances.events_upper(self.confidence)

    @property
    def never(self) -> bool:
        """Whether no exceedance is allowed."""
        return self.requirement.miss_rate == 0

    @property
    def activations_for_never(self) -> int:
        """Least number of activations for "never", however long they took."""
        unseen = UNSEEN_WITHOUT_PERIOD if self.values.period_ns is None else UNSEEN_WITH_PERIOD
        return bounds.samples_for_unseen_rate(unseen, self.confidence)

    @property
    def dense(self) -> bool:
        """Whether there are enough activations: a rate of 1 in 10,000 without a period, or 1 in 100 with one, would
        have been detected."""
        return self.disturbances.n >= self.activations_for_never

    @property
    def resolved(self) -> bool:
        """Whether the dependence of disturbances, if any, is shorter than the data can resolve."""
        return self.never or (self.disturbances.clusters.supported and not self.disturbances.long_memory)

    @property
    def rests_on_burst(self) -> int | None:
        """The declared longest burst, if the requirement is met only under that declaration."""
        declared = self.requirement.longest_burst
        if declared is None or self.never or not self.within:
            return None
        if not self.disturbances.enough:
            return declared
        undeclared = replace(self, requirement=replace(self.requirement, longest_burst=None))
        return None if undeclared.within else declared

    @property
    def refuted(self) -> bool:
        """Whether a disturbance or a cluster is, or may be, longer than the declared longest burst."""
        declared = self.requirement.longest_burst
        return declared is not None and self.disturbances.largest > declared

    @property
    def within(self) -> bool:
        """Whether the data show that the requirement is met, at its limit and at each higher one."""
        return self.within_at_limit and self.higher is None

    @property
    def within_at_limit(self) -> bool:
        """Whether the data show that the requirement is met at its limit."""
        if self.never:
            return self.disturbances.possibly == 0 and self.dense and self.every_ns >= self.requirement.return_time_ns
        if self.disturbances.enough:
            return self.rate_within and self.resolved and self.steady
        return not self.refuted and self.resolved and self._few_within

    @property
    def _few_within(self) -> bool:
        """Whether as few disturbances as these show the rate, with the declared longest burst."""
        declared, seen = self.requirement.longest_burst, self.disturbances
        if declared is None:
            return False
        return seen.events_are_within(seen.n * self.requirement.miss_rate / declared, self.confidence)


def p_value_of(disturbances: Disturbances, allowed: float) -> float:
    """p-value of the allowed rate, from the values that certainly exceed the limit; valid at every look."""
    if disturbances.surely == 0 or disturbances.n == 0:
        return 1.0
    if allowed == 0:
        return 0.0
    if 2 * disturbances.surely > disturbances.n and disturbances.counts.size:
        return clusters.chance_where_most_exceed(disturbances.n, disturbances.surely, disturbances.counts.size, allowed)
    if disturbances.enough:
        return clusters.chance_of_more(
            disturbances.n, disturbances.surely, disturbances.size, allowed, disturbances.size_error
        )
    return sequential.p_value(sequential.log_evidence_above(disturbances.sure_events, disturbances.n * allowed))


def longest_event(disturbances: Disturbances, requirement: Requirement) -> float:
    """Exceedances that one more disturbance may have: as declared, or estimated from those observed.

    A longer observed run refutes the declaration, which then counts for nothing.
    """
    declared = requirement.longest_burst
    if declared is None or declared < disturbances.longest_run:
        return disturbances.longer_run
    return float(declared)


def evidence_per_cpu(values: Merged, requirement: Requirement, confidence: float) -> Iterator[CpuEvidence]:
    """Evidence of merged samples of one CPU, or of each run if the runs differ too much to be merged."""
    at_limit = disturbances(values, requirement.limit_ns)
    counts_per_run = at_limit.counts_per_run
    if not requirement.miss_rate or len(counts_per_run) < 2 or runs_agree(counts_per_run):
        yield CpuEvidence(values, at_limit, requirement, confidence)
        return
    for part in values.parts:
        single = merge_samples([part])
        yield CpuEvidence(single, disturbances(single, requirement.limit_ns), requirement, confidence, merged=False)
