# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimum, average and maximum per load, in the form of Enea's tables A.2 to A.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastenough.analysis import Measures, words
from fastenough.reference import Figure, find_reference
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Folded, Section, Table

_STRESS = {"none": "no stress"}
Member = tuple[Group, Kind]
"""One kind of series under one load."""
_FEW = 4
"""Setups of which each may have a matrix though it was measured under one load only."""


def _published() -> dict[str, list[Figure]]:
    """Of each kernel of the Enea P2041 example the figures under each load."""
    kernels: dict[str, list[Figure]] = {}
    for figure in find_reference("p2041").figures:
        kernels.setdefault(f"{figure.place}: {figure.configuration}", []).append(figure)
    return kernels


def _columns(loads: list[str], show: Callable[[Any], str]) -> tuple[Column, ...]:
    return (Column("latency [µs]", numeric=False), *(Column(_STRESS.get(load, load), show) for load in loads))


def _whole_us(ns: float) -> str:
    return f"{ns / 1000:g}"


def _enea() -> Folded:
    tables = []
    for number, (kernel, figures) in enumerate(_published().items(), start=2):
        rows = [("Min", *(one.minimum_ns for one in figures)), ("Average", *(one.mean_ns for one in figures)),
                ("Max", *(one.maximum_ns for one in figures))]
        tables.append(Table(
            f"enea-a{number}", f"Published, {kernel} kernel on a P2041 (four PowerPC cores): cyclictest, 100,000 "
            "cycles, priority 99, one stress instance per core; measured by the board itself",
            _columns([one.load for one in figures], _whole_us), rows, over="by load"))
    return Folded("Beside it: the figures Enea published for a P2041", tables)


_OF: tuple[tuple[str, Callable[[Measures], float | None]], ...] = (
    ("Min", lambda m: m.minimum_ns), ("Average", lambda m: m.mean_ns), ("Max", lambda m: m.maximum_ns))


def _matrix(number: int, members: Sequence[Member]) -> Table:
    measured = [kind.measures for _, kind in members]
    loads = [group.load for group, _ in members]
    rows = [(name, *map(of, measured)) for name, of in _OF]
    group, kind = members[0]
    n = ", ".join(f"{load} {m.n:,} in {words.duration(m.duration_ns)}"
                  for load, m in zip(loads, measured, strict=True))
    setup = f", {group.setup}" if group.setup else ""
    return Table(f"stress-matrix-{number}", f"{kind.name}{setup}, all CPUs together",
                 _columns(loads, words.microseconds), rows, over="by load", note=f"n: {n}; {group.instrument}.")


def _side_by_side(matrices: Sequence[Sequence[Member]]) -> list[Table]:
    """All configurations in one table, as tables A.2 to A.5 are read beside each other.

    One that was measured under two loads of one name has no one row in it, and is left out.
    """
    matrices = [members for members in matrices if len({group.load for group, _ in members}) == len(members)]
    loads = list(dict.fromkeys(group.load for members in matrices for group, _ in members))
    rows: list[list[Any]] = []
    for members in matrices:
        by_load = {group.load: kind.measures for group, kind in members}
        group, kind = members[0]
        setup = " · ".join(filter(None, (group.setup, kind.name)))
        for name, of in _OF:
            rows.append([setup, name, *(None if load not in by_load else of(by_load[load]) for load in loads)])
    columns = (Column("configuration", numeric=False), Column("latency [µs]", numeric=False), *_columns(
        loads, words.microseconds)[1:])
    return [Table("stress-matrix-all", "All configurations beside each other, all CPUs together", columns, rows,
                  over="by load")] if len(matrices) > 1 else []


def section(context: Context) -> Section | None:
    """One matrix a setup; where there are many setups, only of those measured under several loads."""
    matrices: dict[tuple[str, str], list[Member]] = {}
    for group in context.groups:
        for kind in group.judged_kinds:
            matrices.setdefault((group.setup, kind.name), []).append((group, kind))
    chosen = [members for members in matrices.values() if len(members) > 1 or len(matrices) <= _FEW]
    if not chosen:
        return None
    tables = [_matrix(number, members) for number, members in enumerate(chosen, start=1)]
    return Section("stress-matrix", "Latency by load",
                   "A load is what else the machine is made to do. The maximum is the greatest value seen, exactly; "
                   "it is a lower bound of the worst case.", [*_side_by_side(chosen), *tables, _enea()])
