# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of the worked example with their complete output, and its comparison under load over 30 phases.

``python -m tests.bench.worked_example [short]`` prints them and the versions that they depend on.  ``short`` leaves out
campaigns under load, the hunt, what comes after them, and the 30 phases of both kernels.  The status is 1 if the
page shows other figures.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from fastenough.analysis.instructions import LEAST_PHASES, compare_instructions, instructions_conclusion
from fastenough.campaign import read_plan, run_campaign
from fastenough.store import Store
from tests.support.worked_example import Reader, Step, short_steps, steps, versions, write_files


def _printed(steps_of_page: Iterable[Step]) -> Iterator[str]:
    """Print each command with its output; yields the commands of which the page shows another output."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        reader = Reader(Path(folder))
        for step in steps_of_page:
            output = reader.output(step)
            print(f"$ {step.line}\n{output}", end="", flush=True)
            if not reader.agrees(step, output):
                reader.assign_in_order(step, output)
                yield step.line


def _print_phases() -> None:
    """Measure and compare the kernels of the page under its load, in as many phases as a statement requires."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(place)
        plan = read_plan(place / "first-look.toml")
        (entry,) = plan.entries
        plan = replace(plan, entries=(replace(entry, phases=LEAST_PHASES),))
        store = Store(place / "store")
        first, second = (
            [store.load(run) for run in run_campaign(replace(plan, configurations=(kernel,)), store).runs]
            for kernel in plan.configurations
        )
        print(f"\n{' and '.join(plan.configurations)}, {LEAST_PHASES} phases of each:")
        print(instructions_conclusion(compare_instructions(first, second)))


def main(short: bool) -> int:
    print(*versions(), sep="\n")
    differing = list(_printed(short_steps() if short else steps()))
    print(*(f"differs from the page: {line}" for line in differing), sep="\n")
    if not short:
        _print_phases()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main("short" in sys.argv[1:]))
