# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether advised and planned lengths of a measurement are enough for a verdict: ``make bench``.

With ``--write`` both tables in docs/method.md are replaced.  Status 1 if fewer measurements have a verdict than stated,
or more have a wrong one, beyond the 99.9 % quantile of chance.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from fastenough.analysis.power import POWERS, ExpectedMisses, PlanQuestion
from fastenough.model import Requirement, Verdict
from tests.support.confidence import STATED, WIDTH
from tests.support.long_measurements import (
    FIRST,
    Advised,
    Bursts,
    after_advice,
    geometric_of,
    needed_length,
    of_length,
    shares,
)
from tests.support.simulated import Row, main, percent, table

METHOD = Path(__file__).resolve().parents[2] / "docs" / "method.md"
NAME = "simulated advice"
SEED = 20261128
"""Seed of these tables only.  The parameters of the planning must not be chosen by measurements of this seed."""
REPETITIONS, LEAST_PLANNED = 100, 1000
"""First minutes of each row, and least measurements of each planned length."""
VARIED = 5
"""Mean length of bursts whose lengths vary."""
VARIED_NAME = f"bursts of {VARIED} in the mean, geometric"
ADVISED: dict[str, tuple[Bursts, int | None]] = {
    "independent": (of_length(1), None),
    "independent, declared": (of_length(1), 1),
    "bursts of 20": (of_length(20), None),
    "bursts of 20, declared": (of_length(20), 20),
    VARIED_NAME: (geometric_of(VARIED), None),
}
"""By name: the machine, and the longest burst declared."""
ADVISED_TIMES = (0.3, 0.5, 0.8, 1.25, 2.0)
NEAR = 0.8
"""Multiple of the allowed rate at which the advice is given only where the first minute has too few disturbances by
chance, and is then too short; the report says so."""
LEAST_DECIDED = 0.8


def advised(repetitions: int, seed: int) -> Iterator[Row]:
    """Whether exactly the advised amount decides, of a first minute in which 15 disturbances are allowed, or 4 with
    the longest burst declared."""
    for number, (name, (machine, declared)) in enumerate(ADVISED.items()):
        results = []
        for place, times in enumerate(ADVISED_TIMES):
            allowed = (4 if declared else 15) * machine.mean / (FIRST * WIDTH)
            required = Requirement(1, allowed, 1 - STATED, declared)
            random = np.random.default_rng([seed, number, place])
            result = after_advice(machine, random, repetitions, times * allowed, required)
            needed = needed_length(machine, random, 100, times * allowed, required=required, goal=LEAST_DECIDED)
            results.append(result)
            cells = _advised_cells(result, needed)
            yield Row((f"{name}; {times:g} times the allowed rate", *cells), _as_stated(result, times == NEAR))
        for exempt, text in ((NEAR, f"all rates but {NEAR:g}"), (None, "all rates")):
            chosen = [result for result, times in zip(results, ADVISED_TIMES, strict=True) if times != exempt]
            total = Advised(
                sum(result.undecided for result in chosen),
                sum(result.decided for result in chosen),
                sum(result.wrong for result in chosen),
                tuple(times for result in chosen for times in result.times),
            )
            yield Row((f"{name}; {text}", *_advised_cells(total, None)), _as_stated(total, False))


def _as_stated(result: Advised, near: bool) -> bool:
    enough = near or result.decided >= stats.binom.ppf(0.001, result.given, LEAST_DECIDED)
    return bool(not result.given or (enough and result.wrong <= stats.binom.ppf(0.999, result.given, STATED)))


def _advised_cells(result: Advised, needed: float | None) -> tuple[str, ...]:
    median, longest = np.quantile(result.times or (0.0,), (0.5, 0.9))
    return (
        str(result.undecided),
        percent(result.given / max(1, result.undecided)),
        _share_with_error(result.decided, result.given),
        str(result.wrong),
        f"{median:.1f}",
        f"{longest:.1f}",
        *(("–", "–") if needed is None else (f"{needed:.1f}", f"{median / needed:.1f}")),
    )


ADVISED_COLUMNS = (
    "machine",
    "undecided",
    "advice is given",
    "then decided",
    "wrongly",
    "median advised length",
    "90 % quantile",
    "needed length",
    "median advised by needed",
)


def _share_with_error(some: int, of: int) -> str:
    if not of:
        return "–"
    share = some / of
    return f"{percent(share)} (± {100 * np.sqrt(share * (1 - share) / of):.1f})"


PLANNED_RATE = 5e-4
"""Allowed disturbances per activation of a planned measurement."""
PLANNED: dict[str, tuple[Bursts, ExpectedMisses]] = {
    "independent": (of_length(1), ExpectedMisses(0.0)),
    "bursts of 20": (of_length(20), ExpectedMisses(0.0, 20, 20.0)),
    VARIED_NAME: (
        geometric_of(VARIED),
        ExpectedMisses(0.0, VARIED, 4.0 * VARIED, float(np.sqrt(1 - 1 / VARIED))),
    ),
}
"""By name: the machine, and what its disturbances are like; the rate is set later."""


def planned(repetitions: int, seed: int) -> Iterator[Row]:
    """Whether a measurement as long as was planned for a machine of known rate has its verdict as often as stated."""
    cases = product(PLANNED.items(), (0.3, 0.5, 2.0), (False, True))
    for number, ((name, (machine, alike)), times, declared) in enumerate(cases):
        if alike.variation and (declared or times == 0.5):
            continue  # at half the allowed rate these take a million activations
        allowed = PLANNED_RATE * alike.burst
        required = Requirement(1, allowed, 1 - STATED, alike.burst if declared else None)
        misses = replace(alike, rate=times * allowed)
        plan = PlanQuestion(required, misses, 10**6).answer()
        random, cells, held = np.random.default_rng([seed, len(ADVISED) + number]), [], True
        for one in plan.durations:
            if one.n is None:
                cells += ["–", "–"]
                continue
            found = shares(machine, random, repetitions, one.n, misses.rate, required=required)
            share = found[plan.verdict is Verdict.FAIL]
            held = held and share * repetitions >= stats.binom.ppf(0.001, repetitions, one.power)
            cells += [f"{one.n * PLANNED_RATE:.1f}", percent(share)]
        declaration = ", declared" if declared else ""
        yield Row((f"{name}{declaration}; {times:g} times the allowed rate: {plan.verdict}", *cells), held)


def planned_title(repetitions: int) -> str:
    errors = " and ".join(percent(float(np.sqrt(power * (1 - power) / repetitions))) for power in POWERS)
    return (
        f"Measurements as long as `plan-test` says, at 1 kHz, {repetitions:,} times each (standard error at 80 and "
        f"95 %: {errors}):"
    )


PLANNED_COLUMNS = ("machine", "allowed disturbances, for 80 %", "have the verdict", "for 95 %", "have the verdict")


def advised_title(repetitions: int) -> str:
    return (
        "Each machine is first measured for one minute at 1 kHz. If this gives no verdict, it is measured further, so "
        f"that both measurements together have exactly the advised length. Each row has {repetitions:,} first minutes "
        "(± standard error). Lengths are relative to the first minute; the needed one is the least at which "
        f"{100 * LEAST_DECIDED:g} % of 100 measurements have a verdict:"
    )


def simulated(repetitions: int) -> tuple[str, bool]:
    """Both tables, and whether everything is within what is stated."""
    of_planned = max(LEAST_PLANNED, 4 * repetitions)
    parts: list[tuple[str, Sequence[str], list[Row]]] = [
        (advised_title(repetitions), ADVISED_COLUMNS, _printed(advised(repetitions, SEED))),
        (planned_title(of_planned), PLANNED_COLUMNS, _printed(planned(of_planned, SEED))),
    ]
    held = all(row.held for _, _, rows in parts for row in rows)
    stated = f"Simulated by `tests/bench/advice.py` (seed {SEED})."
    return "\n".join([stated, "", *(table(*part) for part in parts)]), held


def _printed(rows: Iterator[Row]) -> list[Row]:
    """The rows, each printed as soon as it is simulated."""
    done = []
    for row in rows:
        print(" | ".join(row.cells) + ("" if row.held else "  not as stated"), file=sys.stderr, flush=True)
        done.append(row)
    return done


if __name__ == "__main__":
    sys.exit(main(__doc__, METHOD, simulated, REPETITIONS, NAME))
