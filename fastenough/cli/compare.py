# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough compare``: differences of runs from a base run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fastenough.analysis import Comparison, compare, grouped, words
from fastenough.analysis.compare import (
    ORDINALS,
    cautions,
    conclusion,
    finding,
    interval,
    judged_names,
    significance_note,
)
from fastenough.analysis.differences import other_facts
from fastenough.analysis.instructions import (
    InstructionComparison,
    MaximaComparison,
    PathComparison,
    compare_instructions,
    instructions_conclusion,
)
from fastenough.analysis.machine import counts_instructions
from fastenough.cli.commands import Command
from fastenough.cli.instruction_tables import print_instructions
from fastenough.cli.options import DURATION, existing_store, json_option, store_option
from fastenough.cli.output import micros, print_json, print_table, say
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.store import Store


def _print_quantiles(comparison: Comparison, which: str) -> None:
    first, second = comparison.n
    stated = words.percent(comparison.confidence)
    print_table(
        f"\n{comparison.series}: {which} minus base in µs, n = {words.number(first)} (base) and "
        f"{words.number(second)} ({which})",
        ("quantile", "base", which, "difference", f"{stated} interval", f"{which} is"),
        [
            (
                words.percent(q.quantile),
                words.microseconds(q.first_ns),
                words.microseconds(q.second_ns),
                micros(q.difference_ns),
                interval(q),
                finding(q),
            )
            for q in comparison.quantiles
        ],
    )
    for rate in comparison.rates:
        say(
            f"above {words.exact_time(rate.limit_ns)}: base {rate.first[0]} of {words.number(rate.first[1])}, {which} "
            f"{rate.second[0]} of {words.number(rate.second[1])}; difference of rates {rate.difference:.3g} "
            f"({words.interval(rate.lower, rate.upper)}): {finding(rate)}"
        )


def _print_maxima(comparisons: Sequence[Comparison]) -> None:
    """Print the maxima of one series in all runs."""
    maxima = [("base", comparisons[0].maxima[0])]
    maxima += [(which, comparison.maxima[1]) for which, comparison in zip(ORDINALS, comparisons, strict=False)]
    say(
        "maxima (no test can show that they differ): "
        + ", ".join(f"{which} {words.latency_or_least(*maximum)}" for which, maximum in maxima)
    )


def _print_differences(
    base: Recording, other: Recording, which: str, comparisons: Sequence[Comparison | InstructionComparison]
) -> None:
    """Print the other differences, those that affect latency first."""
    differences = list(dict.fromkeys(text for comparison in comparisons for text in comparison.differences))
    say(
        f"other differences of the {which} run, each a possible cause:"
        if differences
        else f"no other known difference of the {which} run"
    )
    for text in differences:
        say(text, "  ")
    facts = other_facts(base, other)
    if facts:
        say(f"also different, as in every run or boot: {', '.join(facts)}", "  ")


def _print(recordings: Sequence[Recording], comparisons: Sequence[Comparison]) -> None:
    base, *others = recordings
    by_run = [[difference for difference in comparisons if difference.second_id == other.run_id] for other in others]
    for which, recording in zip(("base", *ORDINALS), recordings, strict=False):
        say(f"{which}: run {recording.run_id}", "  ")
    for text in cautions(recordings):
        say(f"caveat: {text}")
    for which, other, difference in zip(ORDINALS, others, by_run, strict=False):
        _print_differences(base, other, which, difference)
    for name in dict.fromkeys(difference.series for difference in comparisons):
        same = [comparison for comparison in comparisons if comparison.series == name]
        for comparison in same:
            _print_quantiles(comparison, ORDINALS[[other.run_id for other in others].index(comparison.second_id)])
        _print_maxima(same)
    print()
    say(significance_note(comparisons[0].tested_differences, comparisons[0].confidence))


def _print_of_deterministic_boards(
    sets: Sequence[Sequence[Recording]], compared: Sequence[Sequence[InstructionComparison]]
) -> None:
    for which, runs in zip(("base", *ORDINALS), sets, strict=False):
        more = f" and {words.counted(len(runs) - 1, 'more run')}" if len(runs) > 1 else ""
        say(f"{which}: run {runs[0].run_id}{more}", "  ")
    for text in cautions([run for runs in sets for run in runs]):
        say(f"caveat: {text}")
    for which, other, comparisons in zip(ORDINALS, sets[1:], compared, strict=False):
        _print_differences(sets[0][0], other[0], which, comparisons)
        print_instructions(comparisons, ("base", which))


def _load_sets(store_path: Path, base: str, others: Sequence[str]) -> list[list[Recording]]:
    """The runs of each name: of a campaign all of its runs."""
    if len(others) > len(ORDINALS):
        raise BadInput(f"{len(others)} runs to compare with the base; at most {len(ORDINALS)} are supported")
    store = existing_store(store_path)
    ids = [_ids(store, name) for name in (base, *others)]
    twice = next((runs for runs in ids[1:] if ids[1:].count(runs) > 1), None)
    if twice is not None:
        raise BadInput(f"run {twice[0]} is given twice; give it once")
    return [[store.load(run) for run in runs] for runs in ids]


def _ids(store: Store, name: str) -> list[str]:
    of_campaign = [run.id for run in store.runs(brief=True, campaign=name)] if name else []
    return of_campaign or [store.find(name)]


def _require_runs(sets: Sequence[Sequence[Recording]], names: Sequence[str]) -> list[Recording]:
    """The only run of each name; raises BadInput for a campaign."""
    campaign = next((name for name, runs in zip(names, sets, strict=True) if len(runs) > 1), None)
    if campaign is not None:
        raise BadInput(f"{campaign} is a campaign; campaigns are compared on deterministic boards only, name its runs")
    return [runs[0] for runs in sets]


def _require_alike(sets: Sequence[Sequence[Recording]]) -> None:
    """Raises BadInput for a set whose runs differ in more than their phase."""
    mixed = next((runs for runs in sets if len(grouped(runs)) > 1), None)
    if mixed is not None:
        raise BadInput(
            f"the runs from {mixed[0].run_id} on differ in more than their phase (load, probe, configuration); "
            "name runs, or campaigns of one load"
        )


@click.command(cls=Command, example="fastenough compare 20260722T101500 last --limit 100us")
@click.argument("base")
@click.argument("others", nargs=-1, required=True)
@click.option(
    "--limit",
    "limits",
    type=DURATION,
    multiple=True,
    help="Also compare the rates of latencies above this; may be repeated.",
)
@store_option
@json_option
def command(base: str, others: tuple[str, ...], limits: tuple[int, ...], store_path: Path, as_json: bool) -> None:
    """Compare runs with a base run.

    Compares up to three runs OTHERS with the run BASE.  Prints the conclusion, each difference with its confidence
    interval, and what else differs between the runs.  Of deterministic boards, a campaign is the set of its phases.
    """
    sets = _load_sets(store_path, base, others)
    if all(counts_instructions(run) for runs in sets for run in runs):
        _compare_instructions(sets, limits, as_json)
        return
    recordings = _require_runs(sets, (base, *others))
    comparisons = compare(*recordings, limits_ns=tuple(map(float, limits)))
    sentence = conclusion(comparisons, judged_names(recordings))
    if as_json:
        _print_json(sentence, recordings, comparisons)
        return
    say(sentence)
    _print(recordings, comparisons)


def _compare_instructions(sets: Sequence[Sequence[Recording]], limits: Sequence[int], as_json: bool) -> None:
    if limits:
        raise BadInput("--limit is not supported for deterministic boards, whose rates are those of single phases")
    _require_alike(sets)
    compared = [compare_instructions(sets[0], other) for other in sets[1:]]
    instructions = [comparison for comparisons in compared for comparison in comparisons]
    conclusion = instructions_conclusion(instructions)
    if as_json:
        _print_json(conclusion, [run for runs in sets for run in runs], (), instructions)
        return
    say(conclusion)
    _print_of_deterministic_boards(sets, compared)


def _print_json(
    conclusion: str,
    recordings: Sequence[Recording],
    comparisons: Sequence[Comparison],
    instructions: Sequence[InstructionComparison] = (),
) -> None:
    print_json(
        {
            "conclusion": conclusion,
            "cautions": cautions(recordings),
            "comparisons": comparisons,
            "paths": [comparison for comparison in instructions if isinstance(comparison, PathComparison)],
            "maxima": [comparison for comparison in instructions if isinstance(comparison, MaximaComparison)],
        }
    )
