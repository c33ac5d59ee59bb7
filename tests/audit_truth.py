# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines on which some settings change latency by what is known, and others change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from paired_truth import SPAN_US, WIDTH, Machine

from fastenough.analysis.paired import ORDER, Effect, student
from fastenough.analysis.tried import AT, Tried, best_of, judged_together, limit_between, rate_effect

CONFIDENCE = 0.95


def _runs(machine: Machine, random: np.random.Generator, rounds: int, intervals: int,
          effect_us: float) -> NDArray[np.float64]:
    """Values in µs, rounds x runs x values; with the change the tail is later by the effect: one value in fifty."""
    found = np.empty((rounds, len(ORDER), intervals * WIDTH))
    for place in np.ndindex(found.shape[:2]):
        values = machine.values(random, intervals, WIDTH).ravel() * SPAN_US
        values += random.normal(0.0, machine.run_us) if machine.run_us else 0.0
        values += machine.drift_us * (place[0] * len(ORDER) + place[1]) / (rounds * len(ORDER))
        late = random.random(values.size) < 1 / 50
        found[place] = values + late * (100.0 + (effect_us if ORDER[place[1]] == "B" else 0.0))
    return found


def tried_once(machine: Machine, random: np.random.Generator, name: str, effect_us: float, *, rounds: int = 5,
               intervals: int = 4) -> Tried:
    """One change on trial, by the program's arithmetic."""
    values = _runs(machine, random, rounds, intervals, effect_us) * 1000.0
    quantiles = np.quantile(values, AT, axis=2, method="inverted_cdf")
    without, with_it = quantiles[:, [0, 3]].mean(axis=1), quantiles[:, [1, 2]].mean(axis=1)
    lower, upper, chance = student(with_it - without, with_it - without, CONFIDENCE)
    effect = Effect(AT, float(without.mean()), float(with_it.mean()), float((with_it - without).mean()), lower, upper,
                    chance)
    limit_ns = limit_between(quantiles)
    rates = (values > limit_ns).mean(axis=2)
    return Tried({name: "on"}, "none", rounds, effect, rate_effect(rates, rates, limit_ns, CONFIDENCE), ())


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
        tried = judged_together([tried_once(machine, random, name, effect) for name, effect in effects_us.items()])
        for (name, effect), each in zip(effects_us.items(), tried, strict=True):
            counted.found[name] += each.helps
            assert each.effect is not None
            counted.covered[name] += each.effect.lower_ns <= effect * 1000 <= each.effect.upper_ns
        counted.wrongly += any((each.helps or each.harms) and effects_us[name] == 0
                               for each in tried for name in each.change)
        counted.in_order += list(best_of(tried)) == good
    return counted
