# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for the worst load, on made-up machines: what is hidden is found, what is not there is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, count
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from fastenough.hunt.phases import (
    CHANCE_SHARES,
    LEAST_TRIALS,
    Confirmed,
    affordable,
    confirm,
    halve,
    halving_cost,
    minimise,
)
from fastenough.hunt.search import Search
from fastenough.hunt.space import Part, Recipe, Space, Stressor, StressorParameter
from fastenough.hunt.trials import (
    LEVEL,
    Phase,
    TrialBudget,
    TrialGenerator,
    TrialRequest,
    TrialResult,
    chance,
    level_of,
    tail_of,
    typical_ns,
)
from fastenough.jobs.hunt import block_maxima
from tests.support.hunt_machines import (
    BLOCKS,
    TURNS,
    Kind,
    Machine,
    any_size,
    driven,
    hunted,
    same_size,
    searched_at_random,
    worst_of_fixed,
)
from tests.support.recordings import Plan, recording

BUDGET = 220
FEW = 6
SEEDS = range(100, 100 + FEW)
COST = 2 * max(CHANCE_SHARES)
"""Trials of a confirmation that goes to its end."""


def recipe(*names: str, level: int = 0) -> Recipe:
    return tuple(Part(name, (level,)) for name in sorted(names))


SPACE = Space({name: Stressor(name, (StressorParameter("size", ("1", "2", "4")),)) for name in "abcdefgh"}, 1, 8)


@pytest.mark.check
def test_what_is_hidden_is_found_and_named_where_others_do_not_see_it() -> None:
    machines = [Machine(Kind(), seed) for seed in SEEDS]
    found = [hunted(machine, BUDGET) for machine in machines]
    assert sum(machine.provokes(each) for machine, each in zip(machines, found, strict=True)) >= FEW - 1
    assert sum(machine.provokes(each) and len(each) == 2 for machine, each in zip(machines, found, strict=True)) >= 4
    by_chance = [
        searched_at_random(Machine(Kind(), seed), BUDGET, draw) for draw in (same_size, any_size) for seed in SEEDS
    ]
    assert sum(machine.provokes(each) for machine, each in zip(2 * machines, by_chance, strict=True)) <= FEW
    assert not any(machine.provokes(worst_of_fixed(machine, BUDGET)) for machine in machines)


@pytest.mark.check
@pytest.mark.parametrize(("members", "budget"), [(2, 60), (2, 180), (3, 90), (3, 180)])
def test_a_hunt_finds_what_random_search_of_as_many_trials_finds(members: int, budget: int) -> None:
    """The same machines for both: a sixth of the stressors may run at once, and the trigger is there at any level."""
    kind = Kind(members=members, width=8, most=8, stressors=48)

    def finds(search: Callable[[Machine, int], Recipe]) -> int:
        return sum(machine.provokes(search(machine, budget)) for machine in (Machine(kind, seed) for seed in range(10)))

    at_random = finds(lambda machine, trials: searched_at_random(machine, trials, same_size))
    assert finds(hunted) >= max(at_random, 5)


def test_where_nothing_is_worse_nothing_is_found() -> None:
    nothing = Kind(triggers=0, main_effects=False)
    assert not any(hunted(Machine(nothing, seed), 120) for seed in range(4))


def test_the_same_answers_lead_to_the_same_questions() -> None:
    def asked() -> list[TrialRequest]:
        machine = Machine(Kind(), 3)
        return driven(Search(machine.space, tuple(machine.fixed), TURNS, random.Random(9)).run(60), machine, 60)

    assert asked() == asked()


@pytest.mark.parametrize("budget", [1, 9, 12, 30, 61])
def test_no_budget_is_exceeded(budget: int) -> None:
    machine = Machine(Kind(), 1)
    search = Search(machine.space, tuple(machine.fixed), TURNS, random.Random(1))
    asked = driven(search.run(budget), machine, budget)
    assert len(asked) <= budget
    assert (search.confirmations > 0) <= any(ask.phase is Phase.CONFIRMING for ask in asked)


def test_what_cannot_be_tried_ends_no_search() -> None:
    search = Search(SPACE, ("none",), 2, random.Random(1))
    asking, asked = search.run(80), 0
    with pytest.raises(StopIteration):
        ask = next(asking)
        while True:
            asked += 1
            ask = asking.send(TrialResult([] if ask.phase is Phase.GROUPS else [1000] * 8, 80 - asked))
    assert search.result is None and search.worst_fixed == "none" and not search.confirmations


@pytest.mark.parametrize(
    ("fails", "worst", "failed"),
    [
        (lambda ask: isinstance(ask.subject, str), "", ("none", "cpu")),
        (lambda ask: ask.subject == "cpu", "none", ("cpu",)),
        (lambda ask: ask.phase is Phase.CONFIRMING, "cpu", ()),
    ],
    ids=["all fixed loads", "one fixed load", "every confirmation"],
)
def test_only_loads_that_were_measured_are_compared(
    fails: Callable[[TrialRequest], bool], worst: str, failed: tuple[str, ...]
) -> None:
    """Else loads of which nothing is known would be no worse than each other."""
    search, left = Search(SPACE, ("none", "cpu"), 2, random.Random(1)), 80
    asking = search.run(left)
    with pytest.raises(StopIteration):
        ask = next(asking)
        while True:
            left -= 1
            value = 2000 if ask.subject == "cpu" else 1000
            ask = asking.send(TrialResult([] if fails(ask) else [value] * 8, left))
    assert (search.worst_fixed, search.failed_fixed, search.result) == (worst, failed, None)
    assert (search.confirmations > 0) == (failed == ("cpu",))


def test_a_recipe_without_stressors_is_no_candidate() -> None:
    """A draw is empty where no stressor fits into the memory."""
    space = Space({name: Stressor(name, (), 8) for name in "abcdef"}, 1, 8)
    search, left = Search(space, ("none",), 2, random.Random(1)), 80
    asking = search.run(left)
    with pytest.raises(StopIteration):
        next(asking)
        while True:
            left -= 1
            asking.send(TrialResult([1000] * 8, left))
    assert not search.confirmations


def groups_of(space: Space, count: int) -> tuple[Search, list[tuple[Recipe, ...]]]:
    """A search, and the groups that it tries first; the last turn of each is worse the later the group is, and every
    third group is disturbed as a whole."""
    search, left = Search(space, ("none",), TURNS, random.Random(4)), 3 * count
    asking, groups = search.run(left), list[tuple[Recipe, ...]]()
    ask = next(asking)
    while ask.phase in (Phase.FIXED, Phase.GROUPS):
        left -= 1
        maxima = [1000]
        if not isinstance(ask.subject, str):
            groups.append(ask.subject)
            quiet = 100_000 if len(groups) % 3 == 0 else 1000
            maxima = [*[quiet] * (TURNS - 1), quiet * (1 + len(groups))]
        ask = asking.send(TrialResult(maxima, left))
    return search, groups


def test_each_turn_of_a_group_has_stressors_of_its_own() -> None:
    """So that few groups contain nearly every two of them, and many contain every three."""
    _, groups = groups_of(Machine(Kind(most=8, stressors=48), 1).space, 40)
    turns = [turn for group in groups for turn in group]
    assert {len(turn) for turn in turns} == {8}
    met = {pair for turn in turns[: 20 * TURNS] for pair in combinations([part.stressor for part in turn], 2)}
    assert len(met) > 0.9 * 48 * 47 / 2


def test_candidates_are_the_worst_turns_that_were_none_before() -> None:
    search, groups = groups_of(SPACE, 20)
    assert [look.recipe for look in search.looks] == [turn for group in groups for turn in group]
    worst = [group[-1] for group in reversed(groups)]
    tried = len(search._selected)
    assert tried >= 4 and search._selected == set(worst[:tried])
    assert search._candidates(3) == worst[tried : tried + 3]


T = TypeVar("T")


def answered(tails: dict[Recipe | str, float], asking: TrialGenerator[T], noise: float = 0.0) -> T:
    """Run a part of a search with the tails that are given; others are 10."""
    drawn = random.Random(5)
    try:
        ask = next(asking)
        while True:
            subject = ask.subject if isinstance(ask.subject, str) else ask.subject[0]
            tail = tails.get(subject, 10.0) + drawn.gauss(0.0, noise)
            ask = asking.send(TrialResult([round(2**tail)] * 4, 1000))
    except StopIteration as end:
        result: T = end.value
        return result


def test_halving_keeps_the_worst_and_costs_what_is_said() -> None:
    drawn = [recipe(name, level=level) for name in "abcdefgh" for level in (0, 1)]
    tails: dict[Recipe | str, float] = {each: 10.0 + place / 4 for place, each in enumerate(drawn)}
    made = TrialBudget(halving_cost(len(drawn)))
    assert answered(tails, halve(made, drawn), 0.1) == drawn[:-4:-1]
    assert affordable(halving_cost(16)) == 16 and affordable(3) == affordable(0) == 3 and halving_cost(3) == 0


def test_confirmation_is_by_fresh_trials_and_ever_stricter() -> None:
    worse: dict[Recipe | str, float] = {recipe("a"): 13.0}
    found = answered(worse, confirm(TrialBudget(COST), recipe("a"), "none"), 0.2)
    assert isinstance(found, Confirmed) and found.typical_ns > 7 * found.reference_ns
    assert found.p_value == pytest.approx(1 / 252), "five beside five were enough"
    assert answered({}, confirm(TrialBudget(COST), recipe("a"), "none"), 0.2) is None
    assert sum(CHANCE_SHARES.values()) == pytest.approx(1.0) and LEAST_TRIALS < COST
    assert sum(map(level_of, range(1, 100_000))) == pytest.approx(LEVEL, rel=1e-4)
    assert chance([5, 6, 7, 8], [1, 2, 3, 4]) == pytest.approx(1 / 70)


def test_a_trial_that_could_not_be_made_ends_no_confirmation_unless_it_fails_twice() -> None:
    def confirmed(fails: Callable[[int], bool]) -> Confirmed | None:
        asking = confirm(TrialBudget(3 * COST), recipe("a"), "none")
        try:
            ask = next(asking)
            for trial in count():
                value = 1_000_000 if ask.subject == "none" else 8_000_000
                ask = asking.send(TrialResult([] if fails(trial) else [value] * 4, 100))
        except StopIteration as end:
            result: Confirmed | None = end.value
            return result
        raise AssertionError

    assert confirmed(lambda trial: trial % 3 == 2) is not None
    assert confirmed(lambda trial: trial in {4, 5}) is None


def test_a_recipe_is_made_as_small_as_the_effect_allows() -> None:
    whole = recipe(*"abcdefgh", level=2)

    class Effect(dict[Recipe | str, float]):
        """Big where b and g meet, and b is not at its plainest."""

        def get(self, key: Recipe | str, default: object = None) -> float:
            levels = {part.stressor: part.levels[0] for part in key if not isinstance(part, str)}
            return 13.0 if levels.get("b", 0) >= 1 and "g" in levels else 10.0

    steps = [whole]
    answered(
        Effect(), minimise(TrialBudget(1000), Confirmed(whole, "none", 13.0, 10.0, 0.0), steps, random.Random(3)), 0.3
    )
    assert steps[-1] == (Part("b", (1,)), Part("g", (0,)))


def test_one_outlier_weighs_less_than_what_comes_back() -> None:
    quiet, outlier, often = [1000] * 32, [1000] * 31 + [1_000_000], [1000] * 16 + [8000] * 16
    assert tail_of(quiet) < tail_of(outlier) < tail_of(often)
    assert typical_ns(tail_of(quiet)) == pytest.approx(1000)
    assert len(Machine(Kind(), 1).trial("fixed-0")) == BLOCKS


def test_bounds_hold_for_every_recipe() -> None:
    sized = StressorParameter("bytes", ("1", "2", "64"), (1, 2, 64))
    space = Space({name: Stressor(name, (sized,), 1 << 20) for name in "abcdef"}, 100 << 20, 4)
    for seed in range(50):
        drawn = space.draw(6, random.Random(seed))
        assert len(drawn) <= 4 and sum(map(space.memory_of, drawn)) <= 100 << 20
    assert space.value(Part("a", (2,)), "bytes") == "64" and space.group_size == 3


def test_a_wall_clock_that_is_set_lengthens_no_block(tmp_path: Path) -> None:
    """A board without a clock of its own may be set in the middle of a trial."""
    run = recording(tmp_path, Plan([[np.full(2000, 5000)] * 8], views=("wakeup",)))
    blocks = len(block_maxima(run, 2))
    set_later = [
        replace(interval, end_wall_ns=interval.end_wall_ns + 3600 * 10**9) if interval.seq == 3 else interval
        for interval in run.intervals
    ]
    assert len(block_maxima(replace(run, intervals=set_later), 2)) == blocks == 64
