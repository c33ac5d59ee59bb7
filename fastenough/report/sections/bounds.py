# SPDX-License-Identifier: GPL-2.0-or-later
"""Upper bounds on the rate of events above the maximum or the limit."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import Merged, measure, words
from fastenough.analysis.extremal import extremal_indices
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Folded, Section, Table

_MOST_OPEN = 32
"""Longer tables are folded."""


def _row(group: Group, kind: Kind, run: str, values: Merged) -> list[Any]:
    bound = measure(values).bound
    cpu = ", ".join(map(str, values.cpus)) or "–"
    return [
        group.title.removeprefix("load "),
        kind.name,
        run,
        cpu,
        bound.n,
        values.lost,
        values.missed,
        values.maximum_ns,
        int(1 / bound.rate) if bound.n else None,
        bound.every_ns,
    ]


def _table(name: str, caption: str, rows: list[list[Any]]) -> Table:
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("run", numeric=False),
        Column("CPU"),
        Column("activations"),
        Column("lost"),
        Column("missed"),
        Column("maximum [µs]", words.microseconds),
        Column("rate above the maximum, at most 1 in … activations"),
        Column("= at most 1 in", lambda ns: "–" if ns is None else words.at_least(ns)),
    )
    return Table(name, caption, columns, rows)


def _shown(context: Context) -> list[Table]:
    """What the samples of each CPU show about its requirement; empty without a requirement."""
    rows = [
        (
            judgment.load or "not stated",
            shown.series,
            ", ".join(map(str, shown.cpus)) or "–",
            shown.n,
            shown.exceeded,
            " to ".join(map(str, dict.fromkeys(shown.disturbances))),
            shown.longest,
            shown.text,
            shown.source,
        )
        for judgment in context.assessment.judgments
        for shown in judgment.shown
    ]
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("CPU"),
        Column("activations"),
        Column("above limit"),
        Column("disturbances"),
        Column("longest burst"),
        Column("conclusion", numeric=False),
        Column("source of the order", numeric=False),
    )
    return [Table("shown", "Evidence about the limit, CPU by CPU", columns, rows)] if rows else []


def _clusters(chosen: list[tuple[Group, Kind]]) -> list[Table]:
    """Clustering above high thresholds, on the CPU with the greatest maximum."""
    rows = [
        (
            group.title.removeprefix("load "),
            kind.name,
            ", ".join(map(str, kind.worst_cpu.cpus)) or "–",
            one.threshold_ns,
            one.exceeded,
            one.disturbances,
            one.by_runs,
            one.by_intervals,
            one.effective_n,
        )
        for group, kind in chosen
        for one in extremal_indices(kind.worst_cpu)
    ]
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("CPU"),
        Column("threshold [µs]", words.microseconds),
        Column("above threshold"),
        Column("disturbances"),
        Column("extremal index, by runs", _index),
        Column("by times between", _index),
        Column("effective n"),
    )
    return (
        [
            Table(
                "clusters",
                "Clustering of late activations; the extremal index is 1 if each is independent",
                columns,
                rows,
            )
        ]
        if rows
        else []
    )


def _index(theta: float | None) -> str:
    return "–" if theta is None else f"{theta:.3f}"


def _by_run(group: Group, kind: Kind) -> list[list[Any]]:
    single = [Group((recording,), group.setup) for recording in group.recordings]
    return [
        _row(one, other, one.recordings[0].run_id, values)
        for one in single
        for other in one.kinds
        if other.name == kind.name
        for values in other.per_cpu
    ]


def section(context: Context) -> Section | None:
    chosen = [(group, kind) for group in context.groups for kind in group.judged_kinds]
    if not chosen:
        return None
    rows = [_row(group, kind, "all", values) for group, kind in chosen for values in kind.per_cpu]
    per_run = [row for group, kind in chosen if len(group.recordings) > 1 for row in _by_run(group, kind)]
    table = _table("bounds", "95 % confidence, CPU by CPU", rows)
    parts: list[Table | Folded] = [
        *_shown(context),
        table if len(rows) <= _MOST_OPEN else Folded("CPU by CPU", [table]),
    ]
    clusters = _clusters(chosen)
    if clusters:
        parts.append(Folded("Clusters above high thresholds", clusters))
    if per_run:
        parts.append(
            Folded(
                "Run by run",
                [_table("bounds-by-run", "95 % confidence, CPU by CPU in each run", per_run)],
            )
        )
    return Section(
        "bounds",
        "Bounds on the rate above the maximum",
        "No sample is above the maximum. Events above it may still occur at a rate of up to about 3/n per "
        "activation: n samples miss a higher rate with a probability below 5 %. CPUs are never combined here, "
        "because one stall on two CPUs is one stall. Times are those of one periodic task at the measured period.",
        parts,
    )
