# SPDX-License-Identifier: GPL-2.0-or-later
"""Upper bounds on the rate of events above the maximum or the limit, and the tightest limits the data support."""

from __future__ import annotations

from typing import Any

from fastenough.analysis import Merged, Supported, measure, requirement_name, words
from fastenough.analysis.extremal import extremal_indices
from fastenough.report.context import Context, RunGroup, SeriesKind, maximum_cell
from fastenough.report.document import Column, Folded, ReportTable, Section, Text

_MOST_OPEN = 32
"""Longer tables are folded."""


def _row(names: tuple[str, str, str], values: Merged, *, broken: bool) -> list[Any]:
    """``names``: load, series and run; ``broken``: the data cannot be trusted, so that no bound follows."""
    measures = measure(values)
    bound = measures.bound
    cpu = ", ".join(map(str, values.cpus)) or "–"
    return [
        *names,
        cpu,
        bound.n,
        values.lost,
        values.missed,
        maximum_cell(measures),
        int(1 / bound.rate) if bound.n and not broken else None,
        None if broken else bound.every_ns,
    ]


def _table(name: str, caption: str, rows: list[list[Any]]) -> ReportTable:
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
    return ReportTable(name, caption, columns, rows)


def _evidence_tables(context: Context) -> list[ReportTable]:
    """What the samples of each CPU show about its requirements; empty without a requirement."""
    several = len(context.assessment.requirements) > 1
    rows = [
        (
            judgment.load or "not stated",
            *([requirement_name(judgment.requirement)] if several and judgment.requirement else []),
            evidence.series,
            ", ".join(map(str, evidence.cpus)) or "–",
            evidence.n,
            evidence.exceeded,
            " to ".join(map(str, dict.fromkeys(evidence.disturbances))),
            evidence.longest,
            evidence.text,
            evidence.source,
        )
        for judgment in context.assessment.judgments
        for evidence in judgment.evidence
    ]
    columns = (
        Column("load", numeric=False),
        *([Column("requirement", numeric=False)] if several else []),
        Column("series", numeric=False),
        Column("CPU"),
        Column("activations"),
        Column("above limit"),
        Column("disturbances"),
        Column("longest burst"),
        Column("conclusion", numeric=False),
        Column("source of the order", numeric=False),
    )
    return [ReportTable("shown", "Evidence about the limit, CPU by CPU", columns, rows)] if rows else []


def _clusters(chosen: list[tuple[RunGroup, SeriesKind]]) -> list[ReportTable]:
    """Clustering above high thresholds, on the CPU with the greatest maximum."""
    rows = [
        (
            group.title.removeprefix("load "),
            kind.name,
            ", ".join(map(str, kind.worst_cpu.cpus)) or "–",
            index.threshold_ns,
            index.exceeded,
            index.disturbances,
            index.by_runs,
            index.by_intervals,
            index.effective_n,
        )
        for group, kind in chosen
        for index in extremal_indices(kind.worst_cpu)
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
            ReportTable(
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


def _rows(context: Context, group: RunGroup, kind: SeriesKind, run: str) -> list[list[Any]]:
    """One row for each CPU; ``run``: the name of these runs."""
    names, broken = (group.title.removeprefix("load "), kind.name, run), context.is_broken(group)
    return [_row(names, values, broken=broken) for values in kind.per_cpu]


def _by_run(context: Context, group: RunGroup, kind: SeriesKind) -> list[list[Any]]:
    single = [RunGroup((recording,), group.setup) for recording in group.recordings]
    return [
        row
        for run in single
        for other in run.kinds
        if other.name == kind.name
        for row in _rows(context, run, other, run.recordings[0].run_id)
    ]


def rate_bounds(context: Context) -> Section | None:
    chosen = [(group, kind) for group in context.groups for kind in group.judged_kinds]
    if not chosen:
        return None
    rows = [row for group, kind in chosen for row in _rows(context, group, kind, "all")]
    per_run = [row for group, kind in chosen if len(group.recordings) > 1 for row in _by_run(context, group, kind)]
    table = _table("bounds", "95 % confidence, CPU by CPU", rows)
    parts: list[ReportTable | Folded] = [
        *_evidence_tables(context),
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


_SHARED_NOTE = (
    "These limits apply to the measured samples only and are no worst case: the machine is virtual or emulated "
    "(see the reasons in the summary)."
)


def _allowed(miss_rate: float) -> str:
    return "no misses (100 %)" if miss_rate == 0 else f"at most {words.percent(miss_rate)} misses"


def _supported_row(supported: Supported) -> tuple[object, ...]:
    left = supported.bound.text if supported.miss_rate == 0 else "as stated"
    return (_allowed(supported.miss_rate), supported.limit_ns, words.percent(supported.confidence), left)


def tightest_limits(context: Context) -> Section | None:
    if not context.assessment.supported:
        return None
    columns = (
        Column("requirement", numeric=False),
        Column("tightest limit [µs]", words.microseconds),
        Column("confidence"),
        Column("bound on the rate above it", numeric=False),
    )
    table = ReportTable(
        "supported",
        "Met by every CPU under every load",
        columns,
        [_supported_row(supported) for supported in context.assessment.supported],
    )
    shared = any("no worst-case verdict" in reason or "emulated" in reason for reason in context.assessment.reasons)
    return Section(
        "supported",
        "Tightest limits these data support",
        "The smallest limits, rounded up to two digits, that no CPU exceeded more often than stated.",
        [table, *([Text(_SHARED_NOTE)] if shared else [])],
    )
