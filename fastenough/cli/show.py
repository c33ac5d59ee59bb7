# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough show``: the measures of one run, or the whole of its recording's head and end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fastenough.analysis import Measures, measure, merge_samples, words
from fastenough.analysis.measures import QUANTILES
from fastenough.cli.output import clean, micros, print_json, print_table
from fastenough.cli.parameters import json_option
from fastenough.cli.stores import existing_store, store_option
from fastenough.model import ExitStatus, Series
from fastenough.recording import Recording
from fastenough.recording.building import end_line, event_line, head_line
from fastenough.settings import difference


def series_label(series: Series) -> str:
    """What tells one series of a run from the others, for people."""
    parts = [series.name]
    if series.cpu is not None:
        parts.append(f"cpu {series.cpu}")
    return " ".join(parts + [f"{name}={value}" for name, value in series.labels.items()])


def _row(series: Series, measures: Measures) -> tuple[str, ...]:
    if series.refused is not None:
        return (series_label(series), "refused", series.refused)
    quantiles = [micros(quantile.value_ns) for quantile in measures.quantiles]
    return (series_label(series), words.number(measures.n), words.number(measures.lost), words.number(measures.missed),
            micros(measures.minimum_ns), micros(measures.mean_ns), *quantiles, micros(measures.maximum_ns))


def _print(recording: Recording, measured: list[tuple[Series, Measures]]) -> None:
    head = recording.head
    outcome = recording.outcome or (f"cut off ({recording.cut_off})" if recording.damage is None else
                                    f"not believed: {recording.damage}")
    load = head.load.name if head.load else "not stated"
    print(clean(f"run {recording.run_id}: {head.probe} ({head.implementation}), load {load}, "
                f"{words.duration(recording.duration_ns)}, {outcome}"))
    for reason in recording.reasons:
        print(f"  {clean(reason)}")
    quantiles = [f"{quantile * 100:.10g} %" for quantile in QUANTILES]
    print_table("times in µs", ("series", "n", "lost", "missed", "min", "mean", *quantiles, "max"),
                (_row(series, measures) for series, measures in measured))
    for name in dict.fromkeys(series.name for series in recording.series):
        series = recording.named(name)[0]
        print(clean(f"{name}: from {series.from_event} to {series.to_event} ({series.clock})"))
    for line in filter(None, map(difference, head.settings)):
        print(clean(line))


def _document(recording: Recording, measured: list[tuple[Series, Measures]]) -> dict[str, Any]:
    end = None if recording.end is None else end_line(recording.end)
    return {"head": head_line(recording.head), "end": end, "cut_off": recording.cut_off, "damage": recording.damage,
            "measures": [{"series": series, "measures": measures} for series, measures in measured],
            "events": [event_line(event) for event in recording.events]}


@click.command()
@click.argument("run")
@store_option
@json_option
def command(run: str, store_path: Path, as_json: bool) -> ExitStatus:
    """Show one RUN: its id, the unique beginning of it, or 'last'."""
    recording = existing_store(store_path).load(run)
    measured = [(series, measure(merge_samples([(recording, series)]))) for series in recording.series]
    if as_json:
        print_json(_document(recording, measured))
    else:
        _print(recording, measured)
    return ExitStatus.DONE if recording.damage is None else ExitStatus.BROKEN
