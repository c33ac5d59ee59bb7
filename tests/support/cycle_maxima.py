# SPDX-License-Identifier: GPL-2.0-or-later
"""A year of greatest values of cycles, in ns, with and without changes: the cases of tests and of docs/method.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from fastenough.history.tail import mean_between

Values = NDArray[np.float64]
Case = Callable[[np.random.Generator], Values]

CYCLES_A_YEAR = 730
MEAN_BETWEEN = mean_between(200, 1.0)
"""Of a farm of 200 boards that accepts one false change in a year."""
_TIME = np.arange(CYCLES_A_YEAR)


def independent(random: np.random.Generator) -> Values:
    return random.gumbel(60_000, 5_000, CYCLES_A_YEAR)


def periodic(random: np.random.Generator) -> Values:
    """Higher at night by one scale of the distribution, lower at weekends by one."""
    values = independent(random)
    values[_TIME % 2 == 1] += 5_000
    values[_TIME // 2 % 7 >= 5] -= 5_000
    return values


def autocorrelated(random: np.random.Generator, correlation: float) -> Values:
    steps = random.normal(size=CYCLES_A_YEAR + 100)
    scores = signal.lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], steps)[100:]
    return np.asarray(stats.gumbel_r.ppf(stats.norm.cdf(scores), 60_000, 5_000))


def _times(factors: NDArray[np.floating[Any]]) -> Case:
    return lambda random: independent(random) * factors


def _step(share: float) -> Case:
    return _times(1 + share * (_TIME >= 300))


CASES: dict[str, Case] = {
    "independent": independent,
    "day, night and week": periodic,
    "autocorrelation 0.3": lambda random: autocorrelated(random, 0.3),
    "autocorrelation 0.5": lambda random: autocorrelated(random, 0.5),
    "autocorrelation 0.8": lambda random: autocorrelated(random, 0.8),
    "step of 10 %": _step(0.1),
    "step of 30 %": _step(0.3),
    "step of 100 %": _step(1.0),
    "step of 30 %, taken back after 200": _times(1 + 0.3 * ((_TIME >= 300) & (_TIME < 500))),
    "two steps of 20 %": _times(1.2 ** ((_TIME >= 200) * 1.0 + (_TIME >= 400))),
    "ten cycles 50 % higher": _times(1 + 0.5 * ((_TIME >= 300) & (_TIME < 310))),
    "drift of 30 %": _times(1 + 0.3 * _TIME / CYCLES_A_YEAR),
    "drift of 30 % from cycle 200 to 500": _times(1 + 0.3 * np.clip((_TIME - 200) / 300, 0, 1)),
}
