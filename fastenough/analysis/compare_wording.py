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
from fastenough.model import Role, Verdict
from fastenough.recording import Recording

GREATER, SMALLER, OPEN, NONE = "greater", "smaller", "may be equal", "no interval"
BY_ITSELF = " by itself"
ORDINALS = ("second", "third", "fourth")
"""What the runs beside the base are called, in order."""


class Difference(Protocol):
    """What was seen to differ, or not."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of its interval; None where there is none."""

    @property
    def shown(self) -> bool:
        """Whether it is shown where all that is told with it is judged together."""


_AtQuantile = TypeVar("_AtQuantile", QuantileDifference, Effect)


def finding(difference: Difference) -> str:
    """What the interval of a difference says of the run beside the base."""
    if difference.ends is None:
        return NONE
    lower, upper = difference.ends
    if lower <= 0 <= upper:
        return OPEN
    return (GREATER if lower > 0 else SMALLER) + ("" if difference.shown else BY_ITSELF)


def interval(difference: QuantileDifference) -> str:
    """In µs, without the unit."""
    return words.microseconds_interval(*(difference.ends or (None, None)))


def shown_at(differences: Sequence[_AtQuantile]) -> tuple[str, _AtQuantile] | None:
    """In words, at which quantiles a difference is shown in which direction, and the highest of them; None where none
    is."""
    found = {what: [each for each in differences if finding(each) == what] for what in (GREATER, SMALLER)}
    shown = found[GREATER] + found[SMALLER]
    said = [f"{what} at {', '.join(words.percent(each.quantile) for each in at)}" for what, at in found.items() if at]
    return (" and ".join(said), max(shown, key=lambda each: each.quantile)) if shown else None


def said_of(comparison: Comparison, which: str) -> str:
    """What the intervals of one kind of series say of a run, the highest quantile that differs with its figures."""
    shown = shown_at(comparison.quantiles)
    if shown is not None:
        said, tail = shown
        by = words.nearest_microseconds(tail.difference_ns)
        return (
            f"the {which} run is {said} (at {words.percent(tail.quantile)} by {by} µs, "
            f"{words.percent(comparison.confidence)} interval {interval(tail)} µs)"
        )
    if comparison.chances():
        return f"no difference of the {which} run is shown"
    return f"the {which} run has too few samples for any interval"


def _telling(comparisons: Sequence[Comparison], judged: Collection[str]) -> list[Comparison]:
    """Those of the series that a limit is judged by, or all where there is none of these."""
    return [each for each in comparisons if each.series.split(" ")[0] in judged] or list(comparisons)


def conclusion(comparisons: Sequence[Comparison], judged: Collection[str]) -> str:
    """One sentence, of the series that a limit is judged by, or of all where there is none of these."""
    others = list(dict.fromkeys(each.second_id for each in comparisons))
    if len(others) > 1 and not any(each.chances() for each in comparisons):
        return "too little data for any interval; measure at least 30 s per run"
    said = [
        _of_one([each for each in comparisons if each.second_id == run], judged, ORDINALS[place])
        for place, run in enumerate(others)
    ]
    return "; ".join(said)


def _of_one(comparisons: Sequence[Comparison], judged: Collection[str], which: str) -> str:
    telling = _telling(comparisons, judged)
    if len(telling) == 1:
        return f"{telling[0].series}: {said_of(telling[0], which)}"
    found = [{finding(each) for each in comparison.quantiles} for comparison in telling]
    greater, smaller = (sum(what in each for each in found) for what in (GREATER, SMALLER))
    if not greater and not smaller:
        return f"no difference of the {which} run is shown in any of {len(telling)} series"
    return (
        f"of {len(telling)} series, the {which} run is greater at some quantile in {greater} and smaller in "
        f"{smaller}; each is below"
    )


def cautions(recordings: Sequence[Recording]) -> list[str]:
    """What stands against believing in a comparison of these runs."""
    broken = [
        f"run {recording.run_id}: {found.text}"
        for recording in recordings
        for found in findings_of(recording)
        if found.verdict is Verdict.BROKEN
    ]
    if any(map(counts_instructions, recordings)):
        return [*broken, INSTRUCTIONS]
    return [*broken, *(["emulated: timing is not meaningful"] if any(map(is_emulated, recordings)) else [])]


def how_judged(together: int, confidence: float) -> str:
    """What the marks of differences mean."""
    if not together:
        return "no difference has an interval: measure longer"
    return (
        f'"{GREATER}" and "{SMALLER}" hold for all {together} differences together at '
        f'{words.percent(confidence)} (Holm); "{BY_ITSELF.strip()}" marks one whose own interval excludes zero, '
        "which is not enough among so many. All of it holds within these runs: how much runs differ they do not "
        "tell (fastenough ab does)"
    )


def judged_names(recordings: Sequence[Recording]) -> set[str]:
    """Of the series that a verdict rests on."""
    return {series.name for recording in recordings for series in recording.series if series.role is Role.VERDICT}
