# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for the worst load, on made-up machines: what is hidden is found, what is not there is not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import combinations, count

import pytest

from fastenough.hunt.groups import Groups, GroupTurn, candidates, suspect_pairs, turn_residuals
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
    TrialRequest,
    TrialResult,
    chance,
    level_of,
    tail_of,
    typical_ns,
)
from tests.support.hunt_machines import (
    BLOCKS,
    STRESSORS,
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

BUDGET = 220
FEW = 6
COST = 2 * max(CHANCE_SHARES)
"""Trials of a confirmation that goes to its end."""


def recipe(*names: str, level: int = 0) -> Recipe:
    return tuple(Part(name, (level,)) for name in sorted(names))


SPACE = Space({name: Stressor(name, (StressorParameter("size", ("1", "2", "4")),)) for name in "abcdefgh"}, 1, 8)


@pytest.mark.check
def test_what_is_hidden_is_found_and_named_where_others_do_not_see_it() -> None:
    machines = [Machine(Kind(), seed) for seed in range(FEW)]
    found = [hunted(machine, BUDGET) for machine in machines]
    assert sum(machine.provokes(each) for machine, each in zip(machines, found, strict=True)) >= FEW - 1
    assert sum(machine.provokes(each) and len(each) == 2 for machine, each in zip(machines, found, strict=True)) >= 4
    by_chance = [
        searched_at_random(Machine(Kind(), seed), BUDGET, draw) for draw in (same_size, any_size) for seed in range(FEW)
    ]
    assert sum(machine.provokes(each) for machine, each in zip(2 * machines, by_chance, strict=True)) <= FEW
    assert not any(machine.provokes(worst_of_fixed(machine, BUDGET)) for machine in machines)


def test_what_a_few_groups_have_over_is_not_explained_away() -> None:
    """40 groups of 8 of 48 stressors, each of 8 looks; in two of them two stressors meet that are worse at any level.
    Taken for as many groups as there are looks, their stressors would explain nearly all of it."""
    drawn, names = random.Random(7), [f"s{number:02}" for number in range(48)]
    sets = [["s00", "s01", *drawn.sample(names[2:], 6)] for _ in range(2)]
    sets += [drawn.sample(names[1:], 8) for _ in range(38)]
    recipes = [tuple(Part(name, (level,)) for name in sorted(group)) for group in sets for level in range(TURNS)]
    looks = [
        GroupTurn(each, 10.0 + 4.0 * (place < 2 * TURNS) + drawn.gauss(0.0, 1.0)) for place, each in enumerate(recipes)
    ]
    over = turn_residuals(looks, TURNS).over[: 2 * TURNS]
    assert over.mean() > 1.4 * turn_residuals(looks, 1).over[: 2 * TURNS].mean() > 0


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
    assert search.found is None and search.worst_fixed == "none" and not search.confirmations


def test_groups_let_every_two_meet_and_every_level_come_up() -> None:
    machine = Machine(Kind(), 1)
    groups = Groups(machine.space, TURNS, random.Random(4))
    drawn = [groups.draw() for _ in range(60)]
    met = Counter(pair for turns in drawn for pair in combinations((part.stressor for part in turns[0]), 2))
    at_random = random.Random(4)
    evenly = Counter(
        pair
        for _ in range(60)
        for pair in combinations(sorted(at_random.sample(sorted(machine.space.stressors), STRESSORS // 2)), 2)
    )
    assert len(met) == 780
    assert min(met.values()) > min(evenly.values())
    for turns in drawn:
        assert len(turns) == TURNS
        for place, part in enumerate(turns[0]):
            assert {turn[place].stressor for turn in turns} == {part.stressor}
            assert sorted(turn[place].levels[0] for turn in turns) == list(range(8))


def test_pairs_are_known_by_what_their_groups_have_over() -> None:
    drawn = random.Random(2)
    looks = []
    for _ in range(200):
        group = SPACE.draw(4, drawn)
        levels = {part.stressor: part.levels[0] for part in group}
        together = levels.get("b") == levels.get("g") == 2
        alone = 1.0 * ("a" in levels)
        looks.append(GroupTurn(group, 10.0 + alone + 4.0 * together + drawn.gauss(0.0, 0.3)))
    seen = turn_residuals(looks, 1)
    assert suspect_pairs(looks, seen, 1) == [recipe("b", "g", level=2)]
    worst = looks[int(seen.over.argmax())].recipe
    assert worst in candidates(looks, 1, 8, frozenset())
    assert worst not in candidates(looks, 1, 8, frozenset({worst}))


def answered(tails: dict[Recipe | str, float], asking: object, noise: float = 0.0) -> object:
    """Run a part of a search with the tails that are given; others are 10."""
    drawn = random.Random(5)
    generator = asking  # type: ignore[var-annotated]
    try:
        ask = next(generator)  # type: ignore[call-overload]
        while True:
            subject = ask.subject if isinstance(ask.subject, str) else ask.subject[0]
            tail = tails.get(subject, 10.0) + drawn.gauss(0.0, noise)
            ask = generator.send(TrialResult([round(2**tail)] * 4, 1000))  # type: ignore[attr-defined]
    except StopIteration as end:
        return end.value


def test_halving_keeps_the_worst_and_costs_what_is_said() -> None:
    drawn = [recipe(name, level=level) for name in "abcdefgh" for level in (0, 1)]
    tails: dict[Recipe | str, float] = {each: 10.0 + place / 4 for place, each in enumerate(drawn)}
    made = TrialBudget(halving_cost(len(drawn)))
    assert answered(tails, halve(made, drawn), 0.1) == drawn[:-4:-1]
    assert affordable(halving_cost(16)) == 16 and affordable(3) == 3 and halving_cost(3) == 0


def test_confirmation_is_by_fresh_trials_and_ever_stricter() -> None:
    worse: dict[Recipe | str, float] = {recipe("a"): 13.0}
    found = answered(worse, confirm(TrialBudget(COST), recipe("a"), "none"), 0.2)
    assert isinstance(found, Confirmed) and found.typical_ns > 7 * found.beside_ns
    assert found.chance == pytest.approx(1 / 252), "five beside five were enough"
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
            return end.value
        raise AssertionError

    assert confirmed(lambda trial: trial % 3 == 2) is not None
    assert confirmed(lambda trial: trial in {4, 5}) is None


def test_a_recipe_is_made_as_small_as_the_effect_allows() -> None:
    whole = recipe(*"abcdefgh", level=2)

    class Effect(dict[Recipe | str, float]):
        """Big where b and g meet, and b is not at its plainest."""

        def get(self, key: Recipe | str, default: object = None) -> float:  # type: ignore[override]
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
