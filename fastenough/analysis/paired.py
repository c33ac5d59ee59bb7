# SPDX-License-Identifier: GPL-2.0-or-later
"""The effect of a change, from pairs of runs without and with it, in random order within each pair.

Each pair gives one difference of each quantile.  With a fixed order, an influence that recurs with the order would look
like an effect of the change; no influence can follow a random order.  Pairs are independent if runs are, however the
values within a run depend on each other.  Their spread includes the variation between runs, which a comparison of two
runs cannot show.

Two methods judge the pairs.  ``SEQUENTIAL`` is valid after every pair (:mod:`paired_evidence`).  ``FIXED`` is for a
number of pairs chosen before: the interval is Student's (1908), and what the second run of a pair has more than the
first, such as an even drift, is estimated and taken out (Hills, Armitage 1979).  It can reject at the small errors that
many changes judged together require, which bets on a few pairs cannot: their evidence at most doubles with each.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fastenough.analysis import special
from fastenough.analysis.bootstrap import ResampledQuantiles
from fastenough.analysis.checks import findings_of
from fastenough.analysis.clusters import holm
from fastenough.analysis.differences import all_differences, run_values
from fastenough.analysis.keys import RUN_KEYS
from fastenough.analysis.measures import CONFIDENCE, QUANTILES
from fastenough.analysis.merged import FloatArray, judged_series, kinds, merge_samples, require_one_interval
from fastenough.analysis.paired_evidence import BoolArray, evidence_together, sequential
from fastenough.model import BadInput, Verdict
from fastenough.recording import Recording

ROUND = 4
"""Runs of a round: two pairs."""
LEAST_ROUNDS = 3
LEAST_PAIRS = 2 * LEAST_ROUNDS
LEAST_OF_ORDER = 2
"""Least number of pairs of either order from which the influence of the order can be estimated."""
LEAST_BEYOND = 10
"""Least number of values of each run above a quantile for an effect on it."""
TAIL_QUANTILE = 0.999
"""The quantile whose rate of values beyond is compared; a lower one where the runs are too short for it."""
PERIOD_ERROR = 0.01
"""Probability of a false period."""


def order_of_arms(seed: str, rounds: int, least_of_order: int) -> tuple[str, ...]:
    """The arm of each run: "A" without the change, "B" with it, one of both in each pair.  The order of a pair is
    random, with at least ``least_of_order`` pairs of either order; with 0, a fair coin decides each pair."""
    random_ = random.Random(seed)
    while True:
        pairs = random_.choices(("AB", "BA"), k=ROUND // 2 * rounds)
        if min(map(pairs.count, ("AB", "BA"))) >= least_of_order:
            return tuple("".join(pairs))


@dataclass(frozen=True)
class Pair:
    """``change_first``: whether the run with the change was made before the one without."""

    without: Recording
    with_change: Recording
    change_first: bool


@dataclass(frozen=True)
class Effect:
    """Effect of the change on one quantile of a run, in ns: means over the runs, the effect with its interval.

    ``p_value``: the least error at which the interval excludes zero.  ``significant``: zero is excluded also when the
    effects on all quantiles are judged together.
    """

    quantile: float
    without_ns: float
    with_ns: float
    effect_ns: float
    lower_ns: float
    upper_ns: float
    p_value: float
    significant: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower_ns, self.upper_ns

    @property
    def direction(self) -> int:
        """1: shown to be greater with the change, -1: smaller, 0: neither is shown."""
        return _direction(self.significant, self.lower_ns, self.upper_ns)


@dataclass(frozen=True)
class TailRate:
    """Effect of the change on the rate of values beyond ``limit_ns``: means over the runs, the effect with its
    interval.

    The limit favours neither side: see :class:`Method`.
    """

    limit_ns: float
    without: float
    with_change: float
    effect: float
    lower: float
    upper: float
    p_value: float
    significant: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower, self.upper

    @property
    def direction(self) -> int:
        """See Effect."""
        return _direction(self.significant, self.lower, self.upper)


def _direction(shown: bool, lower: float, upper: float) -> int:
    return 0 if not shown or lower <= 0 <= upper else 1 if lower > 0 else -1


@dataclass(frozen=True)
class Effects:
    """Effects on one kind of series, all CPUs together; ``n`` and ``maxima_ns`` without and with the change.

    ``excluded``: excluded pairs, with the reason.  ``differences``: differences between runs with the change and those
    without.  ``period_runs``: length of a significant period of the values, in runs; None without one.  ``evidence``:
    of an effect on the tail, valid after every pair: the lesser of that on the quantile at 99.9 %, or a lower one where
    the runs are short, and that on the rate, judged together with all others; that on the rate alone if the quantile
    lies among missed periods without a value; None with a fixed number of pairs.
    """

    series: str
    pairs: int
    n: tuple[int, int]
    effects: tuple[Effect, ...]
    tail: TailRate | None
    maxima_ns: tuple[tuple[float, ...], tuple[float, ...]]
    confidence: float
    excluded: tuple[str, ...]
    differences: tuple[str, ...]
    period_runs: float | None = None
    evidence: float | None = None

    @property
    def is_decided(self) -> bool:
        """Whether an effect on the tail is shown, however many pairs were planned."""
        return self.evidence is not None and self.evidence >= evidence_required(self.confidence)


def evidence_required(confidence: float) -> float:
    """Evidence required to show an effect."""
    return 1 / (1 - confidence)


def student(
    at_least: FloatArray, at_most: FloatArray, change_first: BoolArray, confidence: float
) -> tuple[float, float, float]:
    """Interval of the mean difference of pairs, and the least error at which it excludes zero.

    Each difference is known to lie between two values, as buckets leave it open.  The effect is the mean of those of
    either order, so that an influence of the order cancels.
    """
    degrees = at_least.size - 2
    width = float(special.stdtrit(degrees, (1 + confidence) / 2))
    (low, low_error), (high, high_error) = (
        _mean_of_orders(differences[change_first], differences[~change_first]) for differences in (at_least, at_most)
    )
    sides = [_beyond(low, low_error, degrees), _beyond(-high, high_error, degrees)]
    return low - width * low_error, high + width * high_error, min(1.0, 2 * min(sides))


def _mean_of_orders(first_order: FloatArray, second_order: FloatArray) -> tuple[float, float]:
    """The mean of two means, and its standard error from the spread within both."""
    squares = sum(float(((differences - differences.mean()) ** 2).sum()) for differences in (first_order, second_order))
    variance = squares / (first_order.size + second_order.size - 2)
    return float(first_order.mean() + second_order.mean()) / 2, math.sqrt(
        variance * (1 / first_order.size + 1 / second_order.size)
    ) / 2


def _beyond(mean: float, error: float, degrees: int) -> float:
    """One-sided p-value of a mean of at most zero."""
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(special.stdtr(degrees, -mean / error))


@dataclass(frozen=True)
class _ResampledPair:
    """The values of the runs of one pair."""

    pair: Pair
    name: str

    @cached_property
    def arms(self) -> tuple[ResampledQuantiles, ResampledQuantiles]:
        """Without and with the change."""
        without, with_change = (
            ResampledQuantiles(
                merge_samples([(recording, series) for series in judged_series(recording) if series.name == self.name])
            )
            for recording in (self.pair.without, self.pair.with_change)
        )
        return without, with_change


def orders(pairs: Sequence[Pair]) -> BoolArray:
    """Marks of the pairs whose run with the change was made first."""
    return np.array([pair.change_first for pair in pairs], bool)


@dataclass(frozen=True)
class Estimate:
    """An effect with its interval; see :class:`Effect`, and :class:`SequentialEstimate` for ``evidence``."""

    effect: float
    lower: float
    upper: float
    p_value: float
    evidence: float | None = None


def _fixed(at_least: FloatArray, at_most: FloatArray, change_first: BoolArray, confidence: float) -> Estimate:
    effect = float((at_least + at_most).mean()) / 2
    return Estimate(effect, *student(at_least, at_most, change_first, confidence))


def _sequential(at_least: FloatArray, at_most: FloatArray, change_first: BoolArray, confidence: float) -> Estimate:
    result = sequential(at_least, at_most, change_first, confidence)
    return Estimate(result.effect, result.lower, result.upper, 1 / max(1.0, result.evidence), result.evidence)


def _significant_by_p_value(estimates: Sequence[Estimate], confidence: float) -> list[bool]:
    return holm([estimate.p_value for estimate in estimates], 1 - confidence)


def _significant_by_evidence(estimates: Sequence[Estimate], confidence: float) -> list[bool]:
    return [evidence >= evidence_required(confidence) for evidence in _evidence(estimates)]


def _evidence(estimates: Sequence[Estimate]) -> list[float]:
    """Evidence of each estimate when all are judged together; empty with a fixed number of pairs."""
    return evidence_together([estimate.evidence for estimate in estimates if estimate.evidence is not None])


def _evidence_on(estimates: Sequence[Estimate], places: Sequence[int]) -> float | None:
    """The least joint evidence of the estimates at ``places``; None with a fixed number of pairs."""
    together = _evidence(estimates)
    return min(together[place] for place in places) if together else None


def limit_between(quantiles_ns: FloatArray) -> float:
    """Midway between the median run without and the median run with the change, which a single disturbed run does
    not move; ``quantiles_ns``: pairs x (without, with the change)."""
    return float(np.median(quantiles_ns, axis=0).sum() / 2)


def limit_of_first_round(quantiles_ns: FloatArray) -> float:
    """The median of the runs of the first round: it is the same whichever run of a pair had the change, and later runs
    do not move it, so that bets may use it."""
    return float(np.median(quantiles_ns[: ROUND // 2]))


@dataclass(frozen=True)
class Method:
    """A method of judging pairs.

    ``estimate``: function of the differences of pairs (at least, at most), of the marks of pairs with the change first,
    and of the confidence.  ``significant``: marks the estimates that are significant when all are judged together.
    ``limit_ns``: limit of the compared rate, from quantiles, pairs x (without, with the change).  ``least_of_order``:
    least number of pairs of either order.
    """

    estimate: Callable[[FloatArray, FloatArray, BoolArray, float], Estimate]
    significant: Callable[[Sequence[Estimate], float], list[bool]]
    limit_ns: Callable[[FloatArray], float]
    least_of_order: int


FIXED = Method(_fixed, _significant_by_p_value, limit_between, LEAST_OF_ORDER)
SEQUENTIAL = Method(_sequential, _significant_by_evidence, limit_of_first_round, 0)


def estimate(figures: FloatArray, change_first: BoolArray, confidence: float, method: Method) -> Estimate:
    """The effect on a figure of runs: pairs x (without, with the change) x (least, greatest value that it may have)."""
    without, changed = figures[:, 0], figures[:, 1]
    return method.estimate(changed[:, 0] - without[:, 1], changed[:, 1] - without[:, 0], change_first, confidence)


def effect_at(quantile: float, edges_ns: FloatArray, estimate: Estimate) -> Effect:
    """``edges_ns``: as the figures of :func:`estimate`."""
    return Effect(quantile, *_means(edges_ns), estimate.effect, estimate.lower, estimate.upper, estimate.p_value)


def rate_beyond(limit_ns: float, rates: FloatArray, estimate: Estimate) -> TailRate:
    """``rates``: as the figures of :func:`estimate`."""
    return TailRate(limit_ns, *_means(rates), estimate.effect, estimate.lower, estimate.upper, estimate.p_value)


def _means(figures: FloatArray) -> tuple[float, float]:
    without, changed = figures[..., 1].mean(axis=0)
    return float(without), float(changed)


def _edges(pairs: Sequence[_ResampledPair], quantile: float, of_values: bool = False) -> FloatArray | None:
    """Bounds of a quantile, in ns, as the figures of :func:`estimate`; None if a run has too few values above it, or if
    it is unknown in a run.  ``of_values``: without missed periods, which have no value."""
    beyond = min(arm.merged.n for pair in pairs for arm in pair.arms) * (1 - quantile)
    if beyond < LEAST_BEYOND - 1e-6:
        return None
    edges = np.array(
        [[(arm if of_values else arm.of_activations).bucket_ns(quantile) for arm in pair.arms] for pair in pairs]
    )
    return None if np.isnan(edges).any() else edges


def _limit_quantile(pairs: Sequence[_ResampledPair]) -> tuple[float, FloatArray] | None:
    """The quantile of the values whose rate of activations beyond is compared, with its bounds; None if the runs are
    too short.  Missed periods count in the rate, so they need not be known here."""
    for quantile in sorted((q for q in QUANTILES if q <= TAIL_QUANTILE), reverse=True):
        if (edges := _edges(pairs, quantile, of_values=True)) is not None:
            return quantile, edges
    return None


def _rates(pairs: Sequence[_ResampledPair], limit_ns: float) -> FloatArray:
    """Rates of values beyond a limit, pairs x (without, with the change) x (surely, possibly), by the buckets."""
    return np.array(
        [
            [[count / max(arm.merged.judged, 1) for count in arm.merged.exceeded(limit_ns)] for arm in pair.arms]
            for pair in pairs
        ]
    )


def period_of(without: FloatArray, with_change: FloatArray, change_first: BoolArray) -> tuple[float, float] | None:
    """The strongest period of the runs, in runs, and its p-value: Fisher's test (1929) of the largest share of the
    periodogram, after removing the effects of the arm, of an even drift and of the place within the pair."""
    count = 2 * without.size
    values, arm = np.empty(count), np.empty(count)
    values[0::2], values[1::2] = np.where(change_first, (with_change, without), (without, with_change))
    arm[0::2], arm[1::2] = change_first, ~change_first
    regressors = np.column_stack([np.ones(count), arm, np.arange(count), np.arange(count) % 2])
    residuals = values - regressors @ np.linalg.lstsq(regressors, values, rcond=None)[0]
    power = np.abs(np.fft.rfft(residuals)[1 : (count + 1) // 2]) ** 2
    if power.size < 2 or power.sum() <= 0:
        return None
    share = float(power.max() / power.sum())
    p_value = sum(
        (-1) ** (k - 1) * math.comb(power.size, k) * (1 - k * share) ** (power.size - 1)
        for k in range(1, int(1 / share) + 1)
        if k * share < 1
    )
    return count / (int(power.argmax()) + 1), p_value


def _period(edges: Sequence[FloatArray], change_first: BoolArray) -> float | None:
    """The most significant period over the quantiles, in runs; None if none is significant."""
    periods = [period for values in edges if (period := period_of(values[:, 0, 1], values[:, 1, 1], change_first))]
    runs, p_value = min(periods, key=lambda period: period[1], default=(0.0, 1.0))
    return runs if p_value * len(periods) <= PERIOD_ERROR else None


def _unsound(pair: Pair, changed: Collection[str]) -> str | None:
    """The reason why a pair is unusable, if any.  The changed settings need not be in effect everywhere, such as on
    an interrupt that cannot be moved."""
    for recording in (pair.without, pair.with_change):
        settings = tuple(setting for setting in recording.head.settings if setting.name.split(" ")[0] not in changed)
        for finding in findings_of(replace(recording, head=replace(recording.head, settings=settings))):
            if finding.verdict is Verdict.BROKEN:
                return f"run {recording.run_id}: {finding.text}"
    return None


def sound_pairs(pairs: Sequence[Pair], changed: Collection[str]) -> tuple[list[Pair], tuple[str, ...]]:
    """The usable pairs, and the reason of each unusable one."""
    reasons = [_unsound(pair, changed) for pair in pairs]
    return (
        [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None],
        tuple(f"pair {number}: {reason}" for number, reason in enumerate(reasons, 1) if reason),
    )


def _enough(pairs: Sequence[Pair], least_of_order: int) -> bool:
    """Whether an effect can be estimated from these pairs."""
    first = int(orders(pairs).sum())
    return len(pairs) >= LEAST_PAIRS and min(first, len(pairs) - first) >= least_of_order


def judged_name(recording: Recording) -> str:
    """Name of the series whose latency is compared; raises BadInput unless there is exactly one kind."""
    require_one_interval(recording)
    names = list(dict.fromkeys(series.name for series in judged_series(recording)))
    alike = [kind for kind in kinds(recording) if kind[0].name in names[:1] and kind[0] in judged_series(recording)]
    if len(names) != 1 or len(alike) != 1:
        raise BadInput(
            f"run {recording.run_id} holds {len(names) or 'no'} latencies to compare; choose a probe and "
            "parameters that measure one, such as timer"
        )
    return names[0]


def paired(
    pairs: Sequence[Pair], changed: Collection[str] = (), confidence: float = CONFIDENCE, method: Method = FIXED
) -> Effects | None:
    """The effect of a change; ``pairs`` in the order in which they were made; ``changed``: the names of the settings
    that are the change.

    None where too few pairs are sound.  Raises BadInput where the runs do not hold one kind of latency.
    """
    sound, exclusions = sound_pairs(pairs, changed)
    if not _enough(sound, method.least_of_order):
        return None
    name = judged_name(sound[0].without)
    resampled, change_first = [_ResampledPair(pair, name) for pair in sound], orders(sound)
    edges = {quantile: pair_edges for quantile in QUANTILES if (pair_edges := _edges(resampled, quantile)) is not None}
    estimates = [estimate(pair_edges, change_first, confidence, method) for pair_edges in edges.values()]
    effects = [effect_at(*pair, estimated) for pair, estimated in zip(edges.items(), estimates, strict=True)]
    tail = evidence = None
    if (limit := _limit_quantile(resampled)) is not None:
        limit_ns = method.limit_ns(limit[1][..., 1])
        rates = _rates(resampled, limit_ns)
        estimates.append(estimate(rates, change_first, confidence, method))
        tail = rate_beyond(limit_ns, rates, estimates[-1])
        evidence = _evidence_on(estimates, [*(place for place, at in enumerate(edges) if at == limit[0]), -1])
    significant = method.significant(estimates, confidence)
    before, after = (sum(pair.arms[arm].merged.n for pair in resampled) for arm in (0, 1))
    maxima = [tuple(pair.arms[arm].merged.maximum_ns or 0.0 for pair in resampled) for arm in (0, 1)]
    return Effects(
        name,
        len(sound),
        (before, after),
        tuple(
            replace(effect, significant=mark) for effect, mark in zip(effects, significant[: len(effects)], strict=True)
        ),
        tail and replace(tail, significant=significant[-1]),
        (maxima[0], maxima[1]),
        confidence,
        exclusions,
        all_differences(RUN_KEYS, run_values(sound[0].without), run_values(sound[0].with_change)),
        None if exclusions else _period(list(edges.values()), change_first),
        evidence,
    )
