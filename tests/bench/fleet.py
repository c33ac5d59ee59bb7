# SPDX-License-Identifier: GPL-2.0-or-later
"""Error rates of statements about a type of board, by simulation: a part of ``make bench``.

Prints the tables of docs/method.md; with the number of repetitions as its argument.  Status 1 where an error rate is
above the 99.9 % quantile of what the stated one would show.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, starmap

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fastenough.analysis.board_rates import chance_of_homogeneity, log_evidence_of_share, rate_of_new_board
from fastenough.analysis.fleet import HOMOGENEITY_LEVEL, LEAST_BOARDS
from fastenough.analysis.sequential import log_required
from tests.support.simulated import SEED, percent

STATED, SURE = 0.05, 0.95
BOARDS = (3, 5, 10, 30)
VARIATIONS = (0.0, 0.3, 1.0)
DISTURBANCES = (1, 5, 50)
SHARES = (0.5, 0.8, 0.9)
MOST_BOARDS = 200

Rates = NDArray[np.float64]
Counts = NDArray[np.int64]
Drawn = Callable[[np.random.Generator, float, tuple[int, int]], Rates]


def gamma(random: np.random.Generator, variation: float, shape: tuple[int, int]) -> Rates:
    """Rates with mean 1 and this coefficient of variation."""
    return random.gamma(variation**-2, variation**2, shape) if variation else np.ones(shape)


def log_normal(random: np.random.Generator, variation: float, shape: tuple[int, int]) -> Rates:
    """The same, not as it is assumed."""
    spread = np.sqrt(np.log1p(variation**2))
    return random.lognormal(-(spread**2) / 2, spread, shape)


def _most(repetitions: int) -> float:
    return float(stats.binom.ppf(0.999, repetitions, STATED)) / repetitions


def shares(repetitions: int, random: np.random.Generator) -> bool:
    """Boards are added one by one, and the type is judged after each."""
    print(
        "| share required, and true | of the boards within, shown | false PASS, at any look | PASS if all are within |"
    )
    print("|---|---|---|---|")
    held = True
    for share in SHARES:
        allowed, required = (1.0 - share) * SURE, log_required(SURE)
        decided = {
            (without, boards): log_evidence_of_share(without, boards, allowed) >= required
            for boards in range(LEAST_BOARDS, MOST_BOARDS + 1)
            for without in range(boards + 1)
        }
        for power in (1.0, 0.95):
            wrong, right = (
                statistics.fmean(_ever_passes(random, decided, within, power) for _ in range(repetitions))
                for within in (share, 1.0)
            )
            held &= bool(wrong <= _most(repetitions))
            print(f"| {percent(share, 0)} | {percent(power, 0)} | {percent(wrong)} | {percent(right)} |", flush=True)
    return held


def _ever_passes(
    random: np.random.Generator, decided: dict[tuple[int, int], bool], within: float, power: float
) -> bool:
    """Whether it does at one of the looks; a board that is not within is shown to be with the stated error."""
    is_within = random.random(MOST_BOARDS) < within
    shown = random.random(MOST_BOARDS) < np.where(is_within, power, STATED)
    without = np.cumsum(~shown).tolist()
    return any(decided[without[boards - 1], boards] for boards in range(LEAST_BOARDS, MOST_BOARDS + 1))


@dataclass(frozen=True)
class _Fleet:
    """``mean``: disturbances that are expected on a board; ``variation``: coefficient of variation of their rates."""

    boards: int
    mean: int
    variation: float

    def drawn(self, repetitions: int, distribution: Drawn = gamma) -> tuple[Rates, Counts]:
        """Rates of new boards, and what is counted on the boards that are measured; the same whatever else is drawn."""
        random = np.random.default_rng([SEED, self.boards, self.mean, round(10 * self.variation)])
        rates = self.mean * distribution(random, self.variation, (repetitions, self.boards + 1))
        return rates[:, 0], random.poisson(rates[:, 1:])


def new_boards(repetitions: int) -> bool:
    """Coverage of the bound for a new board, where rates are distributed as assumed, and otherwise."""
    print("| boards | disturbances on each | variation | bound, of the mean rate | covered | covered, log-normal |")
    print("|---|---|---|---|---|---|")
    held = True
    for fleet in starmap(_Fleet, product(BOARDS, DISTURBANCES, VARIATIONS)):
        covered, bound = _coverage(fleet, *fleet.drawn(repetitions))
        held &= 1.0 - covered <= _most(repetitions)
        other = "–"
        if fleet.variation:
            other = percent(_coverage(fleet, *fleet.drawn(repetitions, log_normal))[0])
        print(
            f"| {fleet.boards} | {fleet.mean} | {fleet.variation:g} | {bound:.2g} | {percent(covered)} | {other} |",
            flush=True,
        )
    return held


def _coverage(fleet: _Fleet, rates: Rates, counts: Counts) -> tuple[float, float]:
    """Share of new boards within the bound, and the median of the bound in units of the mean rate."""
    time = np.ones(fleet.boards)
    bounds = np.array([rate_of_new_board(row, time, SURE) for row in counts], dtype=np.float64)
    return float(np.mean(rates <= bounds)), float(np.median(bounds)) / fleet.mean


def homogeneity(repetitions: int) -> bool:
    """How often boards are called different."""
    print("| boards | disturbances on each |" + "".join(f" variation {one:g} |" for one in VARIATIONS))
    print("|---|---|" + "---|" * len(VARIATIONS))
    held = True
    for boards, mean in product(BOARDS, DISTURBANCES):
        objects = [_objections(_Fleet(boards, mean, variation).drawn(repetitions)[1]) for variation in VARIATIONS]
        held &= objects[0] <= _most(repetitions)
        print(f"| {boards} | {mean} |" + "".join(f" {percent(one)} |" for one in objects), flush=True)
    return held


def _objections(counts: Counts) -> float:
    time = np.ones(counts.shape[1])
    return float(np.mean([chance_of_homogeneity(row, time) <= HOMOGENEITY_LEVEL for row in counts]))


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    sound = [shares(many, np.random.default_rng(SEED)), new_boards(many), homogeneity(many)]
    sys.exit(0 if all(sound) else 1)
