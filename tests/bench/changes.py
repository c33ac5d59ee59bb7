# SPDX-License-Identifier: GPL-2.0-or-later
"""How often changes of the tail are announced, and what of, by simulation: a part of ``make bench``.

Prints the table of docs/method.md.  The argument is the number of board-years of each case without a change; those
with one have a tenth.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from fastenough.analysis.level_changes import LevelChange, level_changes
from tests.support.cycle_maxima import CASES, MEAN_BETWEEN

_AT = 300
"""Where steps are."""


def _kind(change: LevelChange) -> str:
    way = "up" if change.rises else "down"
    return f"{'trend' if change.gradual else 'step'} {way}{', withdrawn' if change.withdrawn is not None else ''}"


def table(most: int) -> None:
    print("| data | board-years | changes per board and year | announced | cycles until noted (median, 95 %) |")
    print("|---|--:|--:|---|--:|")
    for name, drawn in CASES.items():
        board_years = most // 10 if "step" in name or "drift" in name or "higher" in name else most
        announced = [level_changes(drawn(np.random.default_rng(seed)), MEAN_BETWEEN) for seed in range(board_years)]
        kinds = Counter("; ".join(map(_kind, changes)) or "nothing" for changes in announced)
        delays = [changes[0].noted - _AT + 1 for changes in announced if changes and changes[0].noted >= _AT]
        delay = "{:.0f}, {:.0f}".format(*np.percentile(delays, [50, 95])) if delays and "step of" in name else ""
        shares = ", ".join(f"{kind} {count / board_years:.1%}" for kind, count in kinds.most_common(2))
        print(
            f"| {name} | {board_years} | {sum(map(len, announced)) / board_years:.4f} | {shares} | {delay} |",
            flush=True,
        )


if __name__ == "__main__":
    table(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
