# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough compare``: runs beside a base: what follows, then what it rests on; refuses to mix what may not be
mixed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import click

from fastenough.analysis import Comparison, compare, words
from fastenough.analysis.checks import findings_of
from fastenough.analysis.compare import QuantileDifference
from fastenough.analysis.differences import other_facts
from fastenough.analysis.machine import is_emulated
from fastenough.analysis.paired import Effect
from fastenough.cli.output import micros, print_json, print_table, say
from fastenough.cli.parameters import DURATION, json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.model import BadInput, Role, Verdict
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
    return "–" if difference.ends is None else " to ".join(map(micros, difference.ends))


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
        return (f"the {which} run is {said} (at {words.percent(tail.quantile)} by {words.latency(tail.difference_ns)}, "
                f"{words.percent(comparison.confidence)} interval {interval(tail)} µs)")
    if comparison.chances():
        return f"no difference of the {which} run is shown"
    return f"of the {which} run nothing can be said: there are too few samples for any interval"


def _telling(comparisons: Sequence[Comparison], judged: Collection[str]) -> list[Comparison]:
    """Those of the series that a limit is judged by, or all where there is none of these."""
    return [each for each in comparisons if each.series.split(" ")[0] in judged] or list(comparisons)


def conclusion(comparisons: Sequence[Comparison], judged: Collection[str]) -> str:
    """One sentence, of the series that a limit is judged by, or of all where there is none of these."""
    others = list(dict.fromkeys(each.second_id for each in comparisons))
    said = [_of_one([each for each in comparisons if each.second_id == run], judged, ORDINALS[place])
            for place, run in enumerate(others)]
    return "; ".join(said)


def _of_one(comparisons: Sequence[Comparison], judged: Collection[str], which: str) -> str:
    telling = _telling(comparisons, judged)
    if len(telling) == 1:
        return f"{telling[0].series}: {said_of(telling[0], which)}"
    found = [{finding(each) for each in comparison.quantiles} for comparison in telling]
    greater, smaller = (sum(what in each for each in found) for what in (GREATER, SMALLER))
    if not greater and not smaller:
        return f"no difference of the {which} run is shown in any of {len(telling)} series"
    return (f"of {len(telling)} series, the {which} run is greater at some quantile in {greater} and smaller in "
            f"{smaller}; each is below")


def _print_quantiles(comparison: Comparison, which: str) -> None:
    first, second = comparison.n
    stated = words.percent(comparison.confidence)
    print_table(
        f"\n{comparison.series}: {which} minus base in µs, n = {words.number(second)} and {words.number(first)}",
        ("quantile", "base", which, "difference", f"{stated} interval", f"{which} is"),
        [(words.percent(q.quantile), micros(q.first_ns), micros(q.second_ns), micros(q.difference_ns), interval(q),
          finding(q)) for q in comparison.quantiles],
    )
    for rate in comparison.rates:
        say(f"above {words.latency(rate.limit_ns)}: {rate.first[0]} of {words.number(rate.first[1])} and "
            f"{rate.second[0]} of {words.number(rate.second[1])}; difference of rates {rate.difference:.3g} "
            f"({rate.lower:.3g} to {rate.upper:.3g}): {finding(rate)}")


def _print_maxima(comparisons: Sequence[Comparison]) -> None:
    """Of one kind of series in all runs."""
    maxima = [("base", comparisons[0].maxima_ns[0])]
    maxima += [(which, each.maxima_ns[1]) for which, each in zip(ORDINALS, comparisons, strict=False)]
    say("maxima, of which no test can say whether they differ: "
        + ", ".join(f"{which} {words.latency(maximum)}" for which, maximum in maxima))


def _print_differences(base: Recording, other: Recording, which: str, comparisons: Sequence[Comparison]) -> None:
    """What else is not the same, what shapes a latency first."""
    differs = list(dict.fromkeys(text for comparison in comparisons for text in comparison.differs))
    say(f"what else differs in the {which} run, any of which may be the cause:" if differs else
        f"nothing else is known to differ in the {which} run")
    for text in differs:
        say(text, "  ")
    facts = other_facts(base, other)
    if facts:
        say(f"also different, as they are from run to run or from boot to boot: {', '.join(facts)}", "  ")


def cautions(recordings: Sequence[Recording]) -> list[str]:
    """What stands against believing in a comparison of these runs."""
    broken = [f"run {recording.run_id}: {found.text}" for recording in recordings for found in findings_of(recording)
              if found.verdict is Verdict.BROKEN]
    emulated = ["emulated: function is compared here, never speed"] if any(map(is_emulated, recordings)) else []
    return broken + emulated


def _print(recordings: Sequence[Recording], comparisons: Sequence[Comparison]) -> None:
    base, *others = recordings
    by_run = [[each for each in comparisons if each.second_id == other.run_id] for other in others]
    for which, recording in zip(("base", *ORDINALS), recordings, strict=False):
        say(f"{which}: run {recording.run_id}", "  ")
    for text in cautions(recordings):
        say(f"mind: {text}")
    for which, other, each in zip(ORDINALS, others, by_run, strict=False):
        _print_differences(base, other, which, each)
    for name in dict.fromkeys(each.series for each in comparisons):
        same = [comparison for comparison in comparisons if comparison.series == name]
        for comparison in same:
            _print_quantiles(comparison, ORDINALS[[other.run_id for other in others].index(comparison.second_id)])
        _print_maxima(same)
    print()
    say(how_judged(comparisons[0].together, comparisons[0].confidence))


def how_judged(together: int, confidence: float) -> str:
    """What the marks of differences mean."""
    if not together:
        return "no difference has an interval: measure longer"
    return (f"\"{GREATER}\" and \"{SMALLER}\" hold for all {together} differences together at "
            f"{words.percent(confidence)} (Holm); \"{BY_ITSELF.strip()}\" marks one whose own interval excludes zero, "
            "which is not enough among so many. All of it holds within these runs: how much runs differ they do not "
            "tell (fastenough ab does)")


def _judged(recordings: Sequence[Recording]) -> set[str]:
    return {series.name for recording in recordings for series in recording.series if series.role is Role.VERDICT}


def _loaded(store_path: Path, base: str, others: Sequence[str]) -> list[Recording]:
    if len(others) > len(ORDINALS):
        raise BadInput(f"up to {len(ORDINALS)} runs stand beside a base, not {len(others)}; compare fewer at a time")
    store = existing_store(store_path)
    ids = [store.find(name) for name in (base, *others)]
    twice = next((run for run in ids[1:] if ids[1:].count(run) > 1), None)
    if twice is not None:
        raise BadInput(f"run {twice} is named twice; name each once")
    return [store.load(run) for run in ids]


@click.command()
@click.argument("base")
@click.argument("others", nargs=-1, required=True)
@click.option("--limit", "limits", type=DURATION, multiple=True, help="Compare the rates above this latency too.")
@store_option
@json_option
def command(base: str, others: tuple[str, ...], limits: tuple[int, ...], store_path: Path, as_json: bool) -> None:
    """Compare up to three OTHERS with the run BASE: what follows, and each difference with its interval."""
    recordings = _loaded(store_path, base, others)
    comparisons = compare(*recordings, limits_ns=tuple(map(float, limits)))
    said = conclusion(comparisons, _judged(recordings))
    if as_json:
        print_json({"conclusion": said, "cautions": cautions(recordings), "comparisons": comparisons})
        return
    say(said)
    _print(recordings, comparisons)
