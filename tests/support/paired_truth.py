# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the interval of a paired effect holds the truth, and how soon it is decided: on made-up machines whose true
difference is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.paired import (
    LEAST_ROUNDS,
    PERIOD_ERROR,
    ROUND,
    evidence_required,
    order_of_arms,
    period_of,
    student,
)
from fastenough.analysis.paired_evidence import BoolArray, evidence_together, sequential, sequential_evidence
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


CONFIDENCE = 0.95
PAIRS = ROUND // 2
"""Of a round."""


def order_of(random: np.random.Generator, rounds: int, least_of_order: int = 0) -> tuple[str, ...]:
    """As the program draws it."""
    return order_of_arms(str(random.integers(1 << 32)), rounds, least_of_order)


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


def together(differences: NDArray[np.float64], change_first: BoolArray) -> list[float]:
    """Evidence of an effect on each figure, judged together; ``differences``: pairs x figures."""
    return evidence_together([sequential_evidence(column, column, change_first) for column in differences.T])


def decided_after(differences: NDArray[np.float64], change_first: BoolArray, of: Callable[[list[float]], float]) -> int:
    """Rounds after which the evidence decides, at a look after each from the third on; 0: none does."""
    for rounds in range(LEAST_ROUNDS, differences.shape[0] // PAIRS + 1):
        pairs = rounds * PAIRS
        if of(together(differences[:pairs], change_first[:pairs])) >= evidence_required(CONFIDENCE):
            return rounds
    return 0


def _of_tail(evidence: list[float]) -> float:
    return evidence[-1]


@dataclass(frozen=True)
class Held:
    """Shares of all trials: ``covered``: intervals that hold the true effect at the end of the trial, by quantile;
    ``false_effect``: trials in which a look after any round shows an effect at some quantile where there is none;
    ``decided``: those that end before the last round, or with it, by an effect; ``periods``: those in which a period is
    shown.  ``rounds``: the median of those that decide."""

    covered: tuple[float, ...]
    false_effect: float
    width_us: tuple[float, ...]
    periods: float
    decided: float
    rounds: float


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
    wrong, periods, ended = 0, 0, []
    for _ in range(repetitions):
        now = order or order_of(random, rounds)
        without, changed, first = sides(quantiles_of(machine, random, now, intervals=intervals, shift_us=shift_us), now)
        differences = changed - without
        wrong += decided_after(differences - shift_us, first, max) > 0
        done = decided_after(differences, first, _of_tail)
        ended += [done] if done else []
        pairs = (done or rounds) * PAIRS
        found = [sequential(column, column, first[:pairs], CONFIDENCE) for column in differences[:pairs].T]
        covered += [each.lower <= shift_us <= each.upper for each in found]
        width += [each.upper - each.lower for each in found]
        period = period_of(without[:, 0], changed[:, 0], first)
        periods += period is not None and period[1] <= PERIOD_ERROR
    return Held(
        tuple(covered / repetitions),
        wrong / repetitions,
        tuple(width / repetitions),
        periods / repetitions,
        len(ended) / repetitions,
        float(np.median(ended or [rounds])),
    )


@dataclass(frozen=True)
class Course:
    """Of trials of a relative effect: the share that shows one, after how many rounds half and four in five of all
    trials do (0: fewer ever do), and the share in which a single look at a fixed number of rounds shows it."""

    shown: float
    half: int
    most: int
    fixed: float


def courses(
    random: np.random.Generator, repetitions: int, *, effect: float, run_share: float, busy_share: float, rounds: int
) -> Course:
    """Trials of one figure of which runs differ by a share of it, and which is greater by another share in 2 of every 4
    runs; single looks have five rounds, and Student's interval."""
    after, fixed = np.zeros(repetitions, int), 0
    for number in range(repetitions):
        order = order_of(random, rounds)
        run = np.arange(len(order)) + random.integers(4)
        figures = 1 + run_share * random.normal(0, 1, len(order)) + busy_share * (run % 4 < 2)
        figures *= np.where(np.array(order) == "B", 1 + effect, 1)
        without, changed, first = sides(figures[:, None], order)
        difference = changed - without
        after[number] = decided_after(difference, first, max)
        few, first_few = difference[: 5 * PAIRS, 0], first[: 5 * PAIRS]
        fixed += min(first_few.sum(), (~first_few).sum()) >= 2 and student(few, few, first_few, CONFIDENCE)[2] <= 0.05
    shown = np.sort(after[after > 0])
    half, most = (int(shown[place]) if (place := int(share * repetitions)) < shown.size else 0 for share in (0.5, 0.8))
    return Course(shown.size / repetitions, half, most, fixed / repetitions)
