# SPDX-License-Identifier: GPL-2.0-or-later
"""What a plan comes to before anything is measured: its matrix, row by row, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastenough.campaign.expand import RunSpec
from fastenough.campaign.progress import Clock
from fastenough.model import Requirement


@dataclass(frozen=True)
class Row:
    """Runs that differ in board, configuration, load and repetition only.

    ``what``: probe, parameters and implementation in words; ``each_s``: how long each is measured.
    """

    what: str
    loads: tuple[str, ...]
    repeat: int
    each_s: float
    requirement: Requirement | None
    runs: int

    @property
    def measured_s(self) -> float:
        return self.runs * self.each_s


@dataclass(frozen=True)
class Matrix:
    """``places``: boards with their configurations, in the order they are measured in; ``expected_s``: with boots, and
    what is around each run, as far as that can be guessed."""

    places: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    expected_s: float

    @property
    def runs(self) -> int:
        return sum(row.runs for row in self.rows)

    @property
    def measured_s(self) -> float:
        return sum(row.measured_s for row in self.rows)


def matrix_of(specs: Sequence[RunSpec]) -> Matrix:
    """Of all runs that a plan expands into."""
    alike: dict[tuple[str, float, Requirement | None], list[RunSpec]] = {}
    for spec in specs:
        alike.setdefault((spec.what, spec.duration_s, spec.requirement), []).append(spec)
    places = tuple(dict.fromkeys((spec.board, spec.configuration) for spec in specs))
    rows = tuple(
        _row(what, each_s, requirement, runs, len(places)) for (what, each_s, requirement), runs in alike.items()
    )
    return Matrix(places, rows, Clock(specs).remaining_s())


def _row(what: str, each_s: float, requirement: Requirement | None, runs: Sequence[RunSpec], places: int) -> Row:
    loads = tuple(dict.fromkeys(spec.load for spec in runs))
    return Row(what, loads, max(1, len(runs) // (places * len(loads))), each_s, requirement, len(runs))
