# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines on which some settings change latency by what is known, and others change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.change_effects import ChangeEffect, helpful_changes, judge_effects
from fastenough.analysis.paired import (
    FIXED,
    LEAST_OF_ORDER,
    TAIL_QUANTILE,
    effect_at,
    estimate,
    limit_between,
    rate_beyond,
)
from fastenough.analysis.paired_evidence import BoolArray
from tests.support.paired_truth import SPAN_US, WIDTH, Machine, order_of

CONFIDENCE = 0.95


def _pairs(
    machine: Machine, random: np.random.Generator, rounds: int, intervals: int, effect_us: float
) -> tuple[NDArray[np.float64], BoolArray]:
    """Values in µs, pairs x (without, with the change) x values, and of each pair whether that with the change was
    first; with the change the tail is later by the effect: one value in fifty."""
    order = order_of(random, rounds, LEAST_OF_ORDER)
    found = np.empty((len(order) // 2, 2, intervals * WIDTH))
    for number, arm in enumerate(order):
        values = machine.values(random, intervals, WIDTH).ravel() * SPAN_US
        values += random.normal(0.0, machine.run_us) if machine.run_us else 0.0
        values += machine.drift_us * number / len(order)
        late = random.random(values.size) < 1 / 50
        found[number // 2, int(arm == "B")] = values + late * (100.0 + (effect_us if arm == "B" else 0.0))
    return found, np.array(order[0::2]) == "B"


def tried_once(
    machine: Machine, random: np.random.Generator, name: str, effect_us: float, *, rounds: int = 5, intervals: int = 4
) -> ChangeEffect:
    """One change on trial, by the program's arithmetic."""
    values, first = _pairs(machine, random, rounds, intervals, effect_us)
    values *= 1000.0
    quantiles = np.quantile(values, TAIL_QUANTILE, axis=2, method="inverted_cdf")
    limit_ns = limit_between(quantiles)
    figures = [np.stack([each, each], axis=-1) for each in (quantiles, (values > limit_ns).mean(axis=2))]
    effect, rate = (estimate(each, first, CONFIDENCE, FIXED) for each in figures)
    return ChangeEffect(
        {name: "on"},
        "none",
        2 * rounds,
        effect_at(TAIL_QUANTILE, figures[0], effect),
        rate_beyond(limit_ns, figures[1], rate),
        (),
    )


@dataclass
class Counted:
    """Over all machines tried: ``found``: in how many each change was shown to help; ``wrongly``: in how many any
    change was shown that does nothing; ``in_order``: in how many the best were in the order of their true effects;
    ``covered``: in how many the interval held the true effect."""

    tries: int
    found: dict[str, int]
    covered: dict[str, int]
    wrongly: int = 0
    in_order: int = 0


def count(machine: Machine, effects_us: Mapping[str, float], tries: int, seed: int) -> Counted:
    """The effects are on the tail; less than zero: the change helps."""
    counted = Counted(tries, dict.fromkeys(effects_us, 0), dict.fromkeys(effects_us, 0))
    good = [name for name, effect in sorted(effects_us.items(), key=lambda pair: pair[1]) if effect < 0]
    for number in range(tries):
        random = np.random.default_rng([seed, number])
        tried = judge_effects([tried_once(machine, random, name, effect) for name, effect in effects_us.items()])
        for (name, effect), each in zip(effects_us.items(), tried, strict=True):
            counted.found[name] += each.helps
            assert each.effect is not None
            counted.covered[name] += each.effect.lower_ns <= effect * 1000 <= each.effect.upper_ns
        counted.wrongly += any(
            (each.helps or each.harms) and effects_us[name] == 0 for each in tried for name in each.change
        )
        counted.in_order += list(helpful_changes(tried)) == good
    return counted
