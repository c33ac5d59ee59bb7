# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimum, average and maximum per load, in the form of Enea's tables A.2 to A.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastenough.analysis import words
from fastenough.reference import Figure, find_reference
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Column, Folded, Section, Table

_STRESS = {"none": "no stress"}
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


def _matrix(number: int, members: list[tuple[Group, Kind]]) -> Table:
    measured = [kind.measures for _, kind in members]
    loads = [group.load for group, _ in members]
    rows = [
        ("Min", *(m.minimum_ns for m in measured)),
        ("Average", *(m.mean_ns for m in measured)),
        ("Max", *(m.maximum_ns for m in measured)),
    ]
    group, kind = members[0]
    n = ", ".join(f"{load} {m.n:,} in {words.duration(m.duration_ns)}"
                  for load, m in zip(loads, measured, strict=True))
    setup = f", {group.setup}" if group.setup else ""
    return Table(f"stress-matrix-{number}", f"{kind.name}{setup}, all CPUs together",
                 _columns(loads, words.microseconds), rows, over="by load", note=f"n: {n}; {group.instrument}.")


def section(context: Context) -> Section | None:
    """One matrix a setup; where there are many setups, only of those measured under several loads."""
    matrices: dict[tuple[str, str], list[tuple[Group, Kind]]] = {}
    for group in context.groups:
        for kind in group.judged_kinds:
            matrices.setdefault((group.setup, kind.name), []).append((group, kind))
    chosen = [members for members in matrices.values() if len(members) > 1 or len(matrices) <= _FEW]
    if not chosen:
        return None
    tables = [_matrix(number, members) for number, members in enumerate(chosen, start=1)]
    return Section("stress-matrix", "Latency by load",
                   "A load is what else the machine is made to do. The maximum is the greatest value seen, exactly; "
                   "it is a lower bound of the worst case.", [*tables, _enea()])
