# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough import``: outputs of other tools as runs of the store; all of the files or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from fastenough.recording import Head
from fastenough.recording.building import line_bytes
from fastenough.recording.lines import Lines
from fastenough.recording.reader import head_of
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


_SHA256 = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')


def _earlier_imports(store: Store, imports: Sequence[tuple[Source, ImportedRun]]) -> dict[str, Head]:
    """The heads of the runs in the store that were imported from these contents, by the SHA-256 of the content."""
    hashes = {source.sha256.encode() for source, _ in imports}
    probes = {imported.probe or imported.tool for _, imported in imports}
    earlier: dict[str, Head] = {}
    for run in store.own_runs(probe=probes, state="ended"):
        with suppress(BadInput), store.opened(run.id) as stream:  # a damaged run is no import to rely on
            first = next(iter(Lines(stream, run.id)), b"")
            if hashes.isdisjoint(_SHA256.findall(first)):
                continue
            head = head_of(first, run.id)
            if head.origin is not None:
                earlier.setdefault(head.origin.sha256, head)
    return earlier


def _require_same_values(store: Store, source: Source, imported: ImportedRun, earlier: Head) -> None:
    """Raises BadInput if the earlier import of this content has other values, as with another --unit."""
    head = next(recording_lines(imported, source, earlier.run_id))
    if head_of(line_bytes(head), earlier.run_id).series != earlier.series:
        source.refuse(
            f"run {earlier.run_id} was imported from the same content with another --unit or by another version; "
            f"delete {store.path / 'runs' / earlier.run_id} to import it again"
        )


def _import_runs(store: Store, imports: Sequence[tuple[Source, ImportedRun]]) -> list[tuple[str, bool]]:
    """The id of the run of each source, and whether it is new: a content that has a run is not stored again."""
    earlier = _earlier_imports(store, imports)
    for source, imported in imports:
        if source.sha256 in earlier:
            _require_same_values(store, source, imported, earlier[source.sha256])
    new = {source.sha256: (source, imported) for source, imported in imports if source.sha256 not in earlier}
    ids = {sha256: head.run_id for sha256, head in earlier.items()}
    ids |= zip(new, _store_runs(store, new.values()), strict=True)
    return [(ids[source.sha256], new.pop(source.sha256, None) is not None) for source, _ in imports]


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


def _document(run_id: str, imported: ImportedRun, is_new: bool) -> dict[str, object]:
    return {
        "id": run_id,
        "new": is_new,
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
    runs = [(*stored, *of_file) for stored, of_file in zip(_import_runs(store, taken), taken, strict=True)]
    if as_json:
        print_json({"runs": [_document(run_id, imported, is_new) for run_id, is_new, _, imported in runs]})
        return
    for run_id, is_new, source, imported in runs:
        if not is_new:
            say(f"{source.path}: not stored again: run {run_id} has the same content")
            continue
        print_table(
            f"{run_id}: {imported.tool} {imported.version or '(version unknown)'}, {source.path} (times in µs)",
            _COLUMNS,
            [_row(series) for series in imported.series],
        )
    say(_CAVEAT)
