# SPDX-License-Identifier: GPL-2.0-or-later
"""Which activations are late: made-up machines of which the true rate is known.  Nothing here is the program's own.

A machine is a function of (random numbers, repetitions, intervals, values in an interval, rate) that gives an array of
bool, repetitions x activations: whether each exceeds a limit that is exceeded at that rate in the long run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import signal, special

Late = NDArray[np.bool_]
Machine = Callable[[np.random.Generator, int, int, int, float], Late]


def independent(random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float) -> Late:
    return random.random((repetitions, intervals * width), dtype=np.float32) < rate


def _spread(begins: NDArray[np.int64], length: NDArray[np.int64] | int, stride: int, shape: tuple[int, int]) -> Late:
    """``length`` activations are late from each begin on, every ``stride``-th; ``begins``: in the flat array."""
    late = np.zeros(shape, dtype=bool)
    lengths = np.broadcast_to(length, begins.shape)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.repeat(begins, lengths) + within * stride
    same_row = at // shape[1] == np.repeat(begins // shape[1], lengths)
    late.reshape(-1)[at[same_row]] = True
    return late


def _begins(random: np.random.Generator, total: int, chance: float) -> NDArray[np.int64]:
    """Where something begins that begins at each place with this chance."""
    return np.asarray(random.integers(0, total, random.poisson(total * chance)), dtype=np.int64)


def _lead(late: Callable[[int], Late], lead: int, width: int) -> Late:
    """Without what lies before the measurement: a burst that began before it reaches into it."""
    extra = -(-lead // width)
    return late(extra)[:, extra * width :]


def bursts(
    random: np.random.Generator,
    repetitions: int,
    intervals: int,
    width: int,
    rate: float,
    *,
    length: int,
    stride: int = 1,
) -> Late:
    """Bursts of one length, which begin independently and may overlap."""
    chance = -np.log1p(-rate) / length  # of what overlaps, the union is late at the rate wanted

    def late(extra: int) -> Late:
        shape = (repetitions, (intervals + extra) * width)
        return _spread(_begins(random, shape[0] * shape[1], chance), length, stride, shape)

    return _lead(late, length * stride, width)


def clusters(
    random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float, *, length: int
) -> Late:
    """Single late activations in clusters, three intervals apart."""
    return bursts(random, repetitions, intervals, width, rate, length=length, stride=3 * width)


def geometric(
    random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float, *, mean: int
) -> Late:
    """Bursts whose lengths are geometrically distributed."""

    def late(extra: int) -> Late:
        shape = (repetitions, (intervals + extra) * width)
        begins = _begins(random, shape[0] * shape[1], -np.log1p(-rate) / mean)
        return _spread(begins, random.geometric(1 / mean, begins.size), 1, shape)

    return _lead(late, 50 * mean, width)


def heavy_tail(random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float) -> Late:
    """Bursts of lengths with a heavy tail: Pareto with exponent 2.5, 1 to 500."""
    lengths = np.arange(1, 501)
    chances = lengths**-2.5 / np.sum(lengths**-2.5)
    mean = float(np.sum(lengths * chances))

    def late(extra: int) -> Late:
        shape = (repetitions, (intervals + extra) * width)
        begins = _begins(random, shape[0] * shape[1], -np.log1p(-rate) / mean)
        return _spread(begins, random.choice(lengths, begins.size, p=chances), 1, shape)

    return _lead(late, 500, width)


def pareto(
    random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float, *, most: int = 3000
) -> Late:
    """Bursts whose lengths have hardly a mean: Pareto with exponent 1.2, cut off at ``most``."""
    lengths = np.arange(1, most + 1)
    beyond = np.append(lengths**-1.2, 0.0)
    chances = beyond[:-1] - beyond[1:]
    mean = float(np.sum(lengths * chances))

    def late(extra: int) -> Late:
        shape = (repetitions, (intervals + extra) * width)
        begins = _begins(random, shape[0] * shape[1], -np.log1p(-rate) / mean)
        return _spread(begins, random.choice(lengths, begins.size, p=chances), 1, shape)

    return _lead(late, most, width)


def singles_and_stalls(
    random: np.random.Generator,
    repetitions: int,
    intervals: int,
    width: int,
    rate: float,
    *,
    length: int = 60,
    share: float = 0.5,
) -> Late:
    """Single late activations, and stalls of one length so rare that a measurement may see none of them."""
    singles = independent(random, repetitions, intervals, width, rate * (1 - share))
    return singles | bursts(random, repetitions, intervals, width, rate * share, length=length)


def moving_maxima(
    random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float, *, window: int = 5
) -> Late:
    """Each latency is the greatest of the last few delays, and these have a tail so heavy that they have no mean."""
    delays = 1.0 / (1.0 - random.random((repetitions, intervals * width + window - 1), dtype=np.float32))
    latency = np.max([delays[:, lag : lag + intervals * width] for lag in range(window)], axis=0)
    return np.asarray(latency > 1.0 / (1.0 - (1.0 - rate) ** (1.0 / window)))


def autocorrelated(
    random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float, *, memory: int = 50
) -> Late:
    """Latency is a first-order autoregression that forgets within ``memory`` activations."""
    keeps = np.exp(-1.0 / memory)
    noise = random.standard_normal((repetitions, intervals * width), dtype=np.float32)
    noise *= np.sqrt(1 - keeps * keeps)
    first = random.standard_normal((repetitions, 1)).astype(np.float32) * keeps
    values, _ = signal.lfilter([1.0], [1.0, -keeps], noise, axis=1, zi=first)
    return np.asarray(values > -special.ndtri(rate))


def _by_time(random: np.random.Generator, rates: NDArray[np.float64], width: int, length: int) -> Late:
    """Bursts at a rate that is another in each interval (repetitions x intervals)."""
    repetitions, intervals = rates.shape
    shape = (repetitions, intervals * width)
    counts = random.poisson(-np.log1p(-rates) * width / length)
    begins = np.repeat(np.arange(counts.size) * width, counts.reshape(-1)) + random.integers(0, width, counts.sum())
    return _spread(begins, length, 1, shape)


def regimes(
    random: np.random.Generator,
    repetitions: int,
    intervals: int,
    width: int,
    rate: float,
    *,
    visits: int,
    length: int = 5,
) -> Late:
    """A calm and a busy regime, ten times as bad, each visited about so often; which one it begins in is chance."""
    changes = random.random((repetitions, intervals)) < 2.0 * visits / intervals
    busy = (np.cumsum(changes, axis=1) + random.integers(0, 2, (repetitions, 1))) % 2
    return _by_time(random, rate * np.where(busy == 1, 20.0, 2.0) / 11.0, width, length)


def remembered(
    random: np.random.Generator, repetitions: int, intervals: int, *, hurst: float, deviation: float = 1.0
) -> NDArray[np.float64]:
    """Rates of intervals with a long memory and a mean of 1, log-normal: fractional Gaussian noise with this exponent,
    drawn exactly by embedding its covariance in a circle (Davies and Harte 1987)."""
    lag = np.arange(intervals + 1.0)
    power = 2 * hurst
    covariance = (np.abs(lag - 1) ** power - 2 * lag**power + (lag + 1) ** power) / 2
    spectrum = np.fft.rfft(np.r_[covariance, covariance[-2:0:-1]]).real.clip(0)
    noise = np.fft.rfft(random.standard_normal((repetitions, 2 * intervals)), axis=1)
    logarithm = deviation * np.fft.irfft(noise * np.sqrt(spectrum), axis=1)[:, :intervals]
    return np.asarray(np.exp(logarithm - deviation**2 / 2))


def drift(random: np.random.Generator, repetitions: int, intervals: int, width: int, rate: float) -> Late:
    """What begins at nothing and rises to twice the rate."""
    rising = np.linspace(0.0, 2.0 * rate, intervals)
    return _by_time(random, np.tile(rising, (repetitions, 1)), width, 5)


STEADY: dict[str, tuple[Machine, float]] = {
    "independent": (independent, 1.0),
    "bursts of 5": (partial(bursts, length=5), 5.0),
    "bursts of 20": (partial(bursts, length=20), 20.0),
    "bursts of 100": (partial(bursts, length=100), 100.0),
    "bursts of 500": (partial(bursts, length=500), 500.0),
    "every second value late, 100 at a time": (partial(bursts, length=100, stride=2), 100.0),
    "latencies with a heavy tail, each felt by 5 values": (moving_maxima, 5.0),
    "autocorrelation over 50 values": (autocorrelated, 12.0),
    "two regimes, 15 visits to each": (partial(regimes, visits=15), 25.0),
}
"""By name: the machine, and about how many exceedances one of its disturbances has."""
CHANGING: dict[str, tuple[Machine, float]] = {
    "two regimes, 2 visits to each": (partial(regimes, visits=2), 25.0),
    "drift from 0 to twice the rate": (drift, 5.0),
    "lengths with a heavy tail, 1 to 500": (heavy_tail, 5.0),
}

DEPENDENT: dict[str, tuple[Machine, int]] = {
    "independent": (independent, 1),
    "clusters of 3 late activations, 3 s apart": (partial(clusters, length=3), 3),
    "clusters of 10 late activations, 3 s apart": (partial(clusters, length=10), 10),
}
"""By name: the machine, and how many disturbances one cause makes."""


def uniform(random: np.random.Generator, intervals: int, width: int) -> NDArray[np.float64]:
    """Independent values."""
    return random.random((intervals, width))


def gaussian_memory(random: np.random.Generator, intervals: int, width: int, *, memory: int) -> NDArray[np.float64]:
    """A first-order autoregression, each of its values uniform in (0, 1)."""
    keeps = float(np.exp(-1.0 / memory))
    noise = random.standard_normal(intervals * width) * np.sqrt(1 - keeps * keeps)
    values, _ = signal.lfilter([1.0], [1.0, -keeps], noise, zi=[keeps * random.standard_normal()])
    return np.asarray(special.ndtr(values)).reshape(intervals, width)


def levels(random: np.random.Generator, intervals: int, width: int, *, lasting: float) -> NDArray[np.float64]:
    """Two levels, two standard deviations apart, each of which lasts so many intervals on average."""
    changes = random.random(intervals) < 1.0 / lasting
    level = 2.0 * ((np.cumsum(changes) + random.integers(0, 2)) % 2) - 1.0
    values = level[:, None] + random.standard_normal((intervals, width))
    return np.asarray((special.ndtr(values - 1.0) + special.ndtr(values + 1.0)) / 2.0)


def stalls(
    random: np.random.Generator, intervals: int, width: int, *, length: int, share: float
) -> NDArray[np.float64]:
    """A body, and stalls of one length that raise all values in them above it."""
    rest = random.random((intervals, width)) * (1 - share)
    stalled = bursts(random, 1, intervals, width, share, length=length).reshape(intervals, width)
    return np.where(stalled, 1 - share + random.random((intervals, width)) * share, rest)


Values = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""Of (random numbers, intervals, values in each): values in (0, 1), uniform as a whole: quantiles are known."""
COVERED: dict[str, tuple[Values, bool]] = {
    "independent": (uniform, True),
    "stalls of 20 values, 1 % of all": (partial(stalls, length=20, share=0.01), True),
    "stalls of 100 values, 2 % of all": (partial(stalls, length=100, share=0.02), True),
    "autocorrelation over 50 values": (partial(gaussian_memory, memory=50), True),
    "autocorrelation over 1,000 values": (partial(gaussian_memory, memory=1000), True),
}
"""By name: the values, each uniform in (0, 1) as a whole, and whether their coverage is promised."""
