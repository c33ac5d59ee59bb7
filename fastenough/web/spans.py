# SPDX-License-Identifier: GPL-2.0-or-later
"""The ranges of figures, and the number of their points, each of which is a maximum, never a mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastenough.history import NOTHING, MaximaSeries
from fastenough.history.results import Integers
from fastenough.web.site import NotFound

_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S


@dataclass(frozen=True)
class Span:
    """Up to now, in whole steps.  ``title``: for people."""

    name: str
    title: str
    length_s: int
    step_s: int

    def until(self, now_s: int) -> tuple[int, int]:
        """Begin and end of the range."""
        end_s = -(-now_s // self.step_s) * self.step_s
        return end_s - self.length_s, end_s


SPANS = {
    span.name: span
    for span in (
        Span("24h", "24 hours", _DAY_S, 300),
        Span("7d", "7 days", 7 * _DAY_S, 900),
        Span("30d", "30 days", 30 * _DAY_S, _HOUR_S),
        Span("1y", "1 year", 365 * _DAY_S, 12 * _HOUR_S),
    )
}
"""Each of 288 to 730 steps: as many as a figure has room for."""
USUAL = "24h"
MOST_STEPS = 800


def span_of(name: str) -> Span:
    """Raises NotFound."""
    if name not in SPANS:
        raise NotFound(name)
    return SPANS[name]


def by_maximum(values: Integers, size: int) -> Integers:
    """The maximum of each group of ``size`` successive values; the last group may be smaller."""
    short = -values.size % size
    whole: Integers = np.append(values, np.full(short, NOTHING, dtype=np.int64))
    return np.maximum.reduceat(whole, np.arange(0, whole.size, size)) if whole.size else whole


def coarser(maxima: MaximaSeries, step_s: int) -> MaximaSeries:
    """The maxima in steps of ``step_s``, if that is longer than their own step."""
    size = max(1, step_s // maxima.step_s)
    if size == 1:
        return maxima
    return MaximaSeries(
        maxima.times_s[::size],
        maxima.step_s * size,
        {cpu: by_maximum(values, size) for cpu, values in maxima.values_ns.items()},
    )


def drawable_step(length_s: int, step_s: int) -> int:
    """The shortest step, a multiple of ``step_s``, with which a range has no more steps than a figure has room for."""
    return step_s * max(1, -(-length_s // (step_s * MOST_STEPS)))
