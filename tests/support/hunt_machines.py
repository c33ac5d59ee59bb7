# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up machines with a hidden trigger: a latency that is there only while two stressors run at certain levels.

And who looks for it: the hunt, random search, and the fixed loads, each with the same number of trials of equal length.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fastenough.hunt.phases import CONFIRMATION_TURNS, confirm
from fastenough.hunt.search import Search
from fastenough.hunt.space import Recipe, Space, Stressor, StressorParameter
from fastenough.hunt.trials import (
    BudgetSpent,
    FinishedTrial,
    Phase,
    TrialBudget,
    TrialGenerator,
    TrialRequest,
    TrialResult,
    mean_tail,
)

STRESSORS, LEVELS = 40, 8
TURNS, BLOCKS = 8, 32
"""Of a trial: 8 s in blocks of 250 ms; a group changes its levels each second."""
BASE_NS = 30_000
CONFIRMED_AT_MOST = 3
"""Candidates, one after the other; of a round of the hunt there are no more either."""

_PARAMETERS = (
    StressorParameter("size", tuple(map(str, range(LEVELS)))),
    StressorParameter("instances", ("1", "2", "4")),
    StressorParameter("phase", ("always", "slow", "fast")),
)


@dataclass(frozen=True)
class Kind:
    """What machines of one kind have in common.

    ``members``: how many stressors a trigger needs at once.  ``width``: in how many of the 8 levels of one parameter of
    each of its stressors it is; 8: in any.  ``often``: the
    share of blocks in which it is seen then, where no more than ``full`` stressors run; with more, each gets less of
    the machine, and they meet less often, by the square.  ``disturbed``: the share of trials that something else
    disturbs, in two of five blocks by up to 5 ms; a hundredth of the blocks of others is disturbed too.
    ``main_effects``: each stressor alone has a latency of 30 to 240 us; else it does nothing to the 30 us there are.
    ``most``: so many may run at once, of ``stressors``.
    """

    members: int = 2
    width: int = 2
    triggers: int = 1
    often: float = 0.9
    full: float = 10.0
    size_ns: float = 2e6
    disturbed: float = 0.1
    main_effects: bool = True
    most: int = STRESSORS
    stressors: int = STRESSORS


@dataclass
class Machine:
    """One of a kind, made by its seed."""

    kind: Kind
    seed: int
    space: Space = field(init=False)
    fixed: Mapping[str, Recipe] = field(init=False)

    def __post_init__(self) -> None:
        names = [f"stressor-{number:02}" for number in range(self.kind.stressors)]
        self.space = Space({name: Stressor(name, _PARAMETERS) for name in names}, 1, self.kind.most)
        self._numbers = random_ = np.random.default_rng(self.seed)
        self._alone_ns = {name: BASE_NS * 8 ** random_.random() * self.kind.main_effects for name in names}
        self._triggers = [self._drawn_trigger(names) for _ in range(self.kind.triggers)]
        drawn = random.Random(self.seed)
        self.fixed = {f"fixed-{place}": self.space.draw(size, drawn) for place, size in enumerate((1, 1, 1, 4, 4))}

    def _drawn_trigger(self, names: Sequence[str]) -> dict[str, range]:
        begins = self._numbers.integers(0, LEVELS - self.kind.width + 1, self.kind.members)
        return {
            str(name): range(begin, begin + self.kind.width)
            for name, begin in zip(self._numbers.choice(names, self.kind.members, replace=False), begins, strict=True)
        }

    def provokes(self, recipe: Recipe) -> bool:
        """Whether the latency of a trigger is there under it."""
        sizes = {part.stressor: part.levels[0] for part in recipe}
        return any(all(sizes.get(name) in levels for name, levels in trigger.items()) for trigger in self._triggers)

    def alone_ns(self, recipe: Recipe) -> float:
        """What its stressors do by themselves."""
        return float(sum(each**4 for each in (BASE_NS, *(self._alone_ns[part.stressor] for part in recipe))) ** 0.25)

    def trial(self, subject: tuple[Recipe, ...] | str) -> list[int]:
        """The greatest values of the blocks of one trial."""
        turns = (self.fixed[subject],) if isinstance(subject, str) else subject
        disturbed = self._numbers.random() < self.kind.disturbed
        length = BLOCKS // len(turns)
        run = math.exp(self._numbers.normal(0.0, 0.1))
        values = np.concatenate([run * self._blocks(recipe, length) for recipe in turns])
        others = 3e5 * 17 ** self._numbers.random(values.size)
        struck = self._numbers.random(values.size) < (0.4 if disturbed else 0.01)
        return [int(value) for value in np.where(struck, np.maximum(values, others), values)]

    def _blocks(self, recipe: Recipe, length: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        random_ = self._numbers
        values = self.alone_ns(recipe) * np.exp(random_.normal(0.0, 0.25, length))
        if self.provokes(recipe):
            seen = self.kind.often * min(1.0, self.kind.full / len(recipe)) ** 2
            triggered = self.kind.size_ns * np.exp(random_.normal(0.0, 0.2, length))
            values = np.where(random_.random(length) < seen, np.maximum(values, triggered), values)
        return np.asarray(values)


def driven(asking: TrialGenerator[None], machine: Machine, budget: int) -> list[TrialRequest]:
    """Answer until nothing more is asked for; what was asked for."""
    asked: list[TrialRequest] = []
    try:
        asked.append(next(asking))
        while True:
            left = budget - len(asked)
            asked.append(asking.send(TrialResult(machine.trial(asked[-1].subject), left)))
    except StopIteration:
        return asked


def hunted(machine: Machine, budget: int) -> Recipe:
    """What the hunt finds; nothing where it finds nothing."""
    search = Search(machine.space, tuple(machine.fixed), TURNS, random.Random(machine.seed))
    driven(search.run(budget), machine, budget)
    return search.result.recipe if search.result else ()


Draw = Callable[[Space, random.Random], tuple[Recipe, ...]]


def same_size(space: Space, random_: random.Random) -> tuple[Recipe, ...]:
    """As many stressors as the hunt's groups have, levels drawn evenly."""
    return (space.draw(space.group_size, random_),)


def any_size(space: Space, random_: random.Random) -> tuple[Recipe, ...]:
    """One stressor to as many as the hunt's groups have, each number as likely as any other."""
    return (space.draw(random_.randint(1, space.group_size), random_),)


def in_turns(space: Space, random_: random.Random) -> tuple[Recipe, ...]:
    """As any_size, their levels drawn anew in each turn, as in the hunt's groups."""
    first = space.draw(random_.randint(1, space.group_size), random_)
    return first, *(tuple(space.draw_part(part.stressor, random_) for part in first) for _ in range(TURNS - 1))


class RandomSearch:
    """Draws until what is left suffices to confirm three, or half is left; then confirms the worst until one is."""

    def __init__(self, machine: Machine, draw: Draw) -> None:
        self._machine, self._draw = machine, draw
        self._random = random.Random(machine.seed)
        self.found: Recipe = ()

    def run(self, left: int) -> TrialGenerator[None]:
        trials = TrialBudget(left)
        fixed: dict[str, list[float]] = {name: [] for name in self._machine.fixed}
        for name in list(fixed) * 2:
            tail = yield from trials.tail(name, Phase.FIXED)
            fixed[name] += [] if tail is None else [tail]
        worst = max(fixed, key=lambda name: mean_tail(fixed[name]))
        drawn: list[tuple[float, Recipe]] = []
        reserved = min(CONFIRMED_AT_MOST * 2 * CONFIRMATION_TURNS, trials.left // 2)
        while trials.left > reserved:
            turns = self._draw(self._machine.space, self._random)
            maxima = np.log2((yield from trials.make(turns, Phase.GROUPS)))
            drawn += [
                (float(part.mean()), recipe) for part, recipe in zip(np.split(maxima, len(turns)), turns, strict=True)
            ]
        for _, recipe in sorted(drawn, reverse=True)[:CONFIRMED_AT_MOST]:
            try:
                if (yield from confirm(trials, recipe, worst)) is not None:
                    self.found = recipe
                    return
            except BudgetSpent:
                return


def searched_at_random(machine: Machine, budget: int, draw: Draw) -> Recipe:
    search = RandomSearch(machine, draw)
    driven(search.run(budget), machine, budget)
    return search.found


def worst_of_fixed(machine: Machine, budget: int) -> Recipe:
    """The fixed loads, in turns, for all trials; the worst of them."""
    tails: dict[str, list[float]] = {name: [] for name in machine.fixed}
    for trial in range(budget):
        name = list(machine.fixed)[trial % len(machine.fixed)]
        tails[name].append(float(np.mean(np.log2(machine.trial(name)))))
    return machine.fixed[max(tails, key=lambda name: mean_tail(tails[name]))]


def searched(budget: int = 220) -> tuple[Search, list[FinishedTrial]]:
    """A hunt on a machine with a hidden trigger, and its trials; every tenth fails."""
    machine, made = Machine(Kind(), 1), list[FinishedTrial]()
    search = Search(machine.space, tuple(machine.fixed), TURNS, random.Random(1))
    asking = search.run(budget)
    try:
        ask = next(asking)
        while True:
            maxima = [] if len(made) % 10 == 9 else machine.trial(ask.subject)
            made.append(FinishedTrial(ask, maxima, f"run-{len(made)}"))
            ask = asking.send(TrialResult(maxima, budget - len(made)))
    except StopIteration:
        return search, made
