# SPDX-License-Identifier: GPL-2.0-or-later
"""How surprising a new maximum is: how often chance alone gives one, and one so far above the values before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_MOST_SPACINGS = 10


def records_expected(before: int, values: float) -> float:
    """New maxima among so many independent values alike, each compared with so many ``before`` it."""
    return values / (before + 1)


def chance_of_excess(maximum: float, earlier: FloatArray) -> float:
    """Chance that a new maximum lies so far above ``earlier`` values (T,), if it is from the same tail.

    The ratios of neighbouring order statistics of a Pareto tail are independent: the i-th, to the power of i, are alike
    (Rényi 1953).  The first one is compared with up to ten that follow.  With a lighter tail the chance is overstated.
    """
    ordered = np.log(np.maximum(np.sort(earlier)[::-1], 1.0))
    spacings = -np.diff(ordered[: _MOST_SPACINGS + 1]) * np.arange(2, min(ordered.size, _MOST_SPACINGS + 1) + 1)
    if not spacings.size or spacings.sum() <= 0:
        return 1.0
    excess = max(0.0, float(np.log(max(maximum, 1.0)) - ordered[0]))
    return float((1 + excess / spacings.sum()) ** -spacings.size)
