# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of an A/B test that was resumed: each keeps its arm, and no pair is made of runs of two pairs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastenough.campaign import Entry, Plan
from fastenough.jobs.ab import AbTest, _AbCampaign, require_visible
from fastenough.jobs.audit import trials
from fastenough.model import NotApplicable
from fastenough.recording.head import RecordedSetting
from fastenough.store import Store


def _recording(run: str) -> Any:
    return SimpleNamespace(run_id=run)


@pytest.mark.parametrize("missing", [[], [0], [0, 1], [6], [7], [6, 7], [2, 3, 19], [8, 9, 10, 11], [0, 3]])
def test_runs_keep_their_arms_and_their_pairs(tmp_path: Path, missing: list[int]) -> None:
    """A damaged run is found by the resumed test, which is stopped before it was made again."""
    plan = Plan("ab", (Entry("timer", ("none",), 0.2, {"interval": ("1ms",)}),), boards=("local",))
    campaign = _AbCampaign(Store(tmp_path), AbTest(plan, {"swappiness": "1"}, 5))
    campaign.made = {position: str(position) for position in range(20) if position not in missing}
    result = campaign.result()
    whole = [first for first in range(0, 20, 2) if not {first, first + 1} & set(missing)]
    assert [{int(pair.without.run_id), int(pair.with_change.run_id)} for pair in result.pairs(_recording)] == [
        {first, first + 1} for first in whole
    ]
    for pair in result.pairs(_recording):
        assert campaign.order[int(pair.without.run_id)] == "A" and campaign.order[int(pair.with_change.run_id)] == "B"
        assert pair.change_first == (int(pair.with_change.run_id) < int(pair.without.run_id))
    assert result.rounds == sum({2 * r, 2 * r + 2} <= set(whole) for r in range(0, 10, 2))
    assert len(result.runs) == len(result.order) == 20 - len(missing)


def _holding(us: int | None) -> Any:
    hold = RecordedSetting("cpu_dma_latency_us", None if us is None else 0, us)
    return SimpleNamespace(head=SimpleNamespace(settings=(RecordedSetting("policy", "fifo", "fifo"), hold)))


@pytest.mark.parametrize(("held_us", "value"), [(0, "10"), (10, "10"), (0, "0")])
def test_idle_states_that_the_probe_prevents_are_no_effect_of_a_setting(held_us: int, value: str) -> None:
    with pytest.raises(NotApplicable, match="latency=off"):
        require_visible(_holding(held_us), {"swappiness": "1", "idle-latency": value})


@pytest.mark.parametrize(("held_us", "change"), [(None, "idle-latency"), (20, "idle-latency"), (0, "swappiness")])
def test_other_changes_are_visible(held_us: int | None, change: str) -> None:
    require_visible(_holding(held_us), {change: "10"})


def test_an_audit_measures_idle_states_that_the_probe_allows() -> None:
    plan = Plan("audit", (Entry("timer", ("none",), 0.2, {"interval": ("1ms",)}),), boards=("local",))
    idle, other = trials(plan, {"idle-latency": "10", "swappiness": "1"}, ("cpu",), 3)
    for arm in (idle.plan, idle.with_change()):
        assert arm.entries[0].parameters == {"interval": ("1ms",), "latency": ("off",)}
    assert other.plan.entries[0].parameters == {"interval": ("1ms",)}
