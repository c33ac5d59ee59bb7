# SPDX-License-Identifier: GPL-2.0-or-later
"""The extent of a hunt: how many trials are left, how long they take, and the identity by which a hunt is resumed."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from fastenough.campaign import Entry, Plan
from fastenough.campaign.expand import expand, plan_sha256
from fastenough.hunt.extent import AFTER_S, HuntExtent, HuntProgress, SearchTime, TrialCount
from fastenough.jobs.hunt import FIXED, Hunt
from fastenough.model import BadInput

PLAN = Plan("hunt", (Entry("timer", ("none",), 4.0, {"interval": ("1ms",)}),), boards=("local",))


@pytest.mark.parametrize(("budget_s", "turns"), [(899.9, 4), (900.0, 8)])
def test_a_short_search_has_shorter_trials(budget_s: float, turns: int) -> None:
    extent = SearchTime(budget_s)
    assert (extent.turns, extent.trial_s) == (turns, turns)
    assert extent.phase_ns(3) is None and extent.stressor_options == () and not extent.boots_once
    assert extent.seed("hunt-7") == "hunt-7"


def test_a_search_time_holds_as_many_trials_as_fit() -> None:
    extent = SearchTime(600.0)
    assert extent.trials_left(HuntProgress(0, 45.0, 45.0)) == 70, "before the first trial: (600 - 30 - 45) / 7.5"
    assert extent.trials_left(HuntProgress(4, 65.0, 45.0)) == 67, "trials of fixed loads are shorter than others"
    assert extent.trials_left(HuntProgress(10, 145.0, 45.0)) == 42, "(600 - 30 - 145) / 10"
    assert extent.trials_left(HuntProgress(52, 565.0, 45.0)) == extent.trials_left(HuntProgress(60, 700.0, 45.0)) == 0
    assert extent.remaining_s(HuntProgress(10, 145.0, 45.0), 42) == 600.0 - 145.0
    assert extent.remaining_s(HuntProgress(60, 700.0, 45.0), 0) == 0.0
    assert SearchTime(600.0 + AFTER_S).trials_left(HuntProgress(0, 0.0, 0.0)) == 80


def test_a_number_of_trials_does_not_depend_on_time() -> None:
    extent = TrialCount(60)
    assert [extent.trials_left(HuntProgress(made, 1e6, 5.0)) for made in (0, 1, 59, 60, 61)] == [60, 59, 1, 0, 0]
    assert extent.remaining_s(HuntProgress(0, 5.0, 5.0), 60) == 0.0, "unknown before the first trial"
    assert extent.remaining_s(HuntProgress(2, 25.0, 5.0), 58) == 580.0
    assert extent.seed("hunt-7") == extent.seed("hunt-8")
    assert extent.phase_ns(3) == extent.phase_ns(3) != extent.phase_ns(4)
    assert (extent.turns, extent.boots_once, extent.stressor_options) == (1, True, ("--seed", "1"))


@pytest.mark.parametrize(
    ("extent", "least"), [(SearchTime(299.9), SearchTime(300.0)), (TrialCount(49), TrialCount(50))]
)
def test_the_least_extent_can_confirm_a_result(extent: HuntExtent, least: HuntExtent) -> None:
    least.require_enough(len(FIXED))
    with pytest.raises(BadInput):
        extent.require_enough(len(FIXED))


@pytest.mark.parametrize(
    ("extent", "budget_s", "trials"), [(SearchTime(600.0), 600.0, ()), (TrialCount(60), 0.0, (60,))]
)
def test_a_hunt_is_resumed_by_the_identity_of_its_search(
    extent: HuntExtent, budget_s: float, trials: tuple[int, ...]
) -> None:
    """The identity that is stored with each trial; another one is of another search, whose trials are not replayed."""
    arguments = (plan_sha256(PLAN, expand(PLAN)), budget_s, ("cpu", "fork"), ("none",), "hunt 4", *trials)
    hunt = Hunt(PLAN, extent, ("cpu", "fork"), ("none",))
    assert hunt.sha256 == hashlib.sha256(repr(arguments).encode()).hexdigest()
    others = (replace(hunt, extent=SearchTime(601.0)), replace(hunt, extent=TrialCount(61)))
    assert len({hunt.sha256, *(other.sha256 for other in others)}) == 3
