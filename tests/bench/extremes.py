# SPDX-License-Identifier: GPL-2.0-or-later
"""How often estimates beyond the maximum are refused, and hold what they say, by simulation: a part of ``make bench``.

Prints the tables of docs/method.md; with the number of repetitions as its argument.
"""

from __future__ import annotations

import sys

from scipy import stats

from fastenough.analysis.changes import change_points
from fastenough.analysis.estimates import Estimate, by_blocks, by_threshold
from tests.support.extreme_values import (
    HOUR_NS,
    REFUSED,
    SCALE_NS,
    SHAPES,
    Values,
    autocorrelated,
    gev,
    maxima,
    true_level_ns,
)

METHODS = {"GEV": by_blocks, "GPD": by_threshold}
STATED = 0.95


def _covers(found: Estimate, truth_ns: float) -> bool:
    return any(level.low_ns <= truth_ns <= level.high_ns for level in found.levels if level.mission_ns == HOUR_NS)


def sound(repetitions: int) -> None:
    """Of tails that are what they are taken for."""
    print("| maxima | shape | method | refused | interval covers |\n|---|---|---|---|---|")
    for n, method in ((100, "GEV"), (600, "GEV"), (600, "GPD")):
        for shape in SHAPES:
            found = [METHODS[method](maxima(gev(shape, n, seed))) for seed in range(repetitions)]
            given = [one for one in found if one.levels]
            covered = sum(_covers(one, true_level_ns(shape, HOUR_NS)) for one in given)
            short = covered < stats.binom.ppf(0.001, len(given), STATED)
            print(
                f"| {n} | {shape} | {method} | {1 - len(given) / repetitions:.1%} | {covered / len(given):.1%} |"
                + (" less than stated" if short else ""),
                flush=True,
            )


def unsound(repetitions: int) -> None:
    """Of what is no such tail."""
    print("| data | refused of 100 maxima (GEV) | 600 (GEV) | 600 (GPD) |\n|---|---|---|---|")
    for name, drawn in REFUSED.items():
        shares = [
            sum(not METHODS[method](maxima(drawn(n, seed))).levels for seed in range(repetitions)) / repetitions
            for n, method in ((100, "GEV"), (600, "GEV"), (600, "GPD"))
        ]
        print(f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)


def _shifted(seed: int, scales: float) -> Values:
    values = gev(0.0, 150, seed)
    values[100:] += scales * SCALE_NS
    return values


def changes(repetitions: int) -> None:
    """How often a change is told, of 150 maxima."""
    print("| data | a change is reported |\n|---|---|")
    cases = (
        {"independent": lambda seed: gev(0.2, 150, seed)}
        | {
            f"autocorrelation {correlation}": lambda seed, correlation=correlation: autocorrelated(
                150, seed, correlation
            )
            for correlation in (0.3, 0.5, 0.8)
        }
        | {
            f"location rises by {scales} at two thirds": lambda seed, scales=scales: _shifted(seed, scales)
            for scales in (1.0, 1.5)
        }
    )
    for name, drawn in cases.items():
        told = sum(bool(change_points(maxima(drawn(seed)))) for seed in range(repetitions))
        print(f"| {name} | {told / repetitions:.1%} |", flush=True)


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    sound(many)
    unsound(many)
    changes(many)
