# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the hunt finds a hidden trigger, beside random search and the fixed loads, by simulation: ``make bench``.

With ``--write`` the table in docs/hunt.md is replaced by what was simulated.  Status 1 where what is stated does not
hold: of the stated case 80 % with the hunt, at most 40 % with random search that draws uniformly, of the groups' sizes
or of any up to that; nowhere fewer than with any random search; and false finds within their rate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from scipy.stats import binom, fisher_exact

from fastenough.hunt.space import Recipe
from fastenough.hunt.trials import LEVEL
from tests.support.hunt_machines import (
    BLOCKS,
    TURNS,
    Kind,
    Machine,
    any_size,
    hunted,
    in_turns,
    same_size,
    searched_at_random,
    worst_of_fixed,
)
from tests.support.simulated import SEED, main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hunt.md"
BUDGET, TRIES = 180, 300
STATED = "the stated case"


def _few(members: int) -> Kind:
    """A trigger that is there at any level, on a machine where only a sixth of the stressors may run at once."""
    return Kind(members=members, width=8, most=8, stressors=48)


CASES: Mapping[str, tuple[Kind, int]] = {
    STATED: (Kind(), BUDGET),
    "budget of 120 trials": (Kind(), 120),
    "budget of 220 trials": (Kind(), 220),
    "budget of 440 trials": (Kind(), 440),
    "in one level of 8": (Kind(width=1), BUDGET),
    "in 4 levels of 8": (Kind(width=4), BUDGET),
    "two triggers": (Kind(triggers=2), BUDGET),
    "one stressor, in 2 levels of 8": (Kind(members=1), BUDGET),
    "one stressor, at any level": (Kind(members=1, width=8), BUDGET),
    "two stressors, at any level": (Kind(width=8), BUDGET),
    "three stressors, at any level": (Kind(members=3, width=8), BUDGET),
    "three stressors, in 4 levels of 8": (Kind(members=3, width=4), BUDGET),
    "one of 48 at any level, 8 at once": (_few(1), BUDGET),
    "two of 48 at any level, 8 at once": (_few(2), BUDGET),
    "two of 48 at any level, 8 at once, budget of 60": (_few(2), 60),
    "two of 48 at any level, 8 at once, budget of 90": (_few(2), 90),
    "two of 48 at any level, 8 at once, budget of 440": (_few(2), 440),
    "three of 48 at any level, 8 at once": (_few(3), BUDGET),
    "no trial disturbed": (Kind(disturbed=0.0), BUDGET),
    "a fifth of trials disturbed": (Kind(disturbed=0.2), BUDGET),
    "seen half as often": (Kind(often=0.45), BUDGET),
    "crowding from 6 stressors on": (Kind(full=6.0), BUDGET),
    "no crowding": (Kind(full=40.0), BUDGET),
    "latency of 1 ms": (Kind(size_ns=1e6), BUDGET),
}
NOTHING = Kind(triggers=0, main_effects=False)

Search = Callable[[Machine, int], Recipe]
OTHERS: Mapping[str, Search] = {
    "random, sizes of the groups": lambda machine, budget: searched_at_random(machine, budget, same_size),
    "random, any size": lambda machine, budget: searched_at_random(machine, budget, any_size),
    "random, any size, in turns": lambda machine, budget: searched_at_random(machine, budget, in_turns),
    "fixed loads": worst_of_fixed,
}
UNIFORM = 2
"""The first so many of these draw uniformly, a recipe for each trial; the third has the hunt's turns as well."""


def finds(search: Search, kind: Kind, budget: int, tries: int) -> tuple[int, int]:
    """How many tries end with a recipe that provokes the trigger, and how many with one that has nothing else."""
    provoking = named = 0
    for number in range(tries):
        machine = Machine(kind, SEED + number)
        recipe = search(machine, budget)
        provokes = machine.provokes(recipe)
        provoking += provokes
        named += provokes and len(recipe) == kind.members
    return provoking, named


def false_finds(tries: int) -> int:
    """How many hunts find something where there is nothing."""
    return sum(bool(hunted(Machine(NOTHING, SEED + number), BUDGET)) for number in range(tries))


def most_finds(tries: int) -> int:
    """How many false finds so many tries may show, at the level that is stated: the 99.9 % quantile of chance."""
    return int(binom.ppf(0.999, tries, LEVEL))


def row(name: str, kind: Kind, budget: int, tries: int) -> tuple[str, bool]:
    """One line of the table, and whether what is stated held there."""
    found, named = finds(hunted, kind, budget, tries)
    others = [finds(search, kind, budget, tries)[0] for search in OTHERS.values()]
    line = "| " + " | ".join([name, *(f"{count} of {tries}" for count in (found, named, *others))]) + " |"
    print(line, file=sys.stderr, flush=True)
    stated = name != STATED or (found >= 0.8 * tries and max(others[:UNIFORM]) <= 0.4 * tries)
    return line, stated and not is_worse(found, max(others), tries)


def is_worse(found: int, best: int, tries: int) -> bool:
    """Whether the hunt is shown to find less than the best of the others, by the exact test of Fisher at 0.1 %."""
    table = [[found, tries - found], [best, tries - best]]
    return bool(fisher_exact(table, alternative="less").pvalue < 0.001)


def table(tries: int) -> tuple[str, bool]:
    """The table, and whether what is stated holds."""
    lines = [
        f"Simulated by `tests/bench/hunt.py` (seed {SEED}), {BUDGET} trials of {BLOCKS} "
        f"blocks unless stated; a group uses {TURNS} draws of its levels in a trial.",
        "",
        "| machine | hunt finds it | with nothing beside it | " + " | ".join(OTHERS) + " |",
        "|" + "---|" * (3 + len(OTHERS)),
    ]
    whole = [
        row(name, kind, budget, tries if name == STATED else max(1, tries // 4))
        for name, (kind, budget) in CASES.items()
    ]
    lines += [line for line, _ in whole]
    few = max(1, tries // 3)
    wrong = false_finds(few)
    lines += ["", f"Where no stressor has any effect, {wrong} of {few} hunts found something."]
    return "\n".join([*lines, ""]), all(held for _, held in whole) and wrong <= most_finds(few)


if __name__ == "__main__":
    sys.exit(main(__doc__, PAGE, table, TRIES))
