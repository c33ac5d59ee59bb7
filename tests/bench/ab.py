# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the effect of an A/B trial can be trusted: coverage of its interval by simulation, ``make bench``.

With ``--write`` the table in docs/compare.md is replaced by what was simulated.  Status 1 where what is stated does not
hold within the 99.9 % quantile of chance.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.support.confidence import most_errors
from tests.support.paired_truth import MACHINES, QUANTILES, Held, trials
from tests.support.simulated import SEED, main, percent

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compare.md"
ROUNDS, INTERVALS, SHIFT_US = 5, 10, 1.0


def rows(repetitions: int) -> Iterator[tuple[str, Held]]:
    """Each machine with numbers of its own, so that one more changes no other."""
    for place, (name, machine) in enumerate(MACHINES.items()):
        random = np.random.default_rng([SEED, place])
        yield name, trials(machine, random, repetitions, rounds=ROUNDS, intervals=INTERVALS, shift_us=SHIFT_US)


def table(repetitions: int) -> tuple[str, bool]:
    """The table, and whether all of it is within what is stated."""
    most = most_errors(repetitions)
    heads = [f"at {100 * quantile:g} % (mean width)" for quantile in QUANTILES]
    lines = [
        f"Simulated by `tests/bench/ab.py` (seed {SEED}), {repetitions:,} trials each of {ROUNDS} rounds of runs "
        f"of {INTERVALS} s at 1 kHz; the true effect is {SHIFT_US:g} µs. Stated: 95 % and 5 %; accepted "
        f"in this many trials: {percent(1 - most)} and {percent(most)}.",
        "",
        "| machine | "
        + " | ".join(f"interval contains the effect {head}" for head in heads)
        + " | an effect is shown without a true one | a period is shown |",
        "|" + "---|" * (len(heads) + 3),
    ]
    held = True
    for name, found in rows(repetitions):
        cells = [
            f"{percent(share)} ({width:.2g} µs)" for share, width in zip(found.covered, found.width_us, strict=True)
        ]
        lines.append("| " + " | ".join([name, *cells, percent(found.false_effect), percent(found.periods)]) + " |")
        held = held and min(found.covered) >= 1 - most and found.false_effect <= most
    return "\n".join([*lines, ""]), held


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, table))
