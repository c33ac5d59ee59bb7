# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings changed at random, as many as are asked for: ``make bench``.

Ends with a traceback at the first mutant that is not refused in one line, or whose PASS it contradicts itself; the
traceback tells its number, and ``--first`` makes it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fastenough.link import find_probe
from fastenough.model import NotApplicable
from fastenough.store import Store
from tests.support import mutant_trial as trial

AT_ONCE = 1000
STORED_OF_AT_ONCE = 20


def _probe() -> str | None:
    try:
        return find_probe()
    except NotApplicable:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutants", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trials = trial.Trials(trial.kinds(Path(folder), _probe()), asked.seed)
        store, stored = Store(Path(folder) / "store"), Counter[str]()
        begun = time.process_time()
        for first in range(asked.first, asked.first + asked.mutants, AT_ONCE):
            print(f"\rmutants {first:,} ...", end="", file=sys.stderr, flush=True)
            trials.run(range(first, min(first + AT_ONCE, asked.first + asked.mutants)))
            for number in range(first, first + STORED_OF_AT_ONCE):
                trial.stored(store, trials.content(number), random.Random(number), stored)
        print(file=sys.stderr)
        print(
            f"{', '.join(f'{name} {n:,}' for name, n in (trials.counts + stored).items())}; "
            f"{time.process_time() - begun:,.0f} s of CPU time; no traceback, no PASS contradicted"
        )


if __name__ == "__main__":
    main()
