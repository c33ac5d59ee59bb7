# SPDX-License-Identifier: GPL-2.0-or-later
"""The hardest requirement the data supports, per miss rate."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis import bounds
from fastenough.analysis.assessment import Judgment, Supported
from fastenough.analysis.measures import bound_above_maximum
from fastenough.analysis.merged import Merged

SUPPORTED_MISS_RATES = (0.0, 0.001, 0.05)
"""Miss rates for which the hardest supported requirement is stated: never, one in a thousand, 95 %-hard."""


def _supported(merged: Sequence[Merged], miss_rate: float, confidence: float) -> Supported | None:
    """The smallest limit, of two digits, that every CPU keeps at this miss rate; None: too few samples."""
    limits = []
    for values in merged:
        if miss_rate == 0:
            limits.append(values.maximum_ns)
            continue
        rank = bounds.quantile_upper_rank(1 - miss_rate, values.judged, confidence)
        if rank is None or rank > values.n:
            return None
        _, highest, count = values.magnitudes()
        limits.append(float(highest[count.cumsum().searchsorted(rank)]))
    known = [limit for limit in limits if limit is not None]
    if not known:
        return None
    weakest = min(merged, key=lambda values: values.judged)
    return Supported(miss_rate, words.round_up(max(known)), confidence, bound_above_maximum(weakest, confidence))


def all_supported(merged: Sequence[Merged], confidence: float) -> tuple[Supported, ...]:
    """Of runs of one key, per miss rate for which there are samples enough."""
    filled = [values for values in merged if values.n]
    found = (_supported(filled, miss_rate, confidence) for miss_rate in SUPPORTED_MISS_RATES)
    return tuple(supported for supported in found if supported is not None)


def overall_supported(judgments: Sequence[Judgment]) -> tuple[Supported, ...]:
    """Per miss rate, what every load supports: the longest of their limits."""
    overall = []
    for miss_rate in SUPPORTED_MISS_RATES:
        found = [s for judgment in judgments for s in judgment.supported if s.miss_rate == miss_rate]
        if judgments and len(found) == len(judgments):
            weakest = min(found, key=lambda s: s.bound.n)
            longest = max(found, key=lambda s: s.limit_ns)
            overall.append(Supported(miss_rate, longest.limit_ns, longest.confidence, weakest.bound))
    return tuple(overall)
