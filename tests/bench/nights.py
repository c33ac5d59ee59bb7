# SPDX-License-Identifier: GPL-2.0-or-later
"""When a gate that adds up nights notices a regression, and how often it errs, by simulation: a part of ``make bench``.

Prints the table of docs/method.md; with the number of repetitions as its argument.  Status 1 where an error is above
the 99.9 % quantile of what the stated one would show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from tests.support.confidence import most_errors
from tests.support.nights import Growth, Machine, alone, baseline_of, by_evidence
from tests.support.simulated import SEED, percent

QUANTILE = 0.99
NIGHTS = 200
OF_BASELINE = 8
ALONE = 5
"""One repetition in so many judges each night alone, which takes longest."""
MACHINES = {
    "independent": Machine(),
    "bursts of 20": Machine(burst=20),
    "bursts of 20; nights differ by 3 %": Machine(burst=20, nightly=0.03),
}
PROMISED = ("independent", "bursts of 20")
GROWTHS = {
    "20 % below the limit": Growth(slower=0.8),
    "10 % below the limit": Growth(slower=0.9),
    "at the limit": Growth(),
    **{f"quantile {100 * more:.0f} % above the limit": Growth(slower=1 + more) for more in (0.1, 0.3, 1.0)},
    **{f"rate {100 * more:.0f} % above the limit": Growth(more=1 + more) for more in (0.1, 0.3, 1.0)},
}


def _when(first: Sequence[float]) -> tuple[str, str]:
    """The share of repetitions in which it happens, and the median night of all."""
    if not len(first):
        return "–", "–"
    median = float(np.median(first))
    return percent(float(np.isfinite(first).mean())), f"{median:g}" if np.isfinite(median) else "–"


def rows(name: str, repetitions: int) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The cells of each row of a machine, and whether its errors are within what is stated."""
    machine = MACHINES[name]
    baselines = [
        baseline_of(machine, np.random.default_rng([SEED, number]), OF_BASELINE, QUANTILE)
        for number in range(repetitions)
    ]
    for place, (growth_name, growth) in enumerate(GROWTHS.items()):
        cases = [
            (machine, growth, baseline, np.random.default_rng([SEED, place + 1, number]), NIGHTS)
            for number, baseline in enumerate(baselines)
        ]
        failed, passed = np.array([by_evidence(*case, quantile=QUANTILE) for case in cases]).T
        beyond = growth.slower * growth.more
        single = [alone(*case, quantile=QUANTILE) for case in cases[: repetitions // ALONE] if beyond >= 1]
        wrong = [*([failed] if beyond <= 1 else []), *([passed] if beyond >= 1 else [])]
        held = max(float(np.isfinite(found).mean()) for found in wrong) <= most_errors(repetitions)
        yield (name, growth_name, *_when(failed), *_when(passed), *_when(single)), held or name not in PROMISED


def main(repetitions: int) -> int:
    print(
        f"| machine | growth | FAIL within {NIGHTS} nights | median night | PASS within {NIGHTS} nights | median night "
        f"| FAIL, each night judged alone | median night |\n|{'---|' * 8}"
    )
    all_held = True
    for name in MACHINES:
        for cells, held in rows(name, repetitions):
            all_held = all_held and held
            print(f"| {' | '.join(cells)} |{'' if held else ' more than stated'}", flush=True)
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 120))
