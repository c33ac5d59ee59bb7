# SPDX-License-Identifier: GPL-2.0-or-later
"""System activity during the runs: steal, SMIs, throttling, faults, switches, clock steps."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.analysis import load_name, words
from fastenough.analysis.machine import COUNTERS, counter_total
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table, Text

_OF_CORES = {"core_overruns"}
"""Counters of tasks that a real-time core schedules; not applicable to others."""
_NAMED = 2
"""Columns before those of the counters."""


def _title(counter: str) -> str:
    return counter.removesuffix("_ns").replace("_", " ")


def _show(counter: str) -> Column:
    if counter.endswith("_ns"):
        return Column(_title(counter), lambda ns: "unknown" if ns is None else words.duration(ns) if ns else "0")
    return Column(_title(counter), lambda n: "unknown" if n is None else f"{n:,}")


def _meanings(counters: Sequence[str], state: str) -> list[Text]:
    return [Text(f"{state}: {'; '.join(COUNTERS[counter] for counter in counters)}.")] if counters else []


def section(context: Context) -> Section | None:
    measured = [recording for group in context.groups for recording in group.recordings]
    if not measured:
        return None
    rows = [
        (load_name(recording), recording.run_id, *(counter_total(recording, counter) for counter in COUNTERS))
        for recording in measured
    ]
    values = {counter: {row[at] for row in rows} for at, counter in enumerate(COUNTERS, _NAMED)}
    shown = [at for at, counter in enumerate(COUNTERS, _NAMED) if values[counter] not in ({0}, {None})]
    columns = (Column("load", numeric=False), Column("run", numeric=False), *(_show(counter) for counter in COUNTERS))
    places = [*range(_NAMED), *shown]
    table = Table(
        "machine",
        "Counted during each run; unknown: not available on this system",
        [columns[at] for at in places],
        [[row[at] for at in places] for row in rows],
        csv=([column.title for column in columns], rows),
    )
    meanings = "; ".join(
        f"{_title(counter)}: {COUNTERS[counter]}" for counter in COUNTERS if values[counter] not in ({0}, {None})
    )
    parts: list[Table | Text] = [table] if shown else []
    parts += _meanings([counter for counter in COUNTERS if values[counter] == {0}], "0 in every run")
    unknown = [counter for counter in COUNTERS if values[counter] == {None} and counter not in _OF_CORES]
    parts += _meanings(unknown, "Unknown (not available on this system)")
    return Section(
        "machine", "System activity during the runs", f"{meanings[0].upper()}{meanings[1:]}." if meanings else "", parts
    )
