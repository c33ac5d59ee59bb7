# SPDX-License-Identifier: GPL-2.0-or-later
"""Test whether disturbances are independent, and form clusters of those that are not.

Several disturbances may have one cause: late activations 3 s apart, a job that disturbs ten times in a minute.  Such a
cluster is one piece of evidence.  The scale of clusters is the longest time at which disturbances lie closer together,
or are spread less evenly, than independent ones do; disturbances no further apart than the scale are one cluster.
Everything here counts in intervals of the recording.

Dependence that lasts as long as the data is a long memory: rates vary at every scale, and the longest ones are not
over when the measurement is.  Few disturbances do not show it; values that are exceeded more often do.

Sources: David & Nagaraja, Order Statistics, section 6.4 (spacings of uniform values); Fisher 1922 (index of
dispersion); Feller, An Introduction to Probability Theory, volume 1, section II.5 (occupancy); Robinson 1994 (test of a
long memory by the slope of the spectrum at its lowest frequencies).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import special

IntArray = NDArray[np.int64]

LEVEL = 0.01
"""Significance level of the test for dependence at each scale."""
LEAST_INTERVALS = 10
"""Least number of intervals for the distribution of disturbances over time."""
PIECES_TESTED, PIECES_SUPPORTED = 8, 12
"""Least multiples of a scale in the measured time, to test it and to base a statement on it."""
_MANY, _MANY_EACH = 20, 2
"""Least events, in total and per piece of time, for the chi-square test of the index of dispersion."""

MORE_OFTEN = 30
"""Exceedances of a lower value, as a multiple of those of the limit, that show a long memory."""
_FREQUENCIES, _LONGEST = 22, 4
"""Lowest frequencies whose spectrum has a slope with a long memory, and those of them that its strength is read at."""
_CARRIED = 0.07
"""Dispersion that disturbances inherit of a long memory, in addition to that of independent ones, from which it counts.
About ten times as much lies below the lowest frequency."""


@dataclass(frozen=True)
class Clusters:
    """Clusters of disturbances at the scale at which these depend on each other.

    ``scale``: intervals; 0 where disturbances may be independent.  ``most``, ``least``: number of clusters, counting
    what possibly and what surely exceeded.  ``largest``: exceedances in the largest one.  ``free``: share of the time
    in which another cluster could have begun, further than the scale from all others.  ``supported``: whether the scale
    is short enough, beside what was measured, for clusters to be counted.
    """

    scale: int
    most: int
    least: int
    largest: int
    free: float
    supported: bool = True


INDEPENDENT = Clusters(0, 0, 0, 0, 1.0)


def clusters_of(scale: int, possibly: IntArray, surely: IntArray, run_of: IntArray) -> Clusters:
    """Clusters at this scale of exceedances per interval, in the order of time; ``INDEPENDENT`` where it is 0.

    ``run_of``: which recording each interval is of.
    """
    if not scale:
        return INDEPENDENT
    at = np.flatnonzero(possibly)
    apart = (np.diff(at) > scale) | (np.diff(run_of[at]) != 0)
    begins = np.flatnonzero(np.r_[True, apart])
    sizes, sure = (np.add.reduceat(counts[at], begins) for counts in (possibly, surely))
    ends = np.r_[begins[1:], at.size] - 1
    free = max(0.0, 1.0 - float((at[ends] - at[begins] + 1 + scale).sum()) / possibly.size)
    return Clusters(
        scale,
        sizes.size,
        int(np.count_nonzero(sure)),
        int(sizes.max()),
        free,
        free > 0 and scale * PIECES_SUPPORTED <= possibly.size,
    )


def scale_of(counts: IntArray, runs: int) -> int:
    """Longest scale of dependence, in intervals; 0 if exceedances may be independent.

    ``runs``: how many runs of consecutive exceedances there are.
    """
    if counts.size < LEAST_INTERVALS or not counts.any():
        return 0
    busy = np.flatnonzero(counts > np.median(counts))
    gaps = np.sort(np.diff(busy))
    for scale in reversed([*_scales(counts.size)]):
        uneven = busy.size >= max(_MANY, _MANY_EACH * (counts.size // scale)) and scale > 1
        if _chance_of_gaps(gaps, scale, counts.size) <= LEVEL or (
            uneven and _chance_of_dispersion(busy, scale, counts.size) <= LEVEL
        ):
            return scale
    return 1 if _crowded(int(np.count_nonzero(counts)), runs, counts.size) else 0


def _scales(intervals: int) -> Iterator[int]:
    scale, longest = 1, intervals // PIECES_TESTED
    while scale < longest:
        yield scale
        scale *= 2
    if longest:
        yield longest


def _crowded(busy: int, events: int, intervals: int) -> bool:
    """Whether so many independent events would have spread over more intervals than these did."""
    collisions = events - busy
    if collisions <= 0:
        return False
    free, both_free = (intervals * math.exp(events * math.log1p(-some / intervals)) for some in (1, 2))
    mean = events - intervals + free
    variance = max(free + (intervals - 1) * both_free - free * free, 1e-9)
    if mean < LEAST_INTERVALS:
        return float(special.gammainc(collisions, mean)) <= LEVEL
    return float(special.ndtr((mean + 0.5 - collisions) / math.sqrt(variance))) <= LEVEL


def _chance_of_gaps(gaps: IntArray, scale: int, intervals: int) -> float:
    """p-value of the number of gaps up to the scale, if busy intervals are independent.

    ``gaps``: between neighbouring busy intervals, ascending.
    """
    short = int(np.searchsorted(gaps, scale, side="right"))
    if not short:
        return 1.0
    events = gaps.size + 1
    longer = _log_choose(intervals - scale, events) - _log_choose(intervals, events)
    return float(special.bdtrc(short - 1, events - 1, -math.expm1(longer)))


def _log_choose(n: int, k: int) -> float:
    return -math.inf if k > n else math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _chance_of_dispersion(busy: IntArray, scale: int, intervals: int) -> float:
    """p-value of the dispersion of counts per piece of time, if busy intervals are independent."""
    pieces = intervals // scale
    counts = np.bincount(busy // scale, minlength=pieces)[:pieces]
    share = busy.size / intervals
    mean = share * scale
    variance = mean * (1.0 - share) * intervals / (intervals - 1)
    return float(special.chdtrc(pieces - 1, float(((counts - mean) ** 2).sum()) / variance))


def has_long_memory(frequent: IntArray, disturbances: int) -> bool:
    """Whether disturbances depend on each other over times as long as the data.

    ``frequent``: exceedances of a lower value per interval, :data:`MORE_OFTEN` times as many as those of the limit.
    Their spectrum, in units of that of independent ones, is flat at low frequencies if dependence is shorter than the
    data; with a long memory it rises towards frequency 0.  ``disturbances`` are assumed to share it.  Any slope counts,
    so that half of what is flat there and shorter than the data is refused as well: a test of the slope at 25 % misses
    too many long memories.
    """
    total = int(frequent.sum())
    if frequent.size < 4 * _FREQUENCIES or not total:
        return False
    spectrum = np.abs(np.fft.rfft(frequent - total / frequent.size)[1:]) ** 2 / total
    low = spectrum[:_FREQUENCIES]
    steps = np.log(np.arange(1, _FREQUENCIES + 1))
    slope = float((steps - steps.mean()) @ low)
    size = float(spectrum[spectrum.size // 2 :].mean())
    inherited = (float(low[:_LONGEST].mean()) - size) * disturbances / total
    return slope < 0 and inherited > _CARRIED
