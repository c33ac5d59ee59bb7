# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the interval of a paired effect, and of compared runs, holds the truth: on made-up machines whose true
difference is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from late_values import COVERED, Values, stalls
from numpy.typing import NDArray

from fastenough.analysis.clusters import holm
from fastenough.analysis.paired import ORDER, student

WIDTH = 1000
"""Values in an interval: one second at 1 kHz."""
SPAN_US = 20.0
"""Of the made-up latencies, 0 to so many µs."""
QUANTILES = (0.5, 0.99, 0.999)


@dataclass(frozen=True)
class Machine:
    """``values``: within a run; ``run_us``: how much runs differ; ``drift_us``: by how much it gets slower from the
    first run to the last."""

    values: Values
    run_us: float = 0.0
    drift_us: float = 0.0


MACHINES: Mapping[str, Machine] = {
    "independent values": Machine(COVERED["independent"][0]),
    "stalls of 20 values, 1 % of all": Machine(partial(stalls, length=20, share=0.01)),
    "stalls of 500 values, 2 % of all": Machine(partial(stalls, length=500, share=0.02)),
    "autocorrelation over 1,000 values": Machine(COVERED["autocorrelation over 1,000 values"][0]),
    "runs differ by 2 µs": Machine(COVERED["independent"][0], run_us=2.0),
    "drift of 10 µs from first to last run": Machine(COVERED["independent"][0], drift_us=10.0),
    "stalls of 20, runs differ, drift": Machine(partial(stalls, length=20, share=0.01), run_us=1.0, drift_us=5.0),
}


def quantiles_of(machine: Machine, random: np.random.Generator, *, rounds: int, intervals: int,
                 order: tuple[str, ...] = ORDER, shift_us: float = 0.0) -> NDArray[np.float64]:
    """In µs, rounds x runs x quantiles; runs of B are slower by the shift."""
    found = np.empty((rounds, len(order), len(QUANTILES)))
    total = found[..., 0].size
    for number in range(total):
        place = divmod(number, len(order))
        values = machine.values(random, intervals, WIDTH) * SPAN_US
        values += random.normal(0.0, machine.run_us) if machine.run_us else 0.0
        values += machine.drift_us * number / total + (shift_us if order[place[1]] == "B" else 0.0)
        found[place] = np.quantile(values, QUANTILES, method="inverted_cdf")
    return found


@dataclass(frozen=True)
class Held:
    """Shares of all trials: intervals that hold the true effect, by quantile, and trials in which Holm's method shows
    an effect at some quantile where there is none."""

    covered: tuple[float, ...]
    false_effect: float
    width_us: tuple[float, ...]


def trials(machine: Machine, random: np.random.Generator, repetitions: int, *, rounds: int, intervals: int,
           shift_us: float) -> Held:
    """The program's interval of a paired effect, against the shift that was put in."""
    covered = np.zeros(len(QUANTILES))
    width = np.zeros(len(QUANTILES))
    wrong = 0
    for _ in range(repetitions):
        found = quantiles_of(machine, random, rounds=rounds, intervals=intervals, shift_us=shift_us)
        each = found[:, [1, 2]].mean(axis=1) - found[:, [0, 3]].mean(axis=1)
        ends = [student(column, column, 0.95) for column in each.T]
        covered += [lower <= shift_us <= upper for lower, upper, _ in ends]
        width += [upper - lower for lower, upper, _ in ends]
        none = [student(column - shift_us, column - shift_us, 0.95)[2] for column in each.T]
        wrong += any(holm(none, 0.05))
    return Held(tuple(covered / repetitions), wrong / repetitions, tuple(width / repetitions))
