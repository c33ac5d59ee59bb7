# SPDX-License-Identifier: GPL-2.0-or-later
"""The tightest requirement that the data support, per miss rate."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.assessment import Judgment, Supported
from fastenough.analysis.clusters import rate_is_within
from fastenough.analysis.cpu_evidence import evidence_per_cpu
from fastenough.analysis.disturbances import disturbances
from fastenough.analysis.measures import weakest_bound
from fastenough.analysis.merged import Merged
from fastenough.model import Requirement

SUPPORTED_MISS_RATES = (0.0, 0.001, 0.05)
"""Miss rates for which the hardest supported requirement is stated: never, one in a thousand, 95 %-hard."""


def _limits(values: Merged, miss_rate: float) -> list[int]:
    """Limits of two digits, ascending, at which fewer values than allowed exceed, up to the greatest value."""
    _, highest, count = values.magnitudes
    first = float(highest[count.cumsum().searchsorted((1 - miss_rate) * values.n)])
    limits = [words.round_up(first)]
    while limits[-1] < (values.maximum_ns or 0.0):
        limits.append(words.round_up(limits[-1] * 1.0001 + 1))
    return limits


def _hardest(values: Merged, miss_rate: float, confidence: float) -> int | None:
    """The smallest limit of two digits that this CPU keeps at this miss rate; None: too few samples.

    The lower the limit, the more exceeds it; above it too few disturbances may be left for any rate.
    """

    def exceeds(limit_ns: int) -> bool:
        at_limit = disturbances(values, limit_ns)
        return at_limit.enough and not rate_is_within(
            at_limit.n,
            at_limit.possibly,
            at_limit.size,
            at_limit.longer_run,
            allowed=miss_rate,
            confidence=confidence,
            error=at_limit.size_error,
        )

    limits = _limits(values, miss_rate)
    low, high = 0, len(limits)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if exceeds(limits[middle]) else (low, middle)
    if low == len(limits):
        return None
    evidence = evidence_per_cpu(values, Requirement(limits[low], miss_rate, confidence), confidence)
    return limits[low] if all(cpu.within for cpu in evidence) else None


def _supported(merged: Sequence[Merged], miss_rate: float, confidence: float) -> Supported | None:
    """The smallest limit, of two digits, that every CPU keeps at this miss rate.

    None: too few samples, values that were lost, or without misses, periods that were missed.
    """
    if any(values.lost or (values.missed_uncharged and not miss_rate) for values in merged):
        return None
    limits: list[int] = []
    for values in merged:
        limit = _hardest(values, miss_rate, confidence) if miss_rate else words.round_up(values.maximum_ns or 0.0)
        if limit is None:
            return None
        limits.append(limit)
    if not limits:
        return None
    return Supported(miss_rate, max(limits), confidence, weakest_bound(merged, confidence))


def all_supported(merged: Sequence[Merged], confidence: float) -> tuple[Supported, ...]:
    """Limits of runs of one key, one per miss rate with enough samples."""
    filled = [values for values in merged if values.n]
    supported_or_none = (_supported(filled, miss_rate, confidence) for miss_rate in SUPPORTED_MISS_RATES)
    return tuple(supported for supported in supported_or_none if supported is not None)


def overall_supported(judgments: Sequence[Judgment]) -> tuple[Supported, ...]:
    """Per miss rate, what every load supports: the longest of their limits."""
    overall = []
    for miss_rate in SUPPORTED_MISS_RATES:
        of_rate = [s for judgment in judgments for s in judgment.supported if s.miss_rate == miss_rate]
        if judgments and len(of_rate) == len(judgments):
            weakest = min(of_rate, key=lambda s: s.bound.n)
            longest = max(of_rate, key=lambda s: s.limit_ns)
            overall.append(Supported(miss_rate, longest.limit_ns, longest.confidence, weakest.bound))
    return tuple(overall)
