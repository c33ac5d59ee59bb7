# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a verdict can be trusted: ``make bench``.  Error rates and coverages by simulation.

With ``--write`` the tables in docs/method.md are replaced by what was simulated.  Status 1 where an error rate is above
the 99.9 % quantile of what the stated one would show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from fastenough import words
from fastenough.analysis.disturbances import OrderSource
from fastenough.model import Requirement
from tests.support.confidence import (
    STATED,
    Again,
    Counted,
    Coverage,
    Errors,
    by_advice,
    by_chosen_limit,
    by_looks,
    by_night,
    coverage,
    errors,
    errors_of_cpus,
    errors_of_declared,
    errors_of_runs,
    made,
    most_errors,
)
from tests.support.late_values import (
    CHANGING,
    COVERED,
    DEPENDENT,
    STEADY,
    Machine,
    bursts,
    independent,
    singles_and_stalls,
)
from tests.support.simulated import SEED, Row, main, percent, table

METHOD = Path(__file__).resolve().parents[2] / "docs" / "method.md"
CPUS = 8
SHORT, LONG = (120, 25), (600, 80)
"""Intervals, and about how many disturbances they hold."""


def _rate(intervals: int, disturbances: float, size: float) -> float:
    return disturbances * size / (intervals * 1000)


def _error_row(name: str, found: Errors, most: float, promised: bool, more: Sequence[str] = ()) -> Row:
    held = not promised or max(found.passed, found.failed) <= most
    return Row((name, percent(found.passed), percent(found.failed), percent(found.undecided), *more), held)


def rates(repetitions: int, random: np.random.Generator, scales: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """PASS and FAIL by the rate per activation, from ten disturbances on."""
    most = most_errors(repetitions)
    for names, promised in ((STEADY, True), (CHANGING, False)):
        for name, (machine, size) in names.items():
            for intervals, disturbances in scales:
                allowed = _rate(intervals, disturbances, size)
                counts = made(machine, random, repetitions, intervals, allowed)
                exact = errors(counts, allowed)
                imported = errors(counts, allowed, OrderSource.INTERVALS)
                yield _error_row(
                    f"{name}; about {disturbances} disturbances",
                    exact,
                    most,
                    promised,
                    (percent(exact.changing), percent(imported.passed), percent(imported.failed)),
                )


STALL = 60
"""Activations that a rare stall makes late, among singles that are as many."""
STALLS = (0.5, 2.0, 5.0)
"""So many of them are expected in a measurement."""


def mixed(repetitions: int, seed: int) -> Iterator[Row]:
    """Many single late activations, and so few stalls that what they add was hardly seen, with none declared."""
    for name, counts, allowed in mixtures(repetitions, seed):
        exact, imported = errors(counts, allowed), errors(counts, allowed, OrderSource.INTERVALS)
        yield _error_row(
            name, exact, 1.0, False, (percent(exact.changing), percent(imported.passed), percent(imported.failed))
        )


def mixed_declared(repetitions: int, seed: int) -> Iterator[Row]:
    """The same, where it was declared how long a stall can be."""
    most = most_errors(repetitions)
    for name, counts, allowed in mixtures(repetitions, seed):
        yield _error_row(f"{name}, declared", errors(counts, allowed, longest=STALL), most, True)


def mixtures(repetitions: int, seed: int) -> Iterator[tuple[str, Counted, float]]:
    """By name: what was counted of each measurement, and what is allowed."""
    machine, intervals = partial(singles_and_stalls, length=STALL), SHORT[0]
    for number, stalls in enumerate(STALLS):
        allowed = 2 * stalls * STALL / (intervals * 1000)
        counts = made(machine, np.random.default_rng([seed, number]), repetitions, intervals, allowed)
        yield f"singles, and as many in stalls of {STALL}; about {stalls:g} stalls", counts, allowed


def fewer(repetitions: int, random: np.random.Generator) -> Iterator[Row]:
    """PASS with a declared longest burst, where disturbances are too few for a rate."""
    most = most_errors(repetitions)
    for length in (1, 20, 500):
        for disturbances in (3.1, 6.5):
            allowed = disturbances * length / 120_000
            counts = made(partial(bursts, length=length), random, repetitions, 120, allowed)
            yield _error_row(
                f"bursts of {length}, declared; about {disturbances:g} disturbances",
                errors(counts, allowed, longest=length),
                most,
                True,
            )


def several_cpus(repetitions: int, random: np.random.Generator) -> Iterator[Row]:
    """Eight CPUs judged together."""
    most = most_errors(repetitions)
    intervals, disturbances = SHORT
    cases: dict[str, tuple[Machine, float]] = {
        "independent": (independent, 1),
        "bursts of 20": (partial(bursts, length=20), 20),
    }
    for name, (machine, size) in cases.items():
        allowed = _rate(intervals, 2 * disturbances, size)
        each = [made(machine, random, repetitions, intervals, allowed) for _ in range(CPUS)]
        yield _error_row(f"{name}; {CPUS} CPUs, each by itself", errors_of_cpus(each, allowed), most, True)
        yield _error_row(
            f"{name}; {CPUS} CPUs, the same stalls on all", errors_of_cpus([each[0]] * CPUS, allowed), most, True
        )


DISTURBANCES = (6.5, 15.0, 40.0)
"""So many are expected in 10 min, of machines whose disturbances may depend on each other."""


def dependent(repetitions: int, seed: int) -> Iterator[Row]:
    """One cause makes several disturbances, seconds apart, and the longest burst declared is one activation."""
    most, intervals = most_errors(repetitions), LONG[0]
    for number, ((name, (machine, size)), expected) in enumerate(product(DEPENDENT.items(), DISTURBANCES)):
        allowed = expected / (intervals * 1000)
        counts = made(machine, np.random.default_rng([seed, number]), repetitions, intervals, allowed)
        found = errors_of_declared(counts, allowed, size)
        yield Row(
            (
                f"{name}; about {expected:g}",
                *map(percent, (found.passed, found.failed, found.misstated, found.passed_unseen, found.passed_at_half)),
            ),
            found.worst <= most,
        )


@dataclass(frozen=True)
class RunCase:
    """Runs of one CPU.  ``shape``: of the gamma distribution that their rates are drawn from, whose square root is mean
    over standard deviation; None: one rate."""

    name: str
    machine: str
    runs: int
    shape: float | None = None

    @property
    def promised(self) -> bool:
        return self.shape is None and self.machine in STEADY


RUN_CASES = (
    RunCase("of one rate", "bursts of 20", 5),
    RunCase("rates differ by a quarter", "bursts of 20", 5, 16.0),
    RunCase("rates differ by half", "bursts of 20", 5, 4.0),
    RunCase("rates differ as much as they are", "bursts of 20", 5, 1.0),
    RunCase("of one rate", "independent", 30),
    RunCase("of one rate", "bursts of 100", 30),
    RunCase("of one rate", "drift from 0 to twice the rate", 5),
    RunCase("of one rate", "drift from 0 to twice the rate", 30),
)


def several_runs(repetitions: int, seed: int) -> Iterator[Row]:
    """Runs of one CPU, of which each may have a rate of its own; their mean in the long run is what is allowed."""
    most, (intervals, disturbances) = most_errors(repetitions), SHORT
    for number, case in enumerate(RUN_CASES):
        machine, size = (STEADY | CHANGING)[case.machine]
        random, allowed = np.random.default_rng([seed, number]), _rate(intervals, disturbances, size)
        of = (repetitions, case.runs)
        drawn = np.ones(of) if case.shape is None else random.gamma(case.shape, 1 / case.shape, of)
        found = errors_of_runs(machine, random, allowed * drawn, intervals, allowed)
        refused = (percent(found.changing), percent(found.unsteady))
        yield _error_row(f"{case.machine}; {case.runs} runs, {case.name}", found, most, case.promised, refused)


def advised(repetitions: int, seed: int) -> Iterator[Row]:
    """Looking again and again, after as many more samples as the program advises."""
    most = most_errors(repetitions)
    intervals, disturbances = SHORT
    for number, name in enumerate(("independent", "bursts of 20", "bursts of 100")):
        machine, size = STEADY[name]
        allowed = _rate(intervals, disturbances, size)
        found = by_advice(machine, np.random.default_rng([seed, number]), repetitions, intervals, allowed)
        yield _error_row(f"{name}; measured on as advised, up to 5 looks", found, most, True)


NIGHTS = 30
A_MONTH = 1 - STATED / NIGHTS
"""The confidence of each night with which a month errs no more often than one measurement at the usual one."""


GATED: dict[str, tuple[Machine, float, float, int | None]] = {
    "independent": (independent, 1, 25, None),
    "bursts of 20": (partial(bursts, length=20), 20, 25, None),
    "bursts of 20, declared": (partial(bursts, length=20), 20, 6.5, 20),
}
"""By name: the machine, how long its bursts are, how many are allowed in a night, and the longest one declared."""
AS_BAD = ((0.5, 1 - STATED), (1.0, 1 - STATED), (1.5, 1 - STATED), (1.0, A_MONTH))


LOOKS = (1, 2, 10, 50)
LOOKED_AT = GATED | {
    "clusters of 3 late activations, 3 s apart, declared as 1": (
        *DEPENDENT["clusters of 3 late activations, 3 s apart"],
        6.5,
        1,
    )
}
EACH_LOOK = 30
"""Intervals that are measured for each."""


def looked_again(repetitions: int, seed: int) -> Iterator[Row]:
    """Looking until it passes, at a machine just at the limit; where each look measures anew and is judged alone, as
    the nights of a gate are, no error is promised for all of them together."""
    most = most_errors(repetitions)
    for name, again in product(LOOKED_AT, Again):
        machine, size, disturbances, longest = LOOKED_AT[name]
        allowed = _rate(EACH_LOOK, disturbances, size)
        random = np.random.default_rng([seed, list(LOOKED_AT).index(name)])
        counts = made(machine, random, repetitions * LOOKS[-1], EACH_LOOK, allowed)
        passed, failed = by_looks(counts, LOOKS[-1], Requirement(1, allowed, 1 - STATED, longest), again)
        wrong = [found[:, :looks].any(axis=1).mean() for found in (passed, failed) for looks in LOOKS]
        held = again is Again.ALONE or max(wrong) <= most
        yield Row((f"{name}; {again}", *map(percent, (*wrong[: len(LOOKS)], wrong[-1]))), held)


LOADS, BOARDS = 4, 10
LIMITS = np.geomspace(0.5, 2.0, 13)
"""True rates above the limits among which one is chosen, in units of the allowed one."""


def attacked(repetitions: int, seed: int) -> Iterator[Row]:
    """Ways to get a PASS of a machine just at its limit; of several boards any one errs as often as stated."""
    machine, size, looks = partial(bursts, length=20), 20, 20
    allowed, random = _rate(EACH_LOOK, 6.5, size), np.random.default_rng(seed)
    counts = made(machine, random, repetitions * looks, EACH_LOOK, allowed)
    required = Requirement(1, allowed, 1 - STATED, size)
    alone, anew, growing = (
        by_looks(counts, looks, required, again)[0] for again in (Again.ALONE, Again.NEW, Again.ALL)
    )
    last = growing[:, -1]
    whole, boards = repetitions // LOADS * LOADS, repetitions // BOARDS * BOARDS
    for name, passed, promised in (
        ("one run of 10 min, judged when it has ended", last, True),
        (f"the same, ended as soon as it passes, with {looks} looks", growing.any(axis=1), True),
        (f"{looks} runs of {EACH_LOOK} s until one passes, each with the evidence of all", anew.any(axis=1), True),
        (f"{looks} runs of {EACH_LOOK} s until one passes, each judged alone", alone.any(axis=1), False),
        ("the limit chosen after looking", by_chosen_limit(random, repetitions, 120, 15 / 120_000, LIMITS), True),
        (f"{LOADS} loads, all of which must pass", last[:whole].reshape(-1, LOADS).all(axis=1), True),
        (f"the best of {LOADS} loads, the others not named", last[:whole].reshape(-1, LOADS).any(axis=1), False),
        (f"the best of {BOARDS} boards", last[:boards].reshape(-1, BOARDS).any(axis=1), False),
    ):
        share = float(passed.mean())
        error = float(np.sqrt(share * (1 - share) / passed.size))
        yield Row((name, percent(share), percent(error)), not promised or share <= most_errors(passed.size))


def gated(months: int, seed: int) -> Iterator[Row]:
    """Thirty nights, each judged by its own data, on a machine within, at and beyond the limit."""
    for number, (name, (times, sure)) in enumerate(product(GATED, AS_BAD)):
        machine, size, disturbances, longest = GATED[name]
        allowed = _rate(SHORT[0], disturbances, size)
        random = np.random.default_rng([seed, number])
        counts = made(machine, random, months * NIGHTS, SHORT[0], times * allowed)
        found = by_night(counts, NIGHTS, Requirement(1, allowed, sure, longest))
        wrong = max(found.passed * (times >= 1), found.failed * (times <= 1))
        held = wrong <= most_errors(months * NIGHTS, 1 - sure) and (
            sure < A_MONTH or max(found.any_passed, found.any_failed) <= most_errors(months)
        )
        yield Row(
            (
                f"{name}; {times:g} times the allowed rate",
                percent(sure, 2),
                percent(found.passed),
                percent(found.failed),
                percent(found.any_passed),
                percent(found.any_failed),
            ),
            held,
        )


QUANTILES = (0.5, 0.99, 0.999)


def covered(repetitions: int, seed: int) -> Iterator[Row]:
    """Intervals of quantiles and of differences."""
    for number, (name, quantile) in enumerate(product(COVERED, QUANTILES)):
        yield covered_row(repetitions, np.random.default_rng([seed, number]), name, quantile)


def covered_row(repetitions: int, random: np.random.Generator, name: str, quantile: float) -> Row:
    values, promised = COVERED[name]
    found = coverage(values, random, repetitions, 120, quantile)
    few = found.given < 0.5
    held = not promised or few or min(found.quantile, found.difference) >= 1.0 - most_errors(repetitions)
    return Row((name, f"{100 * quantile:g} %", *_covered_text(found)), held)


def _covered_text(found: Coverage) -> tuple[str, ...]:
    if not found.given:
        return "–", "–", "never"
    return percent(found.quantile), percent(found.difference), percent(found.given)


ERRORS = ("machine", "false PASS", "false FAIL", "no verdict")


def simulated(repetitions: int) -> tuple[str, bool]:
    """All tables, and whether everything is within what is stated."""
    random = np.random.default_rng(SEED)
    fewer_repetitions, months = max(20, repetitions // 4), max(20, repetitions // 10)
    parts = [
        (
            f"Rate per activation, {repetitions:,} measurements each of 2 min (25 disturbances) or 10 min (80) "
            "at 1 kHz:",
            (*ERRORS, "refused as not stationary", "false PASS, intervals only", "false FAIL, intervals only"),
            [*rates(repetitions, random, (SHORT, LONG)), *mixed(repetitions, SEED)],
        ),
        (
            f"With the longest burst declared, {repetitions:,} measurements each:",
            ERRORS,
            [*fewer(repetitions, random), *mixed_declared(repetitions, SEED)],
        ),
        (
            f"Disturbances that may depend on each other, the longest burst declared as 1, {fewer_repetitions:,} "
            "measurements each of 10 min at 1 kHz:",
            (
                "machine",
                "false PASS, something late seen",
                "false FAIL",
                "'at most one in X' wrong",
                "PASS, nothing late seen",
                "PASS at half the rate",
            ),
            list(dependent(fewer_repetitions, SEED)),
        ),
        (
            f"Eight CPUs judged together, {repetitions:,} measurements each:",
            ERRORS,
            list(several_cpus(repetitions, random)),
        ),
        (
            f"Runs of 2 min judged together, {fewer_repetitions:,} times each; where their rates differ, the mean over "
            "all possible runs equals the allowed rate:",
            (*ERRORS, "not merged", "refused as not stationary"),
            list(several_runs(fewer_repetitions, SEED)),
        ),
        (
            f"Looks after the advised amounts of data, {fewer_repetitions:,} times each:",
            ERRORS,
            list(advised(fewer_repetitions, SEED)),
        ),
        (
            f"Looks until a PASS, with {EACH_LOOK} s at 1 kHz more at each look, {months:,} times each:",
            (
                "machine",
                *(f"false PASS within {words.counted(looks, 'look')}" for looks in LOOKS),
                f"false FAIL within {LOOKS[-1]}",
            ),
            list(looked_again(months, SEED)),
        ),
        (
            "Ways to get a PASS of a machine just at its limit, bursts of 20, declared, "
            f"{fewer_repetitions:,} times each:",
            ("machine, and what is tried", "false PASS", "standard error"),
            list(attacked(fewer_repetitions, SEED)),
        ),
        (
            f"Nights of 2 min at 1 kHz, each judged by its own data, {months:,} months of {NIGHTS}:",
            ("machine", "confidence", "nights that pass", "nights that fail", "months with PASS", "months with FAIL"),
            list(gated(months, SEED)),
        ),
        (
            f"Intervals stated as 95 %, {repetitions:,} measurements each of 2 min at 1 kHz:",
            (
                "values",
                "quantile",
                "interval contains the truth",
                "difference of two contains 0",
                "an interval is given",
            ),
            list(covered(repetitions, SEED)),
        ),
    ]
    held = all(row.held for _, _, rows in parts for row in rows)
    stated = (
        f"Simulated by `tests/bench/confidence.py` (seed {SEED}). Stated error: {percent(STATED)}; "
        f"accepted in {repetitions:,} measurements: at most {percent(most_errors(repetitions))}, "
        f"in {fewer_repetitions:,}: {percent(most_errors(fewer_repetitions))}."
    )
    return "\n".join([stated, "", *(table(*part) for part in parts)]), held


if __name__ == "__main__":
    sys.exit(main(__doc__, METHOD, simulated))
