# SPDX-License-Identifier: GPL-2.0-or-later
"""What a change does, from rounds of runs without and with it in the order A B B A.

Each round gives one difference of each quantile: the mean of its two runs with the change less the mean of the two
without.  What drifts evenly over a round is on both sides alike.  Rounds are independent of each other where runs are,
however the values within a run depend on one another, so the interval is Student's (1908), from the spread of the
rounds: it holds how much runs differ among themselves, which no comparison of two runs knows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from fastenough.analysis.checks import findings_of
from fastenough.analysis.clusters import holm
from fastenough.analysis.differences import all_differences, run_values
from fastenough.analysis.drawn import Drawn
from fastenough.analysis.keys import RUN_KEYS
from fastenough.analysis.measures import CONFIDENCE, QUANTILES
from fastenough.analysis.merged import FloatArray, judged_series, kinds, merge_samples
from fastenough.model import BadInput, Verdict
from fastenough.recording import Recording

ORDER = ("A", "B", "B", "A")
"""Of the runs of a round: A as it is, B with the change."""
LEAST_ROUNDS = 3
LEAST_BEYOND = 10
"""Values of each run above a quantile, with fewer of which it is left out."""

Round = Sequence[Recording]


@dataclass(frozen=True)
class Effect:
    """What the change does to one quantile of a run, in ns: means over the runs, their difference with its interval.

    ``chance``: the least error at which the interval excludes zero.  ``shown``: zero is excluded also when the effects
    on all quantiles are judged together.
    """

    quantile: float
    without_ns: float
    with_ns: float
    effect_ns: float
    lower_ns: float
    upper_ns: float
    chance: float
    shown: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower_ns, self.upper_ns


@dataclass(frozen=True)
class Effects:
    """Of one kind of series, all CPUs together; ``n`` and ``maxima_ns`` without and with the change.

    ``left_out``: rounds that say nothing, with the reason.  ``differs``: in what runs with the change differ from those
    without.
    """

    series: str
    rounds: int
    n: tuple[int, int]
    effects: tuple[Effect, ...]
    maxima_ns: tuple[tuple[float, ...], tuple[float, ...]]
    confidence: float
    left_out: tuple[str, ...]
    differs: tuple[str, ...]


def student(at_least: FloatArray, at_most: FloatArray, confidence: float) -> tuple[float, float, float]:
    """Interval of the mean of differences, and the least error at which it excludes zero.

    Each difference is known to lie between two values, as buckets leave it open.
    """
    degrees = at_least.size - 1
    width = float(special.stdtrit(degrees, (1 + confidence) / 2))
    (low, low_error), (high, high_error) = ((float(each.mean()), float(each.std(ddof=1)) / math.sqrt(each.size))
                                            for each in (at_least, at_most))
    sides = [_beyond(low, low_error, degrees), _beyond(-high, high_error, degrees)]
    return low - width * low_error, high + width * high_error, min(1.0, 2 * min(sides))


def _beyond(mean: float, error: float, degrees: int) -> float:
    """The error at which it is shown that the mean is greater than zero."""
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(special.stdtr(degrees, -mean / error))


def _drawn(recording: Recording, name: str) -> Drawn:
    return Drawn(merge_samples([(recording, series) for series in judged_series(recording) if series.name == name]))


def _effect(rounds: Sequence[Sequence[Drawn]], quantile: float, confidence: float) -> Effect | None:
    """None where a run has too few values above the quantile."""
    beyond = min(run.merged.n for each in rounds for run in each) * (1 - quantile)
    if beyond < LEAST_BEYOND - 1e-6:
        return None
    edges = np.array([[run.bucket_ns(quantile) for run in each] for each in rounds])
    if np.isnan(edges).any():
        return None
    without, changed = (edges[:, [place for place, arm in enumerate(ORDER) if arm == which]].mean(axis=1)
                        for which in ("A", "B"))
    lower_ns, upper_ns, chance = student(changed[:, 0] - without[:, 1], changed[:, 1] - without[:, 0], confidence)
    means = float(without[:, 1].mean()), float(changed[:, 1].mean())
    return Effect(quantile, *means, means[1] - means[0], lower_ns, upper_ns, chance)


def _unsound(round_: Round, changed: Collection[str]) -> str | None:
    """Why a round says nothing; what is on trial is not among the settings that must be in effect everywhere, such as
    on an interrupt that cannot be moved."""
    for recording in round_:
        settings = tuple(one for one in recording.head.settings if one.name.split(" ")[0] not in changed)
        for finding in findings_of(replace(recording, head=replace(recording.head, settings=settings))):
            if finding.verdict is Verdict.BROKEN:
                return f"run {recording.run_id}: {finding.text}"
    return None


def sound_rounds(rounds: Sequence[Round], changed: Collection[str]) -> tuple[list[Round], tuple[str, ...]]:
    """The rounds that say something, and of the others the reason why they do not."""
    reasons = [_unsound(each, changed) for each in rounds]
    return ([each for each, reason in zip(rounds, reasons, strict=True) if reason is None],
            tuple(f"round {number}: {reason}" for number, reason in enumerate(reasons, 1) if reason))


def judged_name(recording: Recording) -> str:
    """The series whose latency the effect is on; raises BadInput where there is not one kind of them."""
    names = list(dict.fromkeys(series.name for series in judged_series(recording)))
    alike = [kind for kind in kinds(recording) if kind[0].name in names[:1] and kind[0] in judged_series(recording)]
    if len(names) != 1 or len(alike) != 1:
        raise BadInput(f"run {recording.run_id} holds {len(names) or 'no'} latencies to compare; give a probe and "
                       "parameters that measure one, such as timer")
    return names[0]


def paired(rounds: Sequence[Round], changed: Collection[str] = (), confidence: float = CONFIDENCE) -> Effects | None:
    """The effect of a change; ``rounds`` are of four runs each, in the order of :data:`ORDER`; ``changed``: the names
    of the settings that are the change.

    None where fewer than three rounds are sound.  Raises BadInput where the runs do not hold one kind of latency.
    """
    sound, left_out = sound_rounds(rounds, changed)
    if len(sound) < LEAST_ROUNDS:
        return None
    name = judged_name(sound[0][0])
    drawn = [[_drawn(recording, name) for recording in each] for each in sound]
    found = [effect for quantile in QUANTILES if (effect := _effect(drawn, quantile, confidence)) is not None]
    shown = holm([effect.chance for effect in found], 1 - confidence)
    arms = [[run.merged for each in drawn for run, arm in zip(each, ORDER, strict=True) if arm == which]
            for which in ("A", "B")]
    before, after = (sum(merged.n for merged in arm) for arm in arms)
    maxima = [tuple(merged.maximum_ns or 0.0 for merged in arm) for arm in arms]
    first, second = (run_values(recording) for recording in sound[0][:2])
    return Effects(
        name, len(sound), (before, after),
        tuple(replace(effect, shown=mark) for effect, mark in zip(found, shown, strict=True)), (maxima[0], maxima[1]),
        confidence, left_out,
        all_differences(RUN_KEYS, first, second))
