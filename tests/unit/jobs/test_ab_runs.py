# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of an A/B test that was resumed: each keeps its arm, and no pair is made of runs of two pairs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastenough.campaign import Entry, Plan
from fastenough.jobs.ab import AbTest, _AbCampaign
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
