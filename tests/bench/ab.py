# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the effect of an A/B trial can be trusted, and how soon it is decided, by simulation: ``make bench``.

With ``--write`` the tables in docs/compare.md are replaced by what was simulated.  Status 1 where what is stated does
not hold within the 99.9 % quantile of chance.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from tests.support.confidence import most_errors
from tests.support.paired_truth import MACHINES, QUANTILES, Held, courses, trials
from tests.support.simulated import SEED, main, percent

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compare.md"
ROUNDS, LONG, INTERVALS, SHIFT_US = 8, 20, 10, 1.0
COURSES = tuple(product((0.0, 0.2), (0.05, 0.1), (0.0, 0.1, 0.3, 1.0)))
"""How much another job adds while it is busy, in 2 of every 4 runs, how much runs differ, and the true effect."""


def rows(repetitions: int) -> Iterator[tuple[str, Held]]:
    """Each machine with numbers of its own, so that one more changes no other."""
    for place, (name, machine) in enumerate(MACHINES.items()):
        random = np.random.default_rng([SEED, place])
        yield name, trials(machine, random, repetitions, rounds=ROUNDS, intervals=INTERVALS, shift_us=SHIFT_US)


def _machines(repetitions: int, most: float) -> tuple[list[str], bool]:
    heads = [f"at {100 * quantile:g} % (mean width)" for quantile in QUANTILES]
    lines = [
        f"Simulated by `tests/bench/ab.py` (seed {SEED}), {repetitions:,} trials each of at most {ROUNDS} rounds of "
        f"runs of {INTERVALS} s at 1 kHz; the true effect is {SHIFT_US:g} µs. Stated: 95 % and 5 %; accepted "
        f"in this many trials: {percent(1 - most)} and {percent(most)}.",
        "",
        "| machine | "
        + " | ".join(f"interval contains the effect {head}" for head in heads)
        + " | an effect is shown without a true one, after any round | decided (median rounds) | a period is shown |",
        "|" + "---|" * (len(heads) + 4),
    ]
    held = True
    for name, found in rows(repetitions):
        cells = [
            f"{percent(share)} ({width:.2g} µs)" for share, width in zip(found.covered, found.width_us, strict=True)
        ]
        cells += [percent(found.false_effect), f"{percent(found.decided)} ({found.rounds:g})", percent(found.periods)]
        lines.append("| " + " | ".join([name, *cells]) + " |")
        held = held and min(found.covered) >= 1 - most and found.false_effect <= most
    return [*lines, ""], held


def _rounds(rounds: int) -> str:
    return str(rounds) if rounds else "–"


def _courses(repetitions: int, most: float) -> tuple[list[str], bool]:
    lines = [
        f"Rounds until an effect is shown, {repetitions:,} trials each of at most {ROUNDS} rounds (without an effect "
        f"{LONG}), looked at after each; the other job adds its share in 2 of every 4 runs. For comparison the share "
        "of trials in which Student's interval shows an effect at a single look after five rounds:",
        "",
        "| true effect | runs differ by | another job adds | an effect is shown | half of the trials after | "
        "80 % after | Student, 5 rounds |",
        "|" + "---|" * 7,
    ]
    held = True
    for place, (busy, run, effect) in enumerate(COURSES):
        found = courses(
            np.random.default_rng([SEED, place]),
            repetitions,
            effect=effect,
            run_share=run,
            busy_share=busy,
            rounds=ROUNDS if effect else LONG,
        )
        held = held and (effect > 0 or found.shown <= most)
        cells = [
            *(percent(share, 0) for share in (effect, run, busy)),
            percent(found.shown),
            _rounds(found.half),
            _rounds(found.most),
            percent(found.fixed),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""], held


def table(repetitions: int) -> tuple[str, bool]:
    """The tables, and whether all of it is within what is stated."""
    most = most_errors(repetitions)
    machines, one = _machines(repetitions, most)
    relative, other = _courses(repetitions, most)
    return "\n".join([*machines, *relative]), one and other


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, table))
