# SPDX-License-Identifier: GPL-2.0-or-later
"""The tail of one trial as one number, from few samples, and whether two sets of trials differ in it.

The number is the mean of the logarithms of the greatest values of short blocks of time: what the machine typically does
at worst within such a block.  A quantile of 99.9 % of a trial of 3,000 values is its fourth greatest value, and four
values of one stall are one event; the greatest of each of twelve blocks are twelve, and a stall counts once.  Of one
outlier the logarithm takes a twelfth of its octaves, so that one does not decide; a latency that comes back does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from scipy.stats import mannwhitneyu

LEVEL = 0.05
"""At most so often anything is found that is no worse, in all confirmations of a search together."""


def tail_of(block_maxima_ns: Sequence[int]) -> float:
    """In octaves of ns: the mean of the logarithms, to the base of 2, of what was worst in each block."""
    return fmean(math.log2(max(1, value)) for value in block_maxima_ns)


def typical_ns(tail: float) -> float:
    """A tail as a time."""
    return math.exp2(tail)


def level_of(confirmation: int) -> float:
    """Which chance is small enough in one, counted from 1: fewer each time, since looking often finds something."""
    return LEVEL * 6 / (math.pi * confirmation) ** 2


def chance(worse: Sequence[float], better: Sequence[float]) -> float:
    """How likely tails are to lie so far above the others by chance, if both come from one distribution.

    The exact one-sided test of Wilcoxon (1945) and of Mann and Whitney (1947).  A trial is one value of it: blocks
    within a trial may depend on one another as they like.
    """
    found = mannwhitneyu(worse, better, alternative="greater", method="exact")
    return float(found.pvalue)
