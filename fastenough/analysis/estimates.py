# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates beyond the observed maximum, each with its tests, or the reason why there is none.

Verdicts rest on measured values only, never on these estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fastenough.analysis import words
from fastenough.analysis.extreme_tests import GEV, GPD, OVER_TIME, Family, Model, checked_model, periodicity
from fastenough.analysis.extremes import Likelihood, NoFit, ReturnLevel
from fastenough.analysis.longer_runs import LongerRun
from fastenough.analysis.machine import is_emulated, steal_text
from fastenough.analysis.maxima import FloatArray, Maxima, maxima_of
from fastenough.model import Series
from fastenough.recording import Recording

LEAST_MAXIMA = 50
MOST_SHAPE = 0.5
LEAST_SHAPE = -0.5
"""Below it, the interval of a profile likelihood does not reach its confidence (Smith 1985)."""
_BLOCKS = 100
_MOST_EXCEEDANCES = 200
_ONE_IN = 5
"""At most one stretch in so many may exceed the threshold, so that the exceedances of a stretch are one disturbance."""
_HOUR_NS = 3600 * 10**9
MISSIONS_NS = {
    _HOUR_NS: "an hour",
    24 * _HOUR_NS: "a day",
    30 * 24 * _HOUR_NS: "in 30 days",
    365 * 24 * _HOUR_NS: "a year",
}
"""Durations, each with the phrase for one disturbance per duration."""
_FARTHEST = 100
"""Longest mission, as a multiple of the measured time."""
_SELDOM = 0.05
"""Chance at which a longer run exceeds the level that its maximum is compared with."""


@dataclass(frozen=True)
class Estimate:
    """``maxima``: how many; ``per_hour``: disturbances above the threshold, None where there is none; ``model``: tests
    of the distribution, None where an earlier one refused; ``refused``: why the levels are left out."""

    method: str
    maxima: int
    stretch_ns: float
    threshold_ns: float | None = None
    per_hour: float | None = None
    shape: float | None = None
    model: Model | None = None
    levels: tuple[ReturnLevel, ...] = ()
    refused: str | None = None


def estimates(parts: Sequence[tuple[Recording, Series]], longer: LongerRun | None = None) -> list[Estimate]:
    """Estimates for series of one CPU that may be merged: by block maxima, and by exceedances of a threshold."""
    maxima = maxima_of(parts)
    refused = _machine(parts)
    if refused is None and not maxima.stretch_ns:
        refused = "the times of the samples are unknown"
    if refused is not None:
        return [Estimate("none", maxima.values_ns.size, maxima.stretch_ns, refused=refused)]
    return [by_blocks(maxima, longer), by_threshold(maxima, longer)]


def _machine(parts: Sequence[tuple[Recording, Series]]) -> str | None:
    """The reason of machine or recordings against any estimate."""
    recordings = [recording for recording, _ in parts]
    if any(map(is_emulated, recordings)):
        return "the machine is emulated: its timing is not meaningful"
    if any("virtual-machine" in recording.head.marks for recording in recordings):
        return "virtual machine: the host's behavior cannot be measured from inside"
    steal = steal_text(recordings)
    if steal is not None:
        return f"CPU time was taken from this machine: {steal}"
    if any(recording.lost(series.id) for recording, series in parts):
        return "samples were lost; the maximum may be among them"
    if any(recording.missed(series.id) and not series.corrected for recording, series in parts):
        return "missed periods have no value"
    return None


def by_blocks(maxima: Maxima, longer: LongerRun | None = None) -> Estimate:
    """GEV fitted to maxima of blocks."""
    blocks = maxima.blocks(_BLOCKS)
    estimate = Estimate(f"GEV, maxima of {words.duration(blocks.stretch_ns)}", blocks.values_ns.size, blocks.stretch_ns)
    if blocks.values_ns.size < LEAST_MAXIMA:
        return replace(estimate, refused=_too_few(maxima, 1))
    estimate = _with_tests(estimate, blocks, blocks.values_ns, GEV, maxima)
    return estimate if estimate.refused else _with_levels(estimate, Likelihood(blocks), maxima.duration_ns, longer)


def by_threshold(maxima: Maxima, longer: LongerRun | None = None) -> Estimate:
    """GPD fitted to the exceedances of a threshold."""
    n = maxima.values_ns.size
    if n < LEAST_MAXIMA * _ONE_IN:
        return Estimate("GPD, above a threshold", n // _ONE_IN, maxima.stretch_ns, refused=_too_few(maxima, _ONE_IN))
    number = min(_MOST_EXCEEDANCES, max(LEAST_MAXIMA, n // 10))
    threshold_ns = float(np.sort(maxima.values_ns)[-number - 1])
    excesses = maxima.values_ns[maxima.values_ns > threshold_ns] - threshold_ns
    tail = replace(maxima, values_ns=np.maximum(maxima.values_ns, threshold_ns))
    estimate = Estimate(f"GPD, above {words.latency(threshold_ns)}", excesses.size, maxima.stretch_ns, threshold_ns)
    if excesses.size < LEAST_MAXIMA:
        return replace(estimate, refused="too many maxima are equal: the clock is too coarse for an estimate")
    estimate = _with_tests(estimate, tail, excesses, GPD, maxima)
    return (
        estimate
        if estimate.refused
        else _with_levels(estimate, Likelihood(tail, threshold_ns), maxima.duration_ns, longer)
    )


def _too_few(maxima: Maxima, times: int) -> str:
    n, needed = maxima.values_ns.size, LEAST_MAXIMA * times
    return (
        f"fewer than {LEAST_MAXIMA} maxima, from {words.counted(n, 'interval')}: it takes {needed} intervals, "
        f"which are {words.duration(needed * maxima.stretch_ns)}"
    )


def _with_tests(estimate: Estimate, maxima: Maxima, values: FloatArray, family: Family, single: Maxima) -> Estimate:
    """The estimate after its tests, the cheapest first; only an estimate that passes all of them gets levels.

    ``single``: the maxima of single stretches, of which ``maxima`` may be blocks.
    """
    refused = next((reason for test in OVER_TIME if (reason := test(maxima))), None) or periodicity(single)
    if refused is not None:
        return replace(estimate, refused=refused)
    model = checked_model(values, maxima.step_ns, family, estimate.threshold_ns or 0.0)
    return replace(estimate, model=model, refused=model.reason)


def _with_levels(estimate: Estimate, likelihood: Likelihood, measured_ns: float, longer: LongerRun | None) -> Estimate:
    """The estimate with its levels, or with the reason against them from the fitted tail or a measured maximum."""
    try:
        tail = likelihood.fitted()
        estimate = replace(estimate, shape=tail.shape)
        if estimate.threshold_ns is not None:
            estimate = replace(estimate, per_hour=tail.per_hour(estimate.threshold_ns))
        missions = [mission for mission in MISSIONS_NS if measured_ns / 2 <= mission <= _FARTHEST * measured_ns]
        refused = _shape_reason(tail.shape)
        if refused is None and not missions:
            refused = f"an hour is more than {_FARTHEST} times what was measured"
        if refused is not None:
            return replace(estimate, refused=refused)
        levels = tuple(map(likelihood.return_level, missions))
    except NoFit as error:
        return replace(estimate, refused=f"the fit failed: {error}")
    refused = _contradiction(levels, float(likelihood.maxima.values_ns.max())) or _exceeded(likelihood, longer)
    return replace(estimate, refused=refused) if refused else replace(estimate, levels=levels)


def _shape_reason(shape: float) -> str | None:
    """Why no level can be given for a tail of this shape."""
    if shape > MOST_SHAPE:
        return (
            f"the tail is too heavy (shape {shape:.2f}, above {MOST_SHAPE}): far beyond what was seen anything is "
            "possible"
        )
    if shape < LEAST_SHAPE:
        return (
            f"the maxima crowd at an upper bound (shape {shape:.2f}, below {LEAST_SHAPE}), so no interval can be given"
        )
    return None


def _contradiction(levels: Sequence[ReturnLevel], greatest_ns: float) -> str | None:
    """A level that the measured maximum contradicts."""
    below = next((level for level in levels if level.high_ns < greatest_ns), None)
    if below is None:
        return None
    level_text = f"one {MISSIONS_NS[int(below.mission_ns)]} above at most {words.latency(below.high_ns)}"
    return f"the estimate ({level_text}) contradicts the measured maximum of {words.latency(greatest_ns)}"


def _exceeded(likelihood: Likelihood, longer: LongerRun | None) -> str | None:
    """The reason against levels if a longer run has a greater maximum than the upper end of the tail's interval."""
    if longer is None:
        return None
    try:
        level = likelihood.return_level(longer.duration_ns / _SELDOM)
    except NoFit:
        return None
    if longer.maximum_ns <= level.high_ns:
        return None
    return (
        f"run {longer.run_id}, which is longer ({words.duration(longer.duration_ns)}), has a maximum of "
        f"{words.latency(longer.maximum_ns)}; by the estimate it is at most {words.latency(level.high_ns)}"
    )
