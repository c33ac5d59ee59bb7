# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough compare``: two runs: what follows, then what it rests on; refuses to mix what may not be mixed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from fastenough.analysis import Comparison, compare, words
from fastenough.analysis.compare import QuantileDifference
from fastenough.cli.output import micros, print_json, print_table, say
from fastenough.cli.parameters import DURATION, json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.model import Role
from fastenough.recording import Recording

GREATER, SMALLER, OPEN, NONE = "greater", "smaller", "may be equal", "no interval"


def finding(difference: QuantileDifference) -> str:
    """What the interval of a difference says of the second run."""
    if difference.lower_ns is None or difference.upper_ns is None:
        return NONE
    if difference.lower_ns > 0:
        return GREATER
    return SMALLER if difference.upper_ns < 0 else OPEN


def _percent(share: float) -> str:
    return f"{share * 100:.10g} %"


def _interval(difference: QuantileDifference) -> str:
    return "–" if difference.lower_ns is None else f"{micros(difference.lower_ns)} to {micros(difference.upper_ns)}"


def _one(comparison: Comparison) -> str:
    """What the intervals of one kind of series say, the highest quantile that differs with its figures."""
    found = {what: [each for each in comparison.quantiles if finding(each) == what]
             for what in (GREATER, SMALLER, OPEN)}
    said = [f"{what} at {', '.join(_percent(each.quantile) for each in found[what])}" for what in (GREATER, SMALLER)
            if found[what]]
    if said:
        tail = max(found[GREATER] + found[SMALLER], key=lambda each: each.quantile)
        return (f"the second run is {' and '.join(said)} (at {_percent(tail.quantile)} by "
                f"{words.latency(tail.difference_ns)}, {_percent(comparison.confidence)} interval "
                f"{_interval(tail)} µs)")
    if found[OPEN]:
        return f"no difference is shown: every {_percent(comparison.confidence)} interval includes zero"
    return "nothing can be said: there are too few samples for any interval"


def conclusion(comparisons: Sequence[Comparison], judged: Collection[str]) -> str:
    """One sentence, of the series that a limit is judged by, or of all where there is none of these."""
    telling = [each for each in comparisons if each.series.split(" ")[0] in judged] or list(comparisons)
    if len(telling) == 1:
        return f"{telling[0].series}: {_one(telling[0])}"
    found = [{finding(each) for each in comparison.quantiles} for comparison in telling]
    greater, smaller = (sum(what in each for each in found) for what in (GREATER, SMALLER))
    if not greater and not smaller:
        return f"no difference is shown in any of {len(telling)} series"
    return (f"of {len(telling)} series, the second run is greater at some quantile in {greater} and smaller in "
            f"{smaller}; each is below")


def _print(comparison: Comparison) -> None:
    first, second = comparison.n
    percent = _percent(comparison.confidence)
    print_table(
        f"\n{comparison.series}: second minus first in µs, n = {words.number(first)} and {words.number(second)}; "
        f"each interval is one of {percent} by itself",
        ("quantile", "first", "second", "difference", f"{percent} interval", "second is"),
        [(_percent(q.quantile), micros(q.first_ns), micros(q.second_ns), micros(q.difference_ns), _interval(q),
          finding(q)) for q in comparison.quantiles],
    )
    say(f"maxima, of which no test can say whether they differ: {words.latency(comparison.maxima_ns[0])} and "
        f"{words.latency(comparison.maxima_ns[1])}")
    for rate in comparison.rates:
        excluded = "zero is excluded" if rate.lower > 0 or rate.upper < 0 else "zero is not excluded"
        say(f"above {words.latency(rate.limit_ns)}: {rate.first[0]} of {words.number(rate.first[1])} and "
            f"{rate.second[0]} of {words.number(rate.second[1])}; difference of rates {rate.difference:.3g} "
            f"({rate.lower:.3g} to {rate.upper:.3g}: {excluded})")


def _judged(recordings: Sequence[Recording]) -> set[str]:
    return {series.name for recording in recordings for series in recording.series if series.role is Role.VERDICT}


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--limit", "limits", type=DURATION, multiple=True, help="Compare the rates above this latency too.")
@store_option
@json_option
def command(first: str, second: str, limits: tuple[int, ...], store_path: Path, as_json: bool) -> None:
    """Compare run FIRST with run SECOND."""
    store = existing_store(store_path)
    recordings = store.load(first), store.load(second)
    comparisons = compare(*recordings, tuple(float(limit) for limit in limits))
    if as_json:
        print_json(comparisons)
        return
    say(conclusion(comparisons, _judged(recordings)))
    differences = list(dict.fromkeys(text for comparison in comparisons for text in comparison.differs))
    print("what else differs between the runs, any of which may be the cause:" if differences else
          "nothing else is known to differ between the runs")
    for difference in differences:
        say(difference, "  ")
    for comparison in comparisons:
        _print(comparison)
