# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough import``: outputs of other tools as runs of the store; all of the files or none."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.options import json_option, store_option
from fastenough.cli.output import micros, print_json, print_table, say
from fastenough.exchange import (
    IMPORTERS,
    ImportedRun,
    ImportedSeries,
    Source,
    read_import,
    read_source,
    recording_lines,
)
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.building import line_bytes
from fastenough.store import RunWriter, Store

_UNITS_NS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
_TOOLS = sorted(
    {tool for importer in IMPORTERS for tool in importer.what.partition(":")[0].split(", ")}, key=str.casefold
)
_HELP = f"""Import results of other tools as runs.

Reads files of {", ".join(_TOOLS[:-1])} and {_TOOLS[-1]} (docs/exchange.md), and recognises them by their content.  If
one file is refused, nothing is imported.
"""
_COLUMNS = ("series", "n", "min", "mean", "max", "overflow")
_CAVEAT = (
    "imported results never give a PASS: they do not show missed activations (coordinated omission), settings "
    "read back, or whether a load ran"
)


def _store_runs(store: Store, imports: Iterable[tuple[Source, ImportedRun]]) -> list[str]:
    """The ids of the new runs; if one cannot be stored, or if this is interrupted, none stays in the store."""
    writers: list[RunWriter] = []
    try:
        for source, imported in imports:
            writers.append(store.begin())
            for line in recording_lines(imported, source, writers[-1].id):
                writers[-1].line(line_bytes(line))
            writers[-1].end()
    except BaseException:
        for writer in writers:
            with suppress(FastenoughError, OSError):
                writer.discard()
        raise
    return [writer.id for writer in writers]


def _document(run_id: str, imported: ImportedRun) -> dict[str, object]:
    return {
        "id": run_id,
        "tool": imported.tool,
        "version": imported.version,
        "series": [
            {
                "name": series.title,
                "unit": "ns",
                "count": series.count,
                "min": series.in_ns(series.minimum),
                "max": series.in_ns(series.maximum),
                "mean": series.in_ns(series.mean),
                "overflow": None if series.overflow_unknown else series.overflow,
            }
            for series in imported.series
        ],
    }


def _row(series: ImportedSeries) -> tuple[str, ...]:
    counts = ["–" if number is None else words.number(number) for number in (series.count, series.overflow)]
    if series.overflow_unknown:
        counts[1] = f"≥ {counts[1]}"
    statistics = (
        (series.minimum, words.microseconds_down),
        (series.mean, micros),
        (series.maximum, words.microseconds),
    )
    times = [show(series.in_ns(value)) for value, show in statistics]
    return series.title, counts[0], *times, counts[1]


@click.command(cls=Command, example="fastenough import cyclictest.json", help=_HELP)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--unit", type=click.Choice(list(_UNITS_NS)), help="Unit of values in files that do not state it (.hgrm)."
)
@store_option
@json_option
def command(files: tuple[Path, ...], unit: str | None, store_path: Path, as_json: bool) -> None:
    sources = [read_source(path, _UNITS_NS.get(unit or "")) for path in files]
    taken = [(source, read_import(source)) for source in sources]
    store = Store(store_path)
    if store.index_fault is not None:
        raise BadInput(f"{store_path}: cannot import: {store.index_fault}")
    ids = _store_runs(store, taken)
    runs = [(run_id, imported, source) for run_id, (source, imported) in zip(ids, taken, strict=True)]
    if as_json:
        print_json({"runs": [_document(run_id, imported) for run_id, imported, _ in runs]})
        return
    for run_id, imported, source in runs:
        print_table(
            f"{run_id}: {imported.tool} {imported.version or '(version unknown)'}, {source.path} (times in µs)",
            _COLUMNS,
            [_row(series) for series in imported.series],
        )
    say(_CAVEAT)
