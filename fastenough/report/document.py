# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report is made of: sections, each of tables, figures and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A value that is shown with something below it; the CSV file holds the value alone."""

    value: Any
    shown: str
    below: str = ""


def plain(value: Any) -> str:
    """How a value is shown unless its column says otherwise: a dash for what is not there."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Column:
    """A column: its title (with unit) and how its values are shown; the CSV file holds them as they are."""

    title: str
    show: Callable[[Any], str] = plain
    numeric: bool = True


Data = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""Header and rows of a CSV file."""


@dataclass(frozen=True)
class Table:
    """Rows of raw values, each headed by its first one.  ``name`` is the CSV file's name; ``caption`` says what the
    rows are, ``note`` what else must be known; ``over`` stands above all columns but the first.

    ``csv``: header and rows for the file, where they differ from those shown.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    over: str = ""
    csv: Data | None = None
    note: str = ""
    kind: str = "table"

    def cells(self, row: Sequence[Any]) -> list[Cell]:
        """A row as it is shown."""
        return [
            value if isinstance(value, Cell) else Cell(value, column.show(value))
            for column, value in zip(self.columns, row, strict=True)
        ]

    def csv_rows(self) -> list[Sequence[Any]]:
        """Header and rows of the CSV file."""
        if self.csv is not None:
            return [self.csv[0], *self.csv[1]]
        bare = [[value.value if isinstance(value, Cell) else value for value in row] for row in self.rows]
        return [[column.title for column in self.columns], *bare]


@dataclass(frozen=True)
class Picture:
    """A drawn figure: SVG, PDF and PNG for those who need one, and what was drawn as numbers.

    ``wide``: takes a row of its own.
    """

    name: str
    caption: str
    svg: str
    pdf: bytes
    png: bytes
    data: Data
    wide: bool = False
    kind: str = "picture"


@dataclass(frozen=True)
class Text:
    """A paragraph; ``lines`` are shown as a list below it."""

    text: str
    lines: Sequence[str] = ()
    kind: str = "text"


@dataclass(frozen=True)
class Source(Text):
    """A text that is shown line by line as it was written."""

    kind: str = "source"


@dataclass(frozen=True)
class Folded:
    """Parts that are shown when asked for, and in print unless they are too long for it."""

    title: str
    parts: Sequence[Table | Picture | Text]
    printed: bool = True
    kind: str = "folded"


Part = Table | Picture | Text | Folded


@dataclass(frozen=True)
class Section:
    """One chapter of the report."""

    id: str
    title: str
    lead: str
    parts: Sequence[Part] = field(default_factory=tuple)

    def leaves(self) -> list[Table | Picture | Text]:
        """All parts, those folded away too."""
        flat: list[Table | Picture | Text] = []
        for part in self.parts:
            flat.extend(part.parts if isinstance(part, Folded) else [part])
        return flat
