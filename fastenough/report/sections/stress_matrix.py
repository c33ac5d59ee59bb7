# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimum, average and maximum per load, in the form of Enea's tables A.2 to A.5."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.analysis import words
from fastenough.reference import Figure, find_reference
from fastenough.report.context import Context, RunGroup, SeriesKind
from fastenough.report.document import Folded, ReportTable, Section
from fastenough.report.source_tables import Rounding, own_figure, stress_beside, stress_table

Member = tuple[RunGroup, SeriesKind]
"""One kind of series under one load."""
_FEW = 4
"""With at most this number of setups, each gets a matrix even if it has one load only."""


def _whole_us(ns: float) -> str:
    return f"{ns / 1000:g}"


_WHOLE = Rounding(_whole_us, _whole_us)
"""Published in whole microseconds."""


def _enea() -> Folded:
    kernels: dict[str, list[Figure]] = {}
    for figure in find_reference("p2041").figures:
        kernels.setdefault(f"{figure.location}: {figure.configuration}", []).append(figure)
    how = (
        "on a P2041 (four PowerPC cores): cyclictest, 100,000 cycles, priority 99, one stress instance per core; "
        "measured by the board itself"
    )
    tables = [
        stress_table(f"enea-a{number}", f"Published, {kernel} kernel {how}", figures, rounding=_WHOLE)
        for number, (kernel, figures) in enumerate(kernels.items(), start=2)
    ]
    return Folded(
        "Published figures of Enea for a P2041",
        [
            *stress_beside("enea-all", f"Published, four kernels {how}", kernels, rounding=_WHOLE),
            *tables,
        ],
    )


def _figures(members: Sequence[Member]) -> list[Figure]:
    return [own_figure(group, kind) for group, kind in members]


def _matrix(number: int, members: Sequence[Member]) -> ReportTable:
    group, kind = members[0]
    n = ", ".join(
        f"{group.load} {kind.all_cpus.n:,} in {words.measured_time(kind.all_cpus.duration_ns)}"
        for group, kind in members
    )
    setup = f", {group.setup}" if group.setup else ""
    return stress_table(
        f"stress-matrix-{number}",
        f"{kind.name}{setup}, all CPUs combined",
        _figures(members),
        f"n: {n}; {group.instrument}.",
    )


def section(context: Context) -> Section | None:
    """One matrix per setup; with many setups, only for those measured under several loads.

    Under a single load there is only the table of all setups, and none for a single setup.
    """
    matrices: dict[tuple[str, str], list[Member]] = {}
    for group in context.groups:
        for kind in group.judged_kinds:
            matrices.setdefault((group.setup, kind.name), []).append((group, kind))
    chosen = {title: members for title, members in matrices.items() if len(members) > 1 or len(matrices) <= _FEW}
    beside = stress_beside(
        "stress-matrix-all",
        "All configurations, all CPUs combined",
        {" · ".join(filter(None, title)): _figures(members) for title, members in chosen.items()},
    )
    several = len({group.load for group in context.groups}) > 1
    tables = [_matrix(number, members) for number, members in enumerate(chosen.values(), start=1)] if several else []
    if not beside and not tables:
        return None
    return Section(
        "stress-matrix",
        "Latency by load",
        "The maximum is the exact greatest measured value and a lower bound of the worst case.",
        [*beside, *tables, *([_enea()] if several else [])],
    )
