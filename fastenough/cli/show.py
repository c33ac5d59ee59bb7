# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough show``: the measures of one run, or head and end of its recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from fastenough.analysis import Measures, measure, merge_samples, words
from fastenough.analysis.measures import QUANTILES
from fastenough.analysis.uncertainty import UncertaintyBudget, budget_of, true_text
from fastenough.cli.commands import Command
from fastenough.cli.follow import follow
from fastenough.cli.listing import differing, in_words, shared
from fastenough.cli.options import existing_store, json_option, store_option
from fastenough.cli.output import print_json, print_table, say, table_width
from fastenough.cli.progress_wording import kernel_of
from fastenough.model import BadInput, ExitStatus, Series
from fastenough.recording import Recording
from fastenough.recording.building import end_line, event_line, head_line
from fastenough.settings import difference

_MEASURES = ("n", "lost", "missed", "min", "mean", *(f"{quantile * 100:.10g} %" for quantile in QUANTILES), "max")
_WHAT = "times in µs"

Measured = Sequence[tuple[Series, Measures]]
Budgets = Mapping[int, UncertaintyBudget]
"""By the id of the series."""


def _traits(series: Series) -> dict[str, object]:
    """Traits in which series of one name may differ."""
    return ({} if series.cpu is None else {"cpu": series.cpu}) | series.labels


def _families(measured: Measured) -> Iterator[tuple[str, dict[str, object], list[tuple[str, Series, Measures]]]]:
    """For each name: the traits common to its series, and each series with its own traits."""
    for name in dict.fromkeys(series.name for series, _ in measured):
        family = [(series, measures) for series, measures in measured if series.name == name]
        traits = [_traits(series) for series, _ in family]
        if len(family) == 1:
            yield name, {}, [(in_words(traits[0]), *family[0])]
        else:
            yield (
                name,
                shared(traits),
                [(in_words(apart), *member) for apart, member in zip(differing(traits), family, strict=True)],
            )


def _cells(measures: Measures) -> tuple[str, ...]:
    return (
        words.number(measures.n),
        words.number(measures.lost),
        words.number(measures.missed),
        words.microseconds_down(measures.minimum_ns),
        words.microseconds(measures.mean_ns),
        *(words.microseconds_or_least(quantile.value_ns, quantile.at_least_ns) for quantile in measures.quantiles),
        words.microseconds_or_least(measures.maximum_ns, measures.maximum_at_least_ns),
    )


def _print_measures(measured: Measured) -> None:
    """Print one row for each series; if that is too wide, one column for each CPU."""
    families = list(_families([(series, measures) for series, measures in measured if series.refused is None]))
    rows = [
        (f"{name} {which}".rstrip(), *_cells(measures)) for name, _, family in families for which, _, measures in family
    ]
    sizes = [max(map(len, column)) for column in zip(("series", *_MEASURES), *rows, strict=True)]
    if sum(sizes) + 2 * (len(sizes) - 1) <= table_width():
        print_table(_WHAT, ("series", *_MEASURES), rows)
        for name, common, _ in families:
            if common:
                say(f"{name}: {in_words(common)} in all")
        return
    for name, common, family in families:
        what = ", ".join([_WHAT, *([in_words(common)] if common else [])])
        _print_stacked(f"\n{name} ({what})", [(which or name, *_cells(measures)) for which, _, measures in family])


def _print_stacked(title: str, columns: Sequence[tuple[str, ...]]) -> None:
    """Print series as columns, as many as fit the width."""
    room = table_width() - max(map(len, _MEASURES))
    while columns:
        beside, taken = 0, 0
        while beside < len(columns) and (beside == 0 or taken + 2 + max(map(len, columns[beside])) <= room):
            taken += 2 + max(map(len, columns[beside]))
            beside += 1
        headings = ("", *(column[0] for column in columns[:beside]))
        print_table(title, headings, zip(_MEASURES, *(column[1:] for column in columns[:beside]), strict=True))
        title, columns = "", columns[beside:]
        if columns:
            print()


def _print_uncertainty(measured: Measured, budgets: Budgets) -> None:
    """Print where the true value of the greatest maximum of each name lies, if all maxima of the name are known."""
    unknown = {series.name for series, measures in measured if measures.lost and measures.maximum_ns is None}
    for name in dict.fromkeys(budget.series for budget in budgets.values() if budget.series not in unknown):
        maxima = [budget.latencies[-1] for budget in budgets.values() if budget.series == name and budget.latencies]
        if maxima:
            greatest = max(maxima, key=lambda latency: latency.printed_ns)
            say(f"{name}: maximum {words.latency(greatest.printed_ns)}, {true_text(greatest)}")


def _print(recording: Recording, measured: Measured, budgets: Budgets) -> None:
    head = recording.head
    outcome = recording.outcome or (
        f"interrupted ({recording.cut_off})"
        if recording.damage is None
        else f"integrity check failed: {recording.damage}"
    )
    load = head.load.name if head.load else "unknown"
    timed = recording.duration_ns or head.origin is None
    lasted = words.duration(recording.duration_ns) if timed else "duration unknown"
    say(f"run {recording.run_id}: {head.probe} ({head.implementation}), load {load}, {lasted}, {outcome}")
    if head.origin is not None:
        say(
            f"imported from {head.origin.file}, written by {head.tool.name} {head.tool.version}; facts stated "
            f"there: {in_words(head.origin.facts) or 'none'}"
        )
    if head.profile:
        say(kernel_of(head.profile))
    for reason in recording.reasons:
        say(reason, "  ")
    if measured:
        _print_measures(measured)
        _print_uncertainty(measured, budgets)
    for series, _ in measured:
        if series.refused is not None:
            say(f"{series.name} {in_words(_traits(series))}: refused: {series.refused}")
    for name in dict.fromkeys(series.name for series in recording.series):
        series = recording.named(name)[0]
        say(f"{name}: from {series.from_event} to {series.to_event} ({series.clock})")
    for line in filter(None, map(difference, head.settings)):
        say(line)


def _document(recording: Recording, measured: Measured, budgets: Budgets) -> dict[str, object]:
    end = None if recording.end is None else end_line(recording.end)
    return {
        "head": head_line(recording.head),
        "end": end,
        "cut_off": recording.cut_off,
        "damage": recording.damage,
        "measures": [
            {"series": series, "measures": measures, "uncertainty": budgets[series.id].latencies}
            for series, measures in measured
        ],
        "events": [event_line(event) for event in recording.events],
    }


@click.command(cls=Command, example="fastenough show last")
@click.argument("run", required=False)
@click.option("--follow", "following", is_flag=True, help="Show a run while it is measured, until it ends.")
@store_option
@json_option
def command(run: str | None, following: bool, store_path: Path, as_json: bool) -> ExitStatus:
    """Show one run.

    RUN is an id, the unique beginning of one, or 'last'.  With --follow, RUN may also be the path of a recording; the
    default is the newest run in progress, or the next one that begins.  The exit status is 0 when the run has ended,
    4 when the recording no longer grows (after 30 s, or 10 intervals).
    """
    if following:
        if as_json:
            raise BadInput(
                "--follow cannot be used with --json; a program can read the recording as it grows (docs/format.md)"
            )
        return follow(run, store_path)
    if run is None:
        raise BadInput(
            "RUN is missing: give an id, the unique beginning of one, or 'last' (see 'fastenough list'); "
            "only --follow has a default"
        )
    recording = existing_store(store_path).load(run)
    values = [(series, merge_samples([(recording, series)])) for series in recording.series]
    measured = [(series, measure(merged)) for series, merged in values]
    budgets = {series.id: budget_of(merged) for series, merged in values}
    if as_json:
        print_json(_document(recording, measured, budgets))
    else:
        _print(recording, measured, budgets)
    return ExitStatus.DONE if recording.damage is None else ExitStatus.BROKEN
