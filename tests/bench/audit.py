# SPDX-License-Identifier: GPL-2.0-or-later
"""How often changes with a known effect are found, in the right order, and others not: by simulation, ``make bench``.

With ``--write`` the table in docs/audit.md is replaced by what was simulated.  Status 1 where what is stated does not
hold within the 99.9 % quantile of chance.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.audit_truth import Counted, count
from tests.support.confidence import most_errors
from tests.support.paired_truth import MACHINES
from tests.support.simulated import SEED, main, percent

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
EFFECTS_US = {"-80 µs": -80.0, "-40 µs": -40.0, "none": 0.0, "none too": 0.0, "none either": 0.0, "+60 µs": 60.0}


def _cells(counted: Counted) -> list[str]:
    shares = [
        counted.found["-80 µs"],
        counted.found["-40 µs"],
        counted.in_order,
        counted.wrongly,
        min(counted.covered.values()),
    ]
    return [percent(share / counted.tries) for share in shares]


def table(repetitions: int) -> tuple[str, bool]:
    """The table, and whether all of it is within what is stated."""
    most = most_errors(repetitions)
    heads = (
        "-80 µs found",
        "-40 µs found",
        "both, and in order",
        "any of three without effect shown",
        "interval contains the effect (least of six)",
    )
    lines = [
        f"Simulated by `tests/bench/audit.py` (seed {SEED}), {repetitions:,} machines, each with six changes: two "
        "that shorten the tail, three without effect, one that lengthens it; 5 rounds of runs of 4 s at 1 kHz. "
        f"Stated: 5 % and 95 %; accepted in this many machines: {percent(most)} and {percent(1 - most)}.",
        "",
        "| machine | " + " | ".join(heads) + " |",
        "|" + "---|" * (len(heads) + 1),
    ]
    held = True
    for place, (name, machine) in enumerate(MACHINES.items()):
        counted = count(machine, EFFECTS_US, repetitions, SEED + place)
        lines.append("| " + " | ".join([name, *_cells(counted)]) + " |")
        held = (
            held
            and counted.wrongly <= most * repetitions
            and (min(counted.covered.values()) >= (1 - most) * repetitions)
        )
    return "\n".join([*lines, ""]), held


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, table))
