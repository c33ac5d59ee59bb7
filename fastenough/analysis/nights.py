# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence of growth from whole nights, valid after every night (docs/method.md derives it).

A night is the unit: each night is one bet, however its values depend on each other, and however much nights differ.
Against "the values above the allowed quantile are no more than allowed, on average over nights" the bet is on the
share of them; against "at most half of the nights are within the limit" it is on whether a night is shown to be within.
A bet multiplies the capital by ``1 + stake (ratio - 1)``, where the ratio has a mean of at most 1 under the
hypothesis.  The product is an e-process: it ever reaches 1/E with a chance of at most E.  It does not depend on the
order of the nights, and a missing night is no bet.

Sources: Ville 1939; Waudby-Smith and Ramdas 2024 (betting on means).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis import clusters, special
from fastenough.model import Verdict

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NIGHT_NS = 12 * 3600 * 10**9
"""Runs that begin within this time after the first run of a night belong to that night."""
_STAKES = np.array([1.0, 0.75, 0.4, 0.2, 0.08])
"""Shares of the capital at stake: the greater ones find a large growth early, the smaller ones survive nights that
vary much."""
_WEIGHTS = np.array([0.3, 0.25, 0.15, 0.15, 0.15])
_NIGHT_ERROR = 0.1
"""Error at which one night is shown to be within the limit."""
_WITHIN_AT_MOST = (1 + _NIGHT_ERROR) / 2
"""Chance that a night is shown to be within, where at most half of the nights are."""
_MOST_NIGHTS = 1000
"""A decision that needs more nights than this is not expected."""
_MOST_LOG = 30.0
_SHARE_OF_BASELINE = 0.5
"""Part of the allowed error that is spent on the bounds of the baseline's quantile."""


@dataclass(frozen=True)
class RunExceedances:
    """Values of one run above the allowed quantile, which is known between two bounds.

    ``surely``: above the upper bound.  ``possibly``: above the lower bound.  ``size``: mean size of their clusters.
    """

    run_id: str
    begin_ns: int
    n: int
    surely: int
    possibly: int
    size: float


@dataclass(frozen=True)
class Night:
    """``above``: share of the values that are surely above the allowed quantile.  ``within``: the share that is
    possibly above it is shown to be at most the allowed one."""

    above: float
    within: bool


@dataclass(frozen=True)
class NightsEvidence:
    """Evidence from all nights, and the evidence that decides.

    ``slower``: for growth beyond the limit; ``within``: for growth within it.  ``expected``: the verdict that is
    expected at ``expected_night`` if further nights resemble these; None if it is decided, or if they show no trend.
    ``earliest_pass``: a PASS is impossible before this night; None: before the 1,000th.
    """

    nights: int
    slower: float
    slower_required: float
    within: float
    within_required: float
    earliest_pass: int | None
    expected: Verdict | None = None
    expected_night: int | None = None

    @property
    def verdict(self) -> Verdict:
        if self.slower >= self.slower_required:
            return Verdict.FAIL
        return Verdict.PASS if self.within >= self.within_required else Verdict.INCONCLUSIVE


def error_of_baseline(confidence: float, tests: int = 1) -> float:
    """One-sided error of a bound of the baseline's quantile, where so many tests share the allowed error."""
    return _SHARE_OF_BASELINE * (1 - confidence) / tests


def evidence_required(confidence: float, tests: int = 1) -> float:
    """Evidence that decides: 1 over the error that the baseline leaves."""
    return tests / ((1 - _SHARE_OF_BASELINE) * (1 - confidence))


def nights_of(runs: Sequence[RunExceedances], allowed: float) -> list[Night]:
    """The nights of runs in the order in which they were stored; ``allowed``: share of values above the quantile."""
    groups: list[list[RunExceedances]] = []
    for run in runs:
        if groups and abs(run.begin_ns - groups[-1][0].begin_ns) < NIGHT_NS:
            groups[-1].append(run)
        else:
            groups.append([run])
    return [_night(group, allowed) for group in groups]


def _night(runs: Sequence[RunExceedances], allowed: float) -> Night:
    n, surely, possibly = (sum(getattr(run, name) for run in runs) for name in ("n", "surely", "possibly"))
    size = float(clusters.inflated(possibly, max(run.size for run in runs)))
    chance_of_no_more = special.gammaincc(possibly / size + 1, n * allowed / size)
    return Night(surely / n, bool(chance_of_no_more <= _NIGHT_ERROR))


def log_capitals(ratios: FloatArray) -> FloatArray:
    """Logarithm of the capital of each stake after each night (stakes x nights)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(_STAKES[:, None] * (ratios - 1.0)).cumsum(axis=1))


def log_evidence(capitals: FloatArray) -> FloatArray:
    """Logarithm of the evidence from the logarithms of the capitals of all stakes (first axis)."""
    return np.asarray(special.logsumexp(capitals.T + np.log(_WEIGHTS), axis=-1))


def ratios_of(nights: Sequence[Night], allowed: float) -> tuple[FloatArray, FloatArray]:
    """The ratios of the bets on each night: for growth beyond the limit, and for growth within it."""
    above, within = np.array([(night.above, night.within) for night in nights], dtype=np.float64).T
    return above / allowed, within / _WITHIN_AT_MOST


def _expected_at(capitals: FloatArray, required: float) -> int | None:
    """The night with the required evidence if further nights resemble these."""
    nights = np.arange(capitals.shape[1] + 1, _MOST_NIGHTS + 1)
    return _first(nights, capitals[:, -1:] * (nights / capitals.shape[1]), required)


def _earliest_pass(capitals: FloatArray, required: float) -> int | None:
    """The night with the required evidence if all further nights are within."""
    more = np.arange(_MOST_NIGHTS + 1)
    gain = np.log1p(_STAKES * (1 / _WITHIN_AT_MOST - 1))
    return _first(capitals.shape[1] + more, capitals[:, -1:] + gain[:, None] * more, required)


def _first(nights: IntArray, capitals: FloatArray, required: float) -> int | None:
    reached = nights[log_evidence(capitals) >= math.log(required)]
    return int(reached[0]) if reached.size else None


def _evidence(capitals: FloatArray) -> float:
    return math.exp(min(float(log_evidence(capitals)[-1]), _MOST_LOG))


def evidence_of(nights: Sequence[Night], allowed: float, confidence: float, tests: int = 1) -> NightsEvidence:
    """Evidence of one night or more; ``tests``: so many hypotheses of growth share the allowed error."""
    slower, within = map(log_capitals, ratios_of(nights, allowed))
    required = evidence_required(confidence, tests), evidence_required(confidence)
    evidence = NightsEvidence(
        len(nights), _evidence(slower), required[0], _evidence(within), required[1], _earliest_pass(within, required[1])
    )
    expected = [
        (night, verdict)
        for night, verdict in (
            (_expected_at(slower, required[0]), Verdict.FAIL),
            (_expected_at(within, required[1]), Verdict.PASS),
        )
        if night is not None
    ]
    if evidence.verdict is not Verdict.INCONCLUSIVE or not expected:
        return evidence
    night, verdict = min(expected, key=lambda candidate: candidate[0])
    return replace(evidence, expected=verdict, expected_night=night)
