# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of a comparison: the result of its intervals, and its caveats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from fastenough import words
from fastenough.analysis.checks import findings_of
from fastenough.analysis.compare import Comparison, QuantileDifference
from fastenough.analysis.machine import INSTRUCTIONS, counts_instructions, is_emulated
from fastenough.analysis.paired import Effect
from fastenough.analysis.resampling import NoInterval
from fastenough.model import Role, Verdict
from fastenough.recording import Recording

GREATER, SMALLER, OPEN, NONE = "greater", "smaller", "may be equal", "no interval"
BY_ITSELF = " by itself"
ORDINALS = ("second", "third", "fourth")
"""Names of the runs compared with the base, in order."""


class Difference(Protocol):
    """A difference with an interval."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Ends of its interval; None without one."""

    @property
    def shown(self) -> bool:
        """Whether it is significant when all reported differences are judged together."""


_AtQuantile = TypeVar("_AtQuantile", QuantileDifference, Effect)


def finding(difference: Difference) -> str:
    """How the run compares with the base, by the interval of a difference."""
    if difference.ends is None:
        return NONE
    lower, upper = difference.ends
    if lower <= 0 <= upper:
        return OPEN
    return (GREATER if lower > 0 else SMALLER) + ("" if difference.shown else BY_ITSELF)


def interval(difference: QuantileDifference) -> str:
    """The interval in µs, without the unit."""
    return words.microseconds_interval(*(difference.ends or (None, None)))


def significant_quantiles(differences: Sequence[_AtQuantile]) -> tuple[str, _AtQuantile] | None:
    """Text of the quantiles with a significant difference, by direction, and the highest of them; None if there is
    none."""
    significant: list[_AtQuantile] = []
    phrases: list[str] = []
    for direction in (GREATER, SMALLER):
        matching = [difference for difference in differences if finding(difference) == direction]
        if matching:
            phrases.append(f"{direction} at {', '.join(words.percent(item.quantile) for item in matching)}")
            significant += matching
    return (" and ".join(phrases), max(significant, key=lambda item: item.quantile)) if significant else None


def comparison_text(comparison: Comparison, which: str) -> str:
    """Comparison of one kind of series of a run, with figures of the highest quantile that differs."""
    significant = significant_quantiles(comparison.quantiles)
    if significant is not None:
        phrase, tail = significant
        difference = words.nearest_microseconds(tail.difference_ns)
        return (
            f"the {which} run is {phrase} (at {words.percent(tail.quantile)} by {difference} µs, "
            f"{words.percent(comparison.confidence)} interval {interval(tail)} µs)"
        )
    if comparison.chances():
        return f"no difference of the {which} run is shown"
    return f"no interval for the {which} run ({comparison.no_interval()})"


def _telling(comparisons: Sequence[Comparison], judged: Collection[str]) -> list[Comparison]:
    """The comparisons of judged series, or all if there are none."""
    return [comparison for comparison in comparisons if comparison.series.split(" ")[0] in judged] or list(comparisons)


def _is_too_short(comparison: Comparison) -> bool:
    """Whether no difference has an interval, for lack of samples."""
    return not comparison.chances() and comparison.no_interval() is NoInterval.FEW_SAMPLES


def conclusion(comparisons: Sequence[Comparison], judged: Collection[str]) -> str:
    """One sentence about the judged series, or about all if there are none."""
    others = list(dict.fromkeys(comparison.second_id for comparison in comparisons))
    if len(others) > 1 and all(map(_is_too_short, comparisons)):
        return "too little data for any interval; measure at least 30 s per run"
    sentences = [
        _conclusion_of_run(
            [comparison for comparison in comparisons if comparison.second_id == run], judged, ORDINALS[place]
        )
        for place, run in enumerate(others)
    ]
    return "; ".join(sentences)


def _conclusion_of_run(comparisons: Sequence[Comparison], judged: Collection[str], which: str) -> str:
    telling = _telling(comparisons, judged)
    if len(telling) == 1:
        return f"{telling[0].series}: {comparison_text(telling[0], which)}"
    directions = [{finding(difference) for difference in comparison.quantiles} for comparison in telling]
    greater, smaller = (sum(what in difference for difference in directions) for what in (GREATER, SMALLER))
    if not greater and not smaller:
        return f"no difference of the {which} run is shown in any of {len(telling)} series"
    return (
        f"of {len(telling)} series, the {which} run is greater at some quantile in {greater} and smaller in "
        f"{smaller}; each is below"
    )


def cautions(recordings: Sequence[Recording]) -> list[str]:
    """Caveats of a comparison of these runs."""
    broken = [
        f"run {recording.run_id}: {problem.text}"
        for recording in recordings
        for problem in findings_of(recording)
        if problem.verdict is Verdict.BROKEN
    ]
    if any(map(counts_instructions, recordings)):
        return [*broken, INSTRUCTIONS]
    return [*broken, *(["emulated: timing is not meaningful"] if any(map(is_emulated, recordings)) else [])]


def significance_note(together: int, confidence: float) -> str:
    """The meaning of the marks of differences."""
    if not together:
        return "no difference has an interval: measure longer"
    return (
        f'"{GREATER}" and "{SMALLER}" hold for all {together} differences together at '
        f'{words.percent(confidence)} (Holm); "{BY_ITSELF.strip()}" marks one whose own interval excludes zero, '
        "which is not enough among so many. All of it holds within these runs: how much runs differ they do not "
        "tell (fastenough ab does)"
    )


def judged_names(recordings: Sequence[Recording]) -> set[str]:
    """Names of the series that a verdict rests on."""
    return {series.name for recording in recordings for series in recording.series if series.role is Role.VERDICT}
