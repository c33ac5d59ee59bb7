# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisecting configurations whose tails are known: the right step is found by evidence, whatever the maxima say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis.gate import Growth
from fastenough.campaign import Plan as CampaignPlan
from fastenough.farm.bisect import Bisection, BisectSetup, BisectStep, bisect, most_judged, with_install_command
from fastenough.farm.criteria import Rating, RequirementCriterion, SlowdownCriterion
from fastenough.model import BadInput, Requirement
from fastenough.recording import Recording
from tests.support.recordings import PROFILE, Plan, recording

pytestmark = pytest.mark.check

LIMIT_NS = 50_000
ALLOWED = 1e-2
PERIOD_NS = 10_000_000
REQUIREMENT = Requirement(LIMIT_NS, ALLOWED, longest_burst=3)
QUESTION = BisectSetup(RequirementCriterion(REQUIREMENT, ("cpu",)), 40 * 10**9, 160 * 10**9)
NAMES = [f"6.1.{number}" for number in range(9)]


class Simulated:
    """A board of which the rate of late activations is known for each configuration; a good one has the greater
    maxima."""

    def __init__(self, folder: Path, rates: dict[str, float], seed: int = 1) -> None:
        self.folder = folder
        self.rates = rates
        self.random = np.random.default_rng(seed)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, configuration: str, duration_ns: int) -> list[Recording]:
        self.asked.append((configuration, duration_ns))
        rate = self.rates[configuration]
        n = duration_ns // PERIOD_NS
        values = 5_000 + 50 * self.random.integers(0, 40, n)
        late = self.random.random(n) < rate
        values[late] = 60_000 if rate > ALLOWED else 9_000_000
        kernel = PROFILE["kernel"] | {"release": configuration}
        plan = Plan(
            [np.array_split(values.astype(np.int64), 10)],
            f"run-{len(self.asked)}",
            "cpu",
            rise_k=3,
            limit_ns=LIMIT_NS,
            head={"configuration": configuration, "profile": {**PROFILE, "kernel": kernel}},
            period_ns=PERIOD_NS,
        )
        return [recording(self.folder, plan)]


def rates(first_bad: int, good: float = 0.05, bad: float = 4.0) -> dict[str, float]:
    return {name: ALLOWED * (good if place < first_bad else bad) for place, name in enumerate(NAMES)}


@pytest.mark.parametrize("first_bad", [1, 4, 8])
def test_the_step_is_found_where_it_is(tmp_path: Path, first_bad: int) -> None:
    told: list[BisectStep] = []
    board = Simulated(tmp_path, rates(first_bad), seed=first_bad)
    found = bisect(NAMES, board, QUESTION, told.append)
    assert (found.last_good, found.first_bad) == (NAMES[first_bad - 1], NAMES[first_bad])
    assert found.decided
    assert found.conclusion.startswith(f"{NAMES[first_bad]} is the first bad configuration")
    assert len(found.steps) == 5, "two ends and three halvings of eight"
    assert found.measurements == len(board.asked)
    assert told == list(found.steps)
    assert any(NAMES[first_bad] in text and "release" in text for text in found.differences)


def test_each_step_is_judged_by_bounds_and_not_by_its_maximum(tmp_path: Path) -> None:
    """Good ones have maxima of 9 ms, bad ones of 60 us: who went by maxima would call them the other way round."""
    found = bisect(NAMES, Simulated(tmp_path, rates(4)), QUESTION)
    assert {step.rating for step in found.steps} == {Rating.GOOD, Rating.BAD}
    bad = next(step for step in found.steps if step.rating is Rating.BAD)
    shared = 100 * (1 - 0.05 / most_judged(len(NAMES)))
    assert f"at {shared:.10g} % confidence" in bad.reasons[0]


def test_what_is_not_decided_is_measured_longer(tmp_path: Path) -> None:
    board = Simulated(tmp_path, rates(4, good=0.3, bad=1.9))
    found = bisect(NAMES, board, QUESTION)
    assert (found.last_good, found.first_bad) == (NAMES[3], NAMES[4])
    longer = [step for step in found.steps if step.measurements > 1]
    assert longer
    for step in longer:
        asked = [duration_ns for name, duration_ns in board.asked if name == step.configuration]
        assert sum(asked) == step.measured_ns <= QUESTION.most_ns
        assert all(
            later >= sum(asked[: place + 1]) or sum(asked[: place + 2]) == QUESTION.most_ns
            for place, later in enumerate(asked[1:])
        )


def test_where_none_between_can_be_decided_it_says_so(tmp_path: Path) -> None:
    at_limit = {name: ALLOWED for name in NAMES[1:-1]}
    question = BisectSetup(RequirementCriterion(REQUIREMENT, ("cpu",)), 80 * 10**9, 80 * 10**9)
    found = bisect(NAMES, Simulated(tmp_path, rates(4) | at_limit), question)
    assert not found.decided
    assert f"after {NAMES[0]} (good) and no later than {NAMES[-1]} (bad)" in found.conclusion
    assert (found.last_good, found.first_bad) == (NAMES[0], NAMES[-1])
    assert len(found.steps) == most_judged(len(NAMES)) == len(found.undecided) + 2
    assert all(step.next_steps for step in found.steps if step.rating is Rating.UNDECIDED)


def test_one_that_cannot_be_decided_is_stepped_round(tmp_path: Path) -> None:
    board = Simulated(tmp_path, rates(6) | {NAMES[4]: ALLOWED})
    found = bisect(NAMES, board, BisectSetup(RequirementCriterion(REQUIREMENT, ("cpu",)), 80 * 10**9, 80 * 10**9))
    assert (found.last_good, found.first_bad) == (NAMES[5], NAMES[6])
    assert {step.configuration: step.rating for step in found.steps}[NAMES[4]] is Rating.UNDECIDED


def test_one_that_does_not_boot_is_stepped_round(tmp_path: Path) -> None:
    board = Simulated(tmp_path, rates(6))

    def measure(configuration: str, duration_ns: int) -> Sequence[Recording]:
        if configuration != NAMES[4]:
            return board(configuration, duration_ns)
        return [
            recording(
                tmp_path,
                Plan(
                    [],
                    "dead",
                    "cpu",
                    outcome="failed",
                    reasons=("it did not come up",),
                    head={"configuration": configuration},
                ),
            )
        ]

    found = bisect(NAMES, measure, QUESTION)
    assert (found.last_good, found.first_bad) == (NAMES[5], NAMES[6])
    dead = next(step for step in found.steps if step.configuration == NAMES[4])
    assert (dead.rating, dead.measurements, dead.reasons) == (Rating.SKIPPED, 1, ("it did not come up",))


def _dead(folder: Path, configuration: str) -> Recording:
    """The run of a configuration that did not come up."""
    head = {"configuration": configuration}
    return recording(
        folder, Plan([], f"dead-{configuration}", "cpu", outcome="failed", reasons=("no boot",), head=head)
    )


@pytest.mark.parametrize("runs", [0, 1])
def test_as_many_as_cannot_be_measured_are_skipped(tmp_path: Path, runs: int) -> None:
    """They say nothing that may be wrong, so that they are not among those that share the allowed error."""
    board, broken = Simulated(tmp_path, rates(1)), NAMES[1:-1]

    def measure(configuration: str, duration_ns: int) -> Sequence[Recording]:
        return [_dead(tmp_path, configuration)][:runs] if configuration in broken else board(configuration, duration_ns)

    found = bisect(NAMES, measure, QUESTION)
    assert (found.last_good, found.first_bad, found.decided) == (NAMES[0], NAMES[-1], False)
    assert (sorted(found.skipped), found.undecided) == (broken, ())
    assert len(found.steps) == len(NAMES) > most_judged(len(NAMES))
    assert found.differences, "those between the two ends that were measured"


@pytest.mark.parametrize("end", [0, -1])
def test_an_end_that_cannot_be_measured_ends_the_search(tmp_path: Path, end: int) -> None:
    board = Simulated(tmp_path, rates(4))

    def measure(configuration: str, duration_ns: int) -> Sequence[Recording]:
        return [] if configuration == NAMES[end] else board(configuration, duration_ns)

    found = bisect(NAMES, measure, QUESTION)
    assert not found.decided and NAMES[end] in found.conclusion and found.steps[end].rating is Rating.SKIPPED


class Emulated:
    """A guest of which the median is known for each configuration, in ns; no recording of it ever passes."""

    def __init__(self, folder: Path, median_ns: dict[str, int], load: str = "none") -> None:
        self.folder, self.median_ns, self.load = folder, median_ns, load
        self.random = np.random.default_rng(7)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, configuration: str, duration_ns: int) -> list[Recording]:
        self.asked.append((configuration, duration_ns))
        n = duration_ns // PERIOD_NS
        values = self.median_ns[configuration] * self.random.lognormal(0, 0.2, n)
        values[self.random.random(n) < 0.01] = 50_000_000
        kernel = PROFILE["kernel"] | {"release": configuration}
        plan = Plan(
            [np.array_split(values.astype(np.int64), 40)],
            f"run-{len(self.asked)}",
            self.load,
            marks=("emulated",),
            period_ns=PERIOD_NS,
            head={"configuration": configuration, "profile": {**PROFILE, "kernel": kernel}},
        )
        return [recording(self.folder, plan)]


SLOWER = SlowdownCriterion(Growth(0.5, more_ns=100_000))
BESIDE = BisectSetup(SLOWER, 20 * 10**9, 80 * 10**9)


@pytest.mark.parametrize("first_bad", [1, 5, 8])
def test_guests_are_held_against_the_first_one_though_they_get_no_verdict(tmp_path: Path, first_bad: int) -> None:
    """Each has the same maxima, and 1 % of its values are 50 ms late."""
    medians = {name: 300_000 if place < first_bad else 600_000 for place, name in enumerate(NAMES)}
    board = Emulated(tmp_path, medians)
    found = bisect(NAMES, board, BESIDE)
    assert (found.last_good, found.first_bad, found.decided) == (NAMES[first_bad - 1], NAMES[first_bad], True)
    assert found.emulated
    assert board.asked[0] == (NAMES[0], BESIDE.most_ns), "what all others are held against"
    bad = next(step for step in found.steps if step.rating is Rating.BAD)
    assert bad.reasons[0].endswith("allowed 100 µs")


def test_what_lies_where_it_is_allowed_is_neither_good_nor_bad(tmp_path: Path) -> None:
    found = bisect(["a", "b"], Emulated(tmp_path, {"a": 300_000, "b": 400_000}), BESIDE)
    assert not found.decided and found.steps[1].rating is Rating.UNDECIDED
    assert found.steps[1].measured_ns == BESIDE.most_ns and found.steps[1].next_steps


def test_what_is_shown_beside_the_first_one_is_right_as_often_as_is_said(tmp_path: Path) -> None:
    """At the edge of what is allowed each answer is wrong: both together may come in a tenth of the tries."""
    said = []
    for seed in range(30):
        board = Emulated(tmp_path / str(seed), {"a": 300_000, "b": 400_000})
        board.folder.mkdir()
        board.random = np.random.default_rng(seed)
        first, here = board("a", BESIDE.most_ns), board("b", BESIDE.most_ns)
        said.append(SLOWER.look(here, first, 0.95, 0).rating)
    assert sum(one is not Rating.UNDECIDED for one in said) <= 7


def test_good_beside_the_first_one_needs_evidence_and_what_is_broken_is_neither(tmp_path: Path) -> None:
    board = Emulated(tmp_path, {"a": 300_000, "b": 300_000})
    first, here = board("a", BESIDE.most_ns), board("b", BESIDE.most_ns)
    assert SLOWER.look(here, first, 0.99, 0).rating is Rating.GOOD
    slow = [np.array_split(900_000 + board.random.integers(0, 90_000, 8000), 40)]
    plan = Plan(slow, "run-3", "none", marks=("emulated",), period_ns=PERIOD_NS)
    assert SLOWER.look([recording(tmp_path, plan)], first, 0.99, 0).rating is Rating.BAD
    lost = recording(tmp_path, replace(plan, run_id="run-4", lost=5))
    assert SLOWER.look([lost], first, 0.99, 0).rating is Rating.UNDECIDED
    other = Emulated(tmp_path, {"a": 300_000, "b": 300_000}, load="cpu")
    other.asked = board.asked * 2
    assert SLOWER.look(other("b", BESIDE.most_ns), first, 0.99, 0).rating is Rating.UNDECIDED


@pytest.mark.parametrize(
    ("first_bad", "said"),
    [(0, f"the first configuration, {NAMES[0]}, is bad"), (9, f"the last configuration, {NAMES[-1]}, is good")],
)
def test_ends_are_measured_before_they_are_believed(tmp_path: Path, first_bad: int, said: str) -> None:
    found: Bisection = bisect(NAMES, Simulated(tmp_path, rates(first_bad)), QUESTION)
    assert found.conclusion.startswith(said)
    assert not found.decided
    assert len(found.steps) <= 2


@pytest.mark.parametrize("requirement", [Requirement(LIMIT_NS, longest_burst=3), Requirement(LIMIT_NS, ALLOWED)])
def test_a_requirement_that_decides_by_one_value_or_never_is_refused(requirement: Requirement) -> None:
    with pytest.raises(BadInput):
        RequirementCriterion(requirement, ("cpu",))


def test_a_list_that_cannot_be_halved_is_refused(tmp_path: Path) -> None:
    for names in (["a"], ["a", "b", "a"]):
        with pytest.raises(BadInput, match="different"):
            bisect(names, Simulated(tmp_path, {}), QUESTION)


def test_what_an_installed_configuration_must_run_is_said_by_its_name() -> None:
    """Two builds of one release differ in nothing that the board tells of its kernel."""
    plan = CampaignPlan("bisect", ())
    changes = with_install_command(plan, ["6.1-a[1]", "6.1-b"], ["install", "{}"], "{}-*").changes
    assert changes["6.1-a[1]"].select == ("install", "6.1-a[1]")
    assert [fnmatchcase("6.1-a[1]-amd64", change.kernel) for change in changes.values()] == [True, False]
    assert with_install_command(plan, ["a", "b"], ["install", "{}"], "*").changes["b"].kernel == "*"
    with pytest.raises(BadInput, match="requires --install"):
        with_install_command(plan, ["a", "b"], [], "*")


@pytest.mark.parametrize(("missed", "rating"), [(0, Rating.GOOD), (1600, Rating.UNDECIDED)])
def test_missed_periods_without_a_value_are_not_good(missed: int, rating: Rating, tmp_path: Path) -> None:
    """A fifth of the periods has no value; the others are as fast as those of the first configuration."""
    random = np.random.default_rng(1)
    runs = []
    for name, without in (("first", 0), ("here", missed)):
        values = [np.array_split(300_000 + random.integers(0, 90_000, 8000 - without), 40)]
        plan = Plan(values, name, "none", marks=("emulated",), period_ns=PERIOD_NS, views=("wakeup",), missed=without)
        runs.append([recording(tmp_path, replace(plan, interval_ns=200 * PERIOD_NS))])
    assert SLOWER.look(runs[1], runs[0], 0.99, 0).rating is rating


def test_other_cpus_than_those_of_the_first_one_are_not_good(tmp_path: Path) -> None:
    """The slow CPU did not come up."""
    random = np.random.default_rng(1)
    cpus = [np.array_split(level + random.integers(0, 90_000, 8000), 40) for level in (300_000, 600_000)]
    plan = Plan(cpus, "first", "none", marks=("emulated",), period_ns=PERIOD_NS)
    first, here = (
        [recording(tmp_path, replace(plan, run_id=name, values=cpus[:n]))] for name, n in (("a", 2), ("b", 1))
    )
    look = SLOWER.look(here, first, 0.99, 0)
    assert (look.rating, look.closed) == (Rating.UNDECIDED, True)


def test_two_latencies_under_one_load_are_not_two_loads(tmp_path: Path) -> None:
    """The other load of the first configuration was not measured."""
    random = np.random.default_rng(1)
    values = [np.array_split(300_000 + random.integers(0, 90_000, 8000), 40) for _ in range(2)]
    plan = Plan(values, "x", "none", marks=("emulated",), period_ns=PERIOD_NS, views=("wakeup",))
    plan = replace(plan, first_series={"name": "other"}, interval_ns=200 * PERIOD_NS)
    first = [recording(tmp_path, replace(plan, run_id=load, load=load)) for load in ("none", "cpu")]
    assert SLOWER.look([recording(tmp_path, replace(plan, run_id="a"))], first, 0.99, 0).rating is Rating.UNDECIDED
    both = [recording(tmp_path, replace(plan, run_id=f"b-{load}", load=load)) for load in ("none", "cpu")]
    assert SLOWER.look(both, first, 0.99, 0).rating is Rating.GOOD


def test_more_time_does_not_decide_if_the_first_one_missed_periods(tmp_path: Path) -> None:
    """Most periods of the first configuration have no value; the other one is slower."""
    random = np.random.default_rng(1)
    runs = []
    for name, level, missed in (("first", 300_000, 4500), ("here", 900_000, 0)):
        values = [np.array_split(level + random.integers(0, 90_000, 8000 - missed), 40)]
        plan = Plan(values, name, "none", marks=("emulated",), period_ns=PERIOD_NS, views=("wakeup",), missed=missed)
        runs.append([recording(tmp_path, replace(plan, interval_ns=200 * PERIOD_NS))])
    look = SLOWER.look(runs[1], runs[0], 0.99, 0)
    assert (look.rating, look.closed) == (Rating.UNDECIDED, True)
