# SPDX-License-Identifier: GPL-2.0-or-later
"""The effect of a change, against a truth that was put in; ``make bench`` does it at length (bench_ab)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis.paired import (
    FIXED,
    LEAST_OF_ORDER,
    LEAST_ROUNDS,
    SEQUENTIAL,
    Effects,
    Method,
    Pair,
    judged_name,
    order_of_arms,
    paired,
    period_of,
    student,
)
from fastenough.model import BadInput
from tests.bench import ab as bench
from tests.support.paired_truth import MACHINES, quantiles_of, sides, trials
from tests.support.recordings import PROFILE, Plan, RunFields, latencies, recording
from tests.support.simulated import SEED, block_of, with_block

pytestmark = pytest.mark.slow

REPETITIONS = 100
LEAST = float(stats.binom.ppf(1e-4, REPETITIONS, 0.95)) / REPETITIONS
SET = {"name": "transparent-huge-pages", "requested": "never", "in_effect": "never"}
NEVER = {"profile": PROFILE | {"memory": PROFILE["memory"] | {"transparent_huge_pages": "never"}}}


METHODS = pytest.mark.parametrize("method", [FIXED, SEQUENTIAL], ids=["fixed", "sequential"])
ORDER = ("A", "B", "B", "A", "B", "A", "A", "B")
"""Repeated; any that has at least two pairs of either order would do."""


def pairs_of(folder: Path, rounds: int, shift_ns: int, drift_ns: int = 0, **broken: Unpack[RunFields]) -> list[Pair]:
    """Runs of 20 s whose latencies are slower by the shift with the change, and get slower by the drift from run to
    run; the first run of the third pair is as ``broken`` says."""
    found = []
    for number in range(2 * rounds):
        runs = []
        arms = (ORDER * rounds)[2 * number : 2 * number + 2]
        for place, arm in enumerate(arms):
            position = 2 * number + place
            more = (shift_ns if arm == "B" else 0) + drift_ns * position
            values = [[row + more for row in rows] for rows in latencies(position, intervals=10)]
            plan = Plan(values, run_id=f"run-{position}", head=NEVER if arm == "B" else {})
            runs.append(recording(folder, replace(plan, **broken) if position == 4 else plan))
        found.append(Pair(runs[arms.index("A")], runs[arms.index("B")], arms[0] == "B"))
    return found


def effects_of(pairs: list[Pair], method: Method = FIXED) -> Effects:
    found = paired(pairs, ("transparent-huge-pages",), method=method)
    assert found is not None
    return found


@METHODS
def test_a_shift_that_was_put_in_is_found_in_microseconds(tmp_path: Path, method: Method) -> None:
    found = effects_of(pairs_of(tmp_path, 4, 3000), method)
    assert (found.series, found.pairs, found.excluded) == ("wakeup_corrected", 8, ())
    assert [effect.quantile for effect in found.effects] == [0.5, 0.95, 0.99, 0.999]
    for effect in found.effects:
        assert effect.lower_ns <= 3000 <= effect.upper_ns
    assert all(effect.significant and effect.lower_ns > 0 for effect in found.effects[:3])
    assert found.effects[0].effect_ns == pytest.approx(3000, abs=100)
    assert found.differences == ("different huge pages and swap: transparent_huge_pages: 'madvise' against 'never'",)
    assert [len(maxima) for maxima in found.maxima_ns] == [8, 8]


@METHODS
def test_a_drift_is_no_effect(tmp_path: Path, method: Method) -> None:
    """Each run is slower than the one before by more than the runs of one machine differ."""
    found = effects_of(pairs_of(tmp_path, 4, 0, drift_ns=500), method)
    assert not any(effect.significant for effect in found.effects)
    assert all(effect.lower_ns <= 0 <= effect.upper_ns for effect in found.effects)
    random = np.random.default_rng(3)
    machine = MACHINES["drift of 10 µs from first to last run"]
    order = order_of_arms("seed", 4, LEAST_OF_ORDER)
    without, with_change, first = sides(quantiles_of(machine, random, order, intervals=3)[..., 0], order)
    lower, upper, _ = student(with_change - without, with_change - without, first, 0.95)
    assert lower <= 0 <= upper and upper - lower < 1.0, "an even drift is no part of the interval either"


def test_orders_are_drawn_and_can_be_drawn_again() -> None:
    orders = {seed: order_of_arms(seed, 3, LEAST_OF_ORDER) for seed in map(str, range(200))}
    for seed, order in orders.items():
        pairs = ["".join(order[place : place + 2]) for place in range(0, 12, 2)]
        assert set(pairs) == {"AB", "BA"} and min(map(pairs.count, ("AB", "BA"))) >= LEAST_OF_ORDER
        assert order_of_arms(seed, 3, LEAST_OF_ORDER) == order
    assert len(set(orders.values())) == 50, "all that there are"
    assert len({order_of_arms(seed, 3, 0) for seed in map(str, range(2000))}) == 64, "a coin for each pair"


@pytest.mark.parametrize("busy", ["2 of 4 runs", "3 of 6 runs"])
def test_what_recurs_with_the_runs_is_no_effect(busy: str) -> None:
    """In a fixed order it would be one."""
    machine, random = MACHINES[f"another job busy for {busy}"], np.random.default_rng(5)
    found = trials(machine, random, REPETITIONS, rounds=5, intervals=1, shift_us=0.0)
    assert found.false_effect <= 1 - LEAST
    assert found.periods > 0.9, "and it is seen"
    if busy == "2 of 4 runs":
        fixed = trials(machine, random, 20, rounds=5, intervals=1, shift_us=0.0, order=("A", "B", "B", "A") * 5)
        assert fixed.false_effect > 0.2


def test_runs_without_a_period_have_none() -> None:
    random, first = np.random.default_rng(6), np.array([True, False] * 5)
    chances = [
        found[1] for _ in range(400) if (found := period_of(random.normal(0, 1, 10), random.normal(0, 1, 10), first))
    ]
    assert len(chances) == 400
    assert sum(chance < 0.05 for chance in chances) <= stats.binom.ppf(0.9999, 400, 0.05)
    waves = np.sin(np.arange(20) * 2 * np.pi / 5)
    values = np.where(first, waves[1::2], waves[0::2]), np.where(first, waves[0::2], waves[1::2])
    period, chance = period_of(values[0], values[1], first) or (0.0, 1.0)
    assert period == 5 and chance < 1e-4


def test_a_pair_with_a_run_that_is_broken_says_nothing(tmp_path: Path) -> None:
    found = effects_of(pairs_of(tmp_path, 4, 3000, lost=5))
    assert found.pairs == 7 and len(found.excluded) == 1
    assert found.excluded[0].startswith("pair 3: run run-4: ") and "lost" in found.excluded[0]
    assert paired(pairs_of(tmp_path, LEAST_ROUNDS, 0, lost=5)) is None, "too few are left"


def test_a_place_that_the_change_cannot_reach_breaks_nothing(tmp_path: Path) -> None:
    """As an interrupt that cannot be moved; what is not on trial must be in effect."""
    refused = ({"name": "irq-affinity 9", "requested": "0", "in_effect": "0-1", "reason": "refused"},)
    pairs = pairs_of(tmp_path, 3, 0, settings=refused)
    assert paired(pairs, ("irq-affinity",)) is not None
    assert paired(pairs) is None


@METHODS
def test_the_buckets_of_a_value_leave_room(tmp_path: Path, method: Method) -> None:
    """All pairs alike: the spread is none, and the interval is as wide as the buckets."""
    values = [[np.linspace(1_000_000, 1_010_000, 1000).astype(np.int64)] * 3]
    pairs = [
        Pair(
            recording(tmp_path, Plan(values, run_id=f"r-{number}-0")),
            recording(tmp_path, Plan(values, run_id=f"r-{number}-1")),
            number > 2,
        )
        for number in range(6)
    ]
    median = effects_of(pairs, method).effects[0]
    assert median.lower_ns < 0 < median.upper_ns and not median.significant


def test_no_latency_or_several_are_not_one_effect(tmp_path: Path) -> None:
    none = recording(tmp_path, Plan(latencies(1, intervals=1), views=("wakeup",), series={"role": "diagnostic"}))
    two = recording(tmp_path, Plan(latencies(1, intervals=1), views=("wakeup", "jitter")))
    for one, many in ((none, "no"), (two, "2")):
        with pytest.raises(BadInput, match=f"holds {many} latencies to compare"):
            judged_name(one)
    assert judged_name(recording(tmp_path, Plan(latencies(1, intervals=1)))) == "wakeup_corrected"


@pytest.mark.parametrize(
    "name", ["independent values", "stalls of 20 values, 1 % of all", "stalls of 20, runs differ, drift"]
)
def test_the_interval_of_an_effect_holds_the_truth(name: str) -> None:
    found = trials(MACHINES[name], np.random.default_rng(11), REPETITIONS, rounds=5, intervals=2, shift_us=1.0)
    assert min(found.covered) >= LEAST
    assert found.false_effect <= 1 - LEAST
    assert min(found.width_us) < 5.0, "and it says something"


def test_the_table_of_the_page_is_that_of_the_program() -> None:
    document = bench.PAGE.read_text()
    block = block_of(document)
    assert with_block(document, block) == document
    assert f"seed {SEED}" in block and all(f"| {name} | " in block for name in MACHINES)
