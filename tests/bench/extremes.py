# SPDX-License-Identifier: GPL-2.0-or-later
"""How often estimates beyond the maximum are refused, and hold what they say, by simulation: a part of ``make bench``.

Prints the tables of docs/method.md; with the number of repetitions as its argument.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from scipy import stats

from fastenough.analysis.changes import change_points
from fastenough.analysis.estimates import Estimate, by_blocks, by_threshold
from tests.support.extreme_values import (
    HOUR_NS,
    REFUSED,
    SCALE_NS,
    SHAPES,
    RareStalls,
    Values,
    autocorrelated,
    discrete,
    gev,
    maxima,
    periodic,
    true_level_ns,
    true_periodic_level_ns,
)

METHODS = {"GEV": by_blocks, "GPD": by_threshold}
STATED = 0.95
DAY_NS = 24 * HOUR_NS
EVERY_S = {"an hour": 3600, "a day": 86400}


def _covers(found: Estimate, truth_ns: float, mission_ns: float = HOUR_NS) -> bool:
    return any(level.low_ns <= truth_ns <= level.high_ns for level in found.levels if level.mission_ns == mission_ns)


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


def regular(repetitions: int) -> None:
    """Of tails that are discrete or periodic."""
    print("| data | method | refused | interval covers |\n|---|---|---|---|")
    cases: dict[str, tuple[Callable[[int, int], Values], float]] = {
        "clock with a step of a quarter of the scale": (discrete, true_level_ns(0.0, HOUR_NS)),
    }
    cases |= {
        f"each tenth second {scales:g} scales greater": (
            partial(periodic, scales=scales),
            true_periodic_level_ns(HOUR_NS, scales),
        )
        for scales in (0.5, 1.0, 1.5, 2.0, 3.0)
    }
    for name, (drawn, truth_ns) in cases.items():
        for method, by in METHODS.items():
            given = [found for seed in range(repetitions) if (found := by(maxima(drawn(600, seed)))).levels]
            covers = f"{sum(_covers(one, truth_ns) for one in given) / len(given):.1%}" if given else "–"
            print(f"| {name} | {method} | {1 - len(given) / repetitions:.1%} | {covers} |", flush=True)


def rare(repetitions: int, stalls: int, lengths: Sequence[float]) -> None:
    """Runs with so many stalls of a rare kind, of these lengths: the level of a day, which is mostly that of stalls."""
    print("| a stall in | shape of the others | times their maximum | GEV refused | covers | GPD refused | covers |")
    print("|---|---|---|---|---|---|---|")
    for every, shape, times in product(EVERY_S, SHAPES, lengths):
        kind = RareStalls(shape, EVERY_S[every], times)
        truth_ns = kind.level_ns(DAY_NS)
        cells = []
        for by in METHODS.values():
            found = [by(maxima(kind.values(seed, stalls))) for seed in range(repetitions)]
            given = [one for one in found if any(level.mission_ns == DAY_NS for level in one.levels)]
            covered = sum(_covers(one, truth_ns, DAY_NS) for one in given)
            cells += [f"{1 - len(given) / repetitions:.1%}", f"{covered} of {len(given)}" if given else "–"]
        print(f"| {every} |", f"{shape} | {times:g} |", " | ".join(cells), "|", flush=True)


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
    regular(many)
    rare(many // 10, 1, (2.0, 5.0, 20.0))
    rare(many // 10, 0, (2.0,))
    unsound(many)
    changes(many)
