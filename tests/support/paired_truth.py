# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the interval of a paired effect, and of compared runs, holds the truth: on made-up machines whose true
difference is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.clusters import holm
from fastenough.analysis.paired import PERIOD_ERROR, BoolArray, order_of_arms, period_of, student
from tests.support.late_values import COVERED, Values, stalls

WIDTH = 1000
"""Values in an interval: one second at 1 kHz."""
SPAN_US = 20.0
"""Of the made-up latencies, 0 to so many µs."""
QUANTILES = (0.5, 0.99, 0.999)


@dataclass(frozen=True)
class Machine:
    """``values``: within a run; ``run_us``: how much runs differ; ``drift_us``: by how much it gets slower from the
    first run to the last; ``period_runs``: another job is busy in the first half of so many runs, from any of them on,
    and makes them slower by ``busy_us``."""

    values: Values
    run_us: float = 0.0
    drift_us: float = 0.0
    period_runs: int = 0
    busy_us: float = 10.0


MACHINES: Mapping[str, Machine] = {
    "independent values": Machine(COVERED["independent"][0]),
    "stalls of 20 values, 1 % of all": Machine(partial(stalls, length=20, share=0.01)),
    "stalls of 500 values, 2 % of all": Machine(partial(stalls, length=500, share=0.02)),
    "autocorrelation over 1,000 values": Machine(COVERED["autocorrelation over 1,000 values"][0]),
    "runs differ by 2 µs": Machine(COVERED["independent"][0], run_us=2.0),
    "drift of 10 µs from first to last run": Machine(COVERED["independent"][0], drift_us=10.0),
    "stalls of 20, runs differ, drift": Machine(partial(stalls, length=20, share=0.01), run_us=1.0, drift_us=5.0),
    "another job busy for 1 of 2 runs": Machine(COVERED["independent"][0], run_us=0.1, period_runs=2),
    "another job busy for 2 of 4 runs": Machine(COVERED["independent"][0], run_us=0.1, period_runs=4),
    "another job busy for 3 of 6 runs": Machine(COVERED["independent"][0], run_us=0.1, period_runs=6),
    "another job busy for 2 of 4 runs, which differ by 2 µs": Machine(
        COVERED["independent"][0], run_us=2.0, period_runs=4
    ),
}


def order_of(random: np.random.Generator, rounds: int) -> tuple[str, ...]:
    """As the program draws it."""
    return order_of_arms(str(random.integers(1 << 32)), rounds)


def quantiles_of(
    machine: Machine, random: np.random.Generator, order: tuple[str, ...], *, intervals: int, shift_us: float = 0.0
) -> NDArray[np.float64]:
    """In µs, of each run of the order; those of B are slower by the shift."""
    found = np.empty((len(order), len(QUANTILES)))
    phase = int(random.integers(max(1, machine.period_runs)))
    for number, arm in enumerate(order):
        values = machine.values(random, intervals, WIDTH) * SPAN_US
        values += random.normal(0.0, machine.run_us) if machine.run_us else 0.0
        values += machine.drift_us * number / len(order) + (shift_us if arm == "B" else 0.0)
        if machine.period_runs and (number + phase) % machine.period_runs < machine.period_runs / 2:
            values += machine.busy_us
        found[number] = np.quantile(values, QUANTILES, method="inverted_cdf")
    return found


def sides(
    runs: NDArray[np.float64], order: tuple[str, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], BoolArray]:
    """Of each pair the run without, the run with the change, and whether the latter was first."""
    is_b = np.array(order) == "B"
    return runs[~is_b], runs[is_b], is_b[0::2]


@dataclass(frozen=True)
class Held:
    """Shares of all trials: intervals that hold the true effect, by quantile, trials in which Holm's method shows
    an effect at some quantile where there is none, and those in which a period is shown."""

    covered: tuple[float, ...]
    false_effect: float
    width_us: tuple[float, ...]
    periods: float


def trials(
    machine: Machine,
    random: np.random.Generator,
    repetitions: int,
    *,
    rounds: int,
    intervals: int,
    shift_us: float,
    order: tuple[str, ...] = (),
) -> Held:
    """The program's interval of a paired effect, against the shift that was put in; ``order``: in place of drawn
    ones."""
    covered, width = np.zeros(len(QUANTILES)), np.zeros(len(QUANTILES))
    wrong = periods = 0
    for _ in range(repetitions):
        now = order or order_of(random, rounds)
        without, changed, first = sides(quantiles_of(machine, random, now, intervals=intervals, shift_us=shift_us), now)
        ends = [student(column, column, first, 0.95) for column in (changed - without).T]
        covered += [lower <= shift_us <= upper for lower, upper, _ in ends]
        width += [upper - lower for lower, upper, _ in ends]
        none = [student(column - shift_us, column - shift_us, first, 0.95)[2] for column in (changed - without).T]
        wrong += any(holm(none, 0.05))
        found = period_of(without[:, 0], changed[:, 0], first)
        periods += found is not None and found[1] <= PERIOD_ERROR
    return Held(tuple(covered / repetitions), wrong / repetitions, tuple(width / repetitions), periods / repetitions)
