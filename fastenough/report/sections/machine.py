# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine did meanwhile: steal, SMIs, throttling, faults, switches, clock steps."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.analysis import load_name, words
from fastenough.analysis.machine import COUNTERS, counter_total
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table, Text

_OF_CORES = {"core_overruns"}
"""Of tasks that a real-time core schedules; of others it is not missing."""
_NAMED = 2
"""Columns before those of the counters."""


def _title(counter: str) -> str:
    return counter.removesuffix("_ns").replace("_", " ")


def _show(counter: str) -> Column:
    if counter.endswith("_ns"):
        return Column(_title(counter), lambda ns: "unknown" if ns is None else words.duration(ns) if ns else "0")
    return Column(_title(counter), lambda n: "unknown" if n is None else f"{n:,}")


def _said(counters: Sequence[str], what: str) -> list[Text]:
    return [Text(f"{what}: {'; '.join(COUNTERS[counter] for counter in counters)}.")] if counters else []


def section(context: Context) -> Section | None:
    measured = [recording for group in context.groups for recording in group.recordings]
    if not measured:
        return None
    rows = [
        (load_name(recording), recording.run_id, *(counter_total(recording, counter) for counter in COUNTERS))
        for recording in measured
    ]
    told = {counter: {row[at] for row in rows} for at, counter in enumerate(COUNTERS, _NAMED)}
    shown = [at for at, counter in enumerate(COUNTERS, _NAMED) if told[counter] not in ({0}, {None})]
    columns = (Column("load", numeric=False), Column("run", numeric=False), *(_show(counter) for counter in COUNTERS))
    kept = [*range(_NAMED), *shown]
    table = Table(
        "machine",
        "Counted during each run; unknown: cannot be read here",
        [columns[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        csv=([column.title for column in columns], rows),
    )
    meanings = "; ".join(
        f"{_title(counter)}: {COUNTERS[counter]}" for counter in COUNTERS if told[counter] not in ({0}, {None})
    )
    parts: list[Table | Text] = [table] if shown else []
    parts += _said([counter for counter in COUNTERS if told[counter] == {0}], "0 in every run")
    unknown = [counter for counter in COUNTERS if told[counter] == {None} and counter not in _OF_CORES]
    parts += _said(unknown, "Cannot be read here, so not known")
    return Section(
        "machine", "What the machine did meanwhile", f"{meanings[0].upper()}{meanings[1:]}." if meanings else "", parts
    )
