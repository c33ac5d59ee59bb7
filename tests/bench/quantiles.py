# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals of quantiles of dependent values, and limits on growth at their limit, by simulation: ``make bench``.

Prints the tables of docs/method.md; with the number of repetitions as its argument.  Status 1 where wrong statements
are more frequent than the 99.9 % quantile of what the stated error would show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from tests.support.confidence import Coverage, coverage, growth_errors, most_errors
from tests.support.differing_runs import LEVELS, differences_contained, quantiles_contained
from tests.support.late_values import Values, gaussian_memory, levels, stalls, uniform
from tests.support.simulated import SEED, percent

VALUES: dict[str, Values] = {
    "independent": uniform,
    "stalls of 5 values, 1 % of all": partial(stalls, length=5, share=0.01),
    "stalls of 500 values, 2 % of all": partial(stalls, length=500, share=0.02),
    "autocorrelation over 50 values": partial(gaussian_memory, memory=50),
    "autocorrelation over 1,000 values": partial(gaussian_memory, memory=1000),
    "autocorrelation over 10,000 values": partial(gaussian_memory, memory=10_000),
    "regimes of 20 s": partial(levels, lasting=20),
    "regimes of 60 s": partial(levels, lasting=60),
}
INTERVALS = (120, 600)
QUANTILES = (0.5, 0.99)
Row = tuple[tuple[str, ...], bool]


def _cells(found: Coverage) -> tuple[str, ...]:
    if not found.given:
        return "never", "–", "–", percent(0.0)
    wrong = found.given * (1 - found.quantile)
    return percent(found.given), percent(found.quantile), percent(found.difference), percent(wrong)


def intervals(repetitions: int) -> Iterator[Row]:
    for number, (name, seconds, one_bucket, quantile) in enumerate(
        product(VALUES, INTERVALS, (False, True), QUANTILES)
    ):
        random = np.random.default_rng([SEED, number])
        found = coverage(VALUES[name], random, repetitions, seconds, quantile, one_bucket=one_bucket)
        stated = (name, f"{seconds} s", "one bucket" if one_bucket else "many buckets", f"{100 * quantile:g} %")
        yield (*stated, *_cells(found)), found.given * (1 - found.quantile) <= most_errors(repetitions)


def growth(repetitions: int) -> Iterator[Row]:
    for number, (name, seconds) in enumerate(product(VALUES, INTERVALS)):
        random = np.random.default_rng([SEED, 1000 + number])
        found = growth_errors(VALUES[name], random, repetitions, seconds)
        held = max(found.passed, found.failed) <= most_errors(repetitions)
        yield (name, f"{seconds} s", *map(percent, (1 - found.undecided, found.passed, found.failed))), held


RUNS, SPREADS = (3, 5), (0.0, 1.0, 3.0)
MEMORIES = {"independent": 0, "autocorrelation over 20 values": 20}


def between_runs(repetitions: int) -> Iterator[Row]:
    """Quantiles of a few runs whose levels differ; the stated confidence applies to these runs."""
    for number, ((name, memory), runs, spread) in enumerate(product(MEMORIES.items(), RUNS, SPREADS)):
        random = np.random.default_rng([SEED, 2000 + number])
        found = quantiles_contained(random, repetitions, runs, spread, memory=memory, quantiles=QUANTILES)
        for quantile, contained in zip(QUANTILES, found, strict=True):
            given = max(1, contained.given)
            shares = [some / given for some in (contained.these, contained.every, contained.another)]
            stated = (name, str(runs), f"{spread:g}", f"{100 * quantile:g} %", percent(contained.given / repetitions))
            yield (*stated, *map(percent, shares)), contained.given - contained.these <= most_errors(given) * given


def between_levels(repetitions: int) -> Iterator[Row]:
    """Differences of means over a few runs or boards, each with its own level."""
    for number, (name, runs, spread) in enumerate(product(LEVELS, RUNS, SPREADS)):
        random = np.random.default_rng([SEED, 3000 + number])
        held = differences_contained(random, repetitions, runs, spread, LEVELS[name])
        shares = [some / repetitions for some in held]
        yield (name, str(runs), f"{spread:g}", *map(percent, shares)), min(shares) >= 1 - most_errors(repetitions)


TITLES = (
    "| values | measured | values lie in | quantile | an interval is given | it contains the truth | difference of two "
    f"contains 0 | wrong, of all |\n|{'---|' * 8}",
    f"| values in one bucket | measured | decided | false PASS | false FAIL |\n|{'---|' * 5}",
    "| values | runs | runs differ by, of the standard error of one | quantile | an interval is given | it contains "
    f"that of these runs | of all possible runs | of another run |\n|{'---|' * 8}",
    "| levels | runs | runs differ by, of the standard error of one | the same boards | other boards | runs (Welch) | "
    f"twice as many pairs |\n|{'---|' * 7}",
)
TABLES = intervals, growth, between_runs, between_levels


def main(repetitions: int) -> int:
    all_held = True
    for title, rows in zip(TITLES, TABLES, strict=True):
        print(f"\n{title}")
        for cells, held in rows(repetitions):
            all_held = all_held and held
            print(f"| {' | '.join(cells)} |{'' if held else ' more than stated'}", flush=True)
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
