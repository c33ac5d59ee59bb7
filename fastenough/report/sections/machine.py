# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine did meanwhile: steal, SMIs, throttling, faults, switches, clock steps."""

from __future__ import annotations

from fastenough.analysis import load_name, words
from fastenough.analysis.machine import COUNTERS, counter_total
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table


def _title(counter: str) -> str:
    return counter.removesuffix("_ns").replace("_", " ")


def _show(counter: str) -> Column:
    if counter.endswith("_ns"):
        return Column(_title(counter), lambda ns: "unknown" if ns is None else words.duration(ns) if ns else "0")
    return Column(_title(counter), lambda n: "unknown" if n is None else f"{n:,}")


def section(context: Context) -> Section | None:
    measured = [recording for group in context.groups for recording in group.recordings]
    if not measured:
        return None
    columns = (Column("load", numeric=False), Column("run", numeric=False), *(_show(counter) for counter in COUNTERS))
    rows = [(load_name(recording), recording.run_id, *(counter_total(recording, counter) for counter in COUNTERS))
            for recording in measured]
    table = Table("machine", "Counted during each run; unknown: cannot be read here", columns, rows)
    meanings = "; ".join(f"{_title(counter)}: {meaning}" for counter, meaning in COUNTERS.items())
    return Section("machine", "What the machine did meanwhile", f"{meanings[0].upper()}{meanings[1:]}.", [table])
