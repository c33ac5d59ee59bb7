# SPDX-License-Identifier: GPL-2.0-or-later
"""The effect of a change after which activations are missed that no value stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis.change_effects import effect_of, helpful_changes, judge_effects
from fastenough.analysis.paired import Pair, paired
from fastenough.cli.audit_measure import effect_text
from fastenough.recording import Recording
from tests.support.presence import present
from tests.support.recordings import Plan, recording


def _run(folder: Path, number: int, missed: int) -> Recording:
    """5,000 activations without a period, of which some have no value."""
    random = np.random.default_rng(number)
    values = np.array_split((20_000 * random.lognormal(0, 0.3, 5000 - missed)).astype(np.int64), 5)
    plan = Plan([values], run_id=f"run-{number}", missed=missed, views=("wakeup",), interval_ns=10**9)
    plan.head, plan.series = {"probe": "made-up", "parameters": {"size": 1}}, {"period_ns": None}
    return recording(folder, plan)


def _pairs(folder: Path, number: int, missed: int) -> list[Pair]:
    return [
        Pair(_run(folder, 2 * place, 0), _run(folder, 2 * place + 1, missed), place % 2 == 0) for place in range(number)
    ]


@pytest.mark.parametrize(("missed", "quantiles"), [(0, [0.5, 0.95, 0.99]), (500, [0.5]), (2600, [])])
def test_missed_activations_exceed_each_quantile(missed: int, quantiles: list[float], tmp_path: Path) -> None:
    effects = present(paired(_pairs(tmp_path, 8, missed)), "effects")
    assert [effect.quantile for effect in effects.effects] == quantiles
    tail = present(effects.tail, "rate")
    assert tail.direction == (missed > 0) and 0.005 < tail.without < 0.02
    assert tail.with_change - tail.without == pytest.approx(missed / 5000, abs=0.01)
    for effect in effects.effects[:1]:
        truth = np.quantile(20_000 * np.random.default_rng(0).lognormal(0, 0.3, 10**6), 0.5 * 5000 / (5000 - missed))
        assert effect.direction == (missed > 0)
        assert effect.lower_ns < truth - 20_000 < effect.upper_ns


def test_a_change_after_which_half_of_the_activations_are_missed_harms(tmp_path: Path) -> None:
    """No quantile has a value, but the rate beyond the limit shows it."""
    judged = judge_effects([effect_of(_pairs(tmp_path, 8, 2600), {"a": "b"}, "none")])
    assert judged[0].effect is None and judged[0].harms and not helpful_changes(judged)
    assert effect_text(judged[0]).count("greater") == 1


@pytest.mark.check
@pytest.mark.parametrize(("missed", "quantile"), [(30, 0.99), (40, 0.95), (200, 0.5)])
def test_a_change_is_judged_by_the_highest_quantile_with_a_bounded_interval(
    missed: int, quantile: float, tmp_path: Path
) -> None:
    """Runs with the change may have their quantile among the missed activations, with 40 of 5,000 at 99 %."""
    effect = present(effect_of(_pairs(tmp_path, 12, missed), {"a": "b"}, "none").effect, "effect")
    assert effect.quantile == quantile
    assert np.isfinite(effect.ends).all()
