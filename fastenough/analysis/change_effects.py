# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects of changes that were tested one at a time: what each does to the tail, judged together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from fastenough.analysis.bootstrap import ResampledQuantiles, difference_of
from fastenough.analysis.clusters import holm
from fastenough.analysis.measures import CONFIDENCE
from fastenough.analysis.merged import Merged, judged_series, merge_samples
from fastenough.analysis.paired import (
    LEAST_PAIRS,
    TAIL_QUANTILE,
    Effect,
    Pair,
    TailRate,
    judged_name,
    paired,
    sound_pairs,
)
from fastenough.recording import Recording


@dataclass(frozen=True)
class ChangeEffect:
    """Effect of one change under one load.

    ``tail`` is None without a conclusion, ``effect`` also without one on a quantile; ``reasons`` say why.
    """

    change: Mapping[str, str]
    load: str
    pairs: int
    effect: Effect | None
    tail: TailRate | None
    reasons: tuple[str, ...]
    campaign: str = ""

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.change.items())

    @property
    def helps(self) -> bool:
        """Whether the quantile or the rate is significantly smaller with the change."""
        return -1 in self._directions

    @property
    def harms(self) -> bool:
        """Whether the quantile or the rate is significantly greater with the change."""
        return 1 in self._directions

    @property
    def significant(self) -> bool:
        return self.helps or self.harms

    @property
    def _directions(self) -> set[int]:
        return {part.direction for part in (self.effect, self.tail) if part is not None}


def effect_of(
    pairs: Sequence[Pair], change: Mapping[str, str], load: str, campaign: str = "", confidence: float = CONFIDENCE
) -> ChangeEffect:
    """The effect of a change, from pairs of runs: on the highest quantile whose interval is bounded."""
    sound, exclusions = sound_pairs(pairs, change)
    effects = paired(pairs, change, confidence)
    if effects is None:
        return ChangeEffect(change, load, 0, None, None, exclusions or (f"fewer than {LEAST_PAIRS} pairs",), campaign)
    arms = _merged([pair.without for pair in sound]), _merged([pair.with_change for pair in sound])
    usable = sorted(
        (candidate for candidate in effects.effects if candidate.quantile <= TAIL_QUANTILE),
        key=lambda candidate: candidate.quantile,
        reverse=True,
    )
    widened = (_widened(candidate, arms, confidence) for candidate in usable)
    effect = next((candidate for candidate in widened if all(map(isfinite, candidate.ends))), None)
    reasons = effects.excluded
    if effects.tail is None:
        effect, reasons = None, ("the runs are too short for any percentile",)
    elif effect is None:
        reasons = ("the percentiles lie among missed periods without a value",)
    return ChangeEffect(change, load, effects.pairs, effect, effects.tail, reasons, campaign)


def _merged(runs: Sequence[Recording]) -> Merged:
    return merge_samples(
        [(run, series) for run in runs for series in judged_series(run) if series.name == judged_name(run)]
    )


def _widened(effect: Effect, arms: Sequence[Merged], confidence: float) -> Effect:
    """Widen the interval by that of the bootstrap, if there is one."""
    without, with_change = (ResampledQuantiles(arm).of_activations.edges(effect.quantile) for arm in arms)
    difference = difference_of(without, with_change)
    if difference is None:
        return effect
    lower_ns, upper_ns = difference.interval(confidence)
    return replace(
        effect,
        lower_ns=min(effect.lower_ns, lower_ns),
        upper_ns=max(effect.upper_ns, upper_ns),
        p_value=max(effect.p_value, difference.chance_of_none()),
    )


def judge_effects(effects: Iterable[ChangeEffect], confidence: float = CONFIDENCE) -> tuple[ChangeEffect, ...]:
    """Mark the effects and rates that are significant among all changes and loads together (Holm)."""
    everything = list(effects)
    p_values = [part.p_value for change in everything for part in (change.effect, change.tail) if part is not None]
    significant = iter(holm(p_values, 1 - confidence))
    return tuple(
        replace(
            change,
            effect=None if change.effect is None else replace(change.effect, significant=next(significant)),
            tail=None if change.tail is None else replace(change.tail, significant=next(significant)),
        )
        for change in everything
    )


def helpful_changes(effects: Sequence[ChangeEffect]) -> dict[str, str]:
    """Changes that help under some load and harm under none, greatest effect first."""
    harmful = {name for effect in effects if effect.harms for name in effect.change}
    helpful = sorted((effect for effect in effects if effect.helps and not harmful & effect.change.keys()), key=_gain)
    return {name: value for effect in helpful for name, value in effect.change.items()}


def _gain(change: ChangeEffect) -> float:
    return change.effect.effect_ns if change.effect is not None else 0.0
