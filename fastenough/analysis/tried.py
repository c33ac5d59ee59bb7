# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that were tried one at a time: what each does to the tail, judged together.

Of each change and load, from rounds of runs in the order A B B A (:mod:`paired`): the effect on one high quantile in
ns, and on the rate of values beyond a limit.  The interval on the quantile is the wider of two: Student's from the
spread of the rounds, which holds how much runs differ, and that of a moving-block bootstrap over the runs' intervals
(Kuensch 1989), which holds what is slow within runs.  That on the rate is Student's.  Of all changes and loads
together, Holm's method (1979) says which effects are shown: with no effect anywhere, one or more are shown in at most
1 - confidence of cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fastenough.analysis.clusters import holm
from fastenough.analysis.drawn import Drawn, difference_of
from fastenough.analysis.measures import CONFIDENCE
from fastenough.analysis.merged import FloatArray, Merged, judged_series, merge_samples
from fastenough.analysis.paired import LEAST_ROUNDS, ORDER, Effect, Round, judged_name, paired, sound_rounds, student
from fastenough.recording import Recording

AT = 0.999
"""The quantile that is asked for; a lower one where the runs are too short for it."""


@dataclass(frozen=True)
class TailRate:
    """How often a value lies beyond ``limit_ns``: means over the runs, their difference with its interval.

    The limit is midway between the quantiles of the median runs without and with the change: it favours neither.
    """

    limit_ns: float
    without: float
    with_it: float
    effect: float
    lower: float
    upper: float
    chance: float
    shown: bool = False


@dataclass(frozen=True)
class Tried:
    """One change under one load; ``effect`` and ``tail`` None where nothing can be said, for the ``reasons``."""

    change: Mapping[str, str]
    load: str
    rounds: int
    effect: Effect | None
    tail: TailRate | None
    reasons: tuple[str, ...]
    campaign: str = ""

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.change.items())

    @property
    def helps(self) -> bool:
        """Whether it is shown that the tail is smaller with the change."""
        return self._shown(-1)

    @property
    def harms(self) -> bool:
        """Whether it is shown that the tail is greater with the change."""
        return self._shown(1)

    def _shown(self, sign: int) -> bool:
        return (self.effect is not None and self.effect.shown and self.effect.effect_ns * sign > 0) or (
            self.tail is not None and self.tail.shown and self.tail.effect * sign > 0)


def try_out(rounds: Sequence[Round], change: Mapping[str, str], load: str, campaign: str = "",
            confidence: float = CONFIDENCE) -> Tried:
    """What the rounds say of a change; ``rounds`` are whole ones, in the order of :data:`ORDER`."""
    effects = paired(rounds, change, confidence)
    if effects is None:
        _, left_out = sound_rounds(rounds, change)
        return Tried(change, load, 0, None, None, left_out or (f"fewer than {LEAST_ROUNDS} rounds",), campaign)
    usable = [each for each in effects.effects if each.quantile <= AT]
    if not usable:
        return Tried(change, load, effects.rounds, None, None, ("the runs are too short for any quantile",), campaign)
    effect = max(usable, key=lambda each: each.quantile)
    sound, _ = sound_rounds(rounds, change)
    runs = [[_merged([run]) for run in each] for each in sound]
    arms = [_merged([run for each in sound for run, arm in zip(each, ORDER, strict=True) if arm == which])
            for which in ("A", "B")]
    tail = _tail(runs, effect.quantile, confidence)
    return Tried(change, load, effects.rounds, _widened(effect, arms, confidence), tail, effects.left_out, campaign)


def _merged(runs: Sequence[Recording]) -> Merged:
    return merge_samples([(run, series) for run in runs for series in judged_series(run)
                          if series.name == judged_name(run)])


def _widened(effect: Effect, arms: Sequence[Merged], confidence: float) -> Effect:
    """With the interval of the bootstrap taken in, where there is one."""
    without, with_it = (Drawn(arm).edges(effect.quantile) for arm in arms)
    drawn = difference_of(without, with_it)
    if drawn is None:
        return effect
    lower_ns, upper_ns = drawn.interval(confidence)
    return replace(effect, lower_ns=min(effect.lower_ns, lower_ns), upper_ns=max(effect.upper_ns, upper_ns),
                   chance=max(effect.chance, drawn.chance_of_none()))


def _tail(runs: Sequence[Sequence[Merged]], quantile: float, confidence: float) -> TailRate:
    limit_ns = limit_between(np.array([[Drawn(run).bucket_ns(quantile)[1] for run in each] for each in runs]))
    rates = np.array([[[count / max(run.judged, 1) for count in run.exceeded(limit_ns)] for run in each]
                      for each in runs])
    return rate_effect(rates[..., 0], rates[..., 1], limit_ns, confidence)


def limit_between(quantiles_ns: FloatArray) -> float:
    """Midway between the median run without and the median run with the change, which no run that was held up moves;
    ``quantiles_ns``: rounds x runs in the order of :data:`ORDER`."""
    return float(sum(np.median(quantiles_ns[:, _places(which)]) for which in ("A", "B")) / 2)


def _places(which: str) -> list[int]:
    return [place for place, arm in enumerate(ORDER) if arm == which]


def rate_effect(surely: FloatArray, possibly: FloatArray, limit_ns: float, confidence: float) -> TailRate:
    """From rates beyond the limit, rounds x runs in the order of :data:`ORDER`; they differ as buckets do."""
    without, with_it = _places("A"), _places("B")
    low, high = surely[:, without].mean(axis=1), possibly[:, without].mean(axis=1)
    low_with, high_with = surely[:, with_it].mean(axis=1), possibly[:, with_it].mean(axis=1)
    lower, upper, chance = student(low_with - high, high_with - low, confidence)
    means = float(high.mean()), float(high_with.mean())
    return TailRate(limit_ns, *means, means[1] - means[0], lower, upper, chance)


def judged_together(tried: Iterable[Tried], confidence: float = CONFIDENCE) -> tuple[Tried, ...]:
    """Marks what is shown when all effects and rates of all changes and loads are judged together."""
    everything = list(tried)
    chances = [part.chance for each in everything for part in (each.effect, each.tail) if part is not None]
    shown = iter(holm(chances, 1 - confidence))
    return tuple(replace(each, effect=None if each.effect is None else replace(each.effect, shown=next(shown)),
                         tail=None if each.tail is None else replace(each.tail, shown=next(shown)))
                 for each in everything)


def best_of(tried: Sequence[Tried]) -> dict[str, str]:
    """The changes that are shown to help under some load and to harm under none, the greatest effect first."""
    harmful = {name for each in tried if each.harms for name in each.change}
    good = sorted((each for each in tried if each.helps and not harmful & each.change.keys()), key=_gain)
    return {name: value for each in good for name, value in each.change.items()}


def _gain(each: Tried) -> float:
    return each.effect.effect_ns if each.effect is not None else 0.0
