# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections of a report: tables, figures and texts; and their stored form, from which reports and pages show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fastenough.model import BadInput


@dataclass(frozen=True)
class Cell:
    """A value, its text, and an optional line below; the CSV file has the value only."""

    value: Any
    text: str
    below: str = ""


def plain(value: Any) -> str:
    """The default text of a value: a dash for None."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Column:
    """A column: its title (with unit) and the function that shows its values; the CSV file has raw values."""

    title: str
    show: Callable[[Any], str] = plain
    numeric: bool = True


Data = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""Header and rows of a CSV file."""


@dataclass(frozen=True)
class ReportTable:
    """Rows of raw values; the first is the row header.  ``name``: name of the CSV file; ``caption``, ``note``: texts
    above and below; ``over``: heading above all columns but the first.

    ``csv``: header and rows of the file, if they differ from those shown.
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
        """The cells of a row."""
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
    """A figure as SVG, PDF and PNG, and its data.

    ``wide``: takes the full width of the page.
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
class Preformatted(Text):
    """Preformatted text."""

    kind: str = "source"


@dataclass(frozen=True)
class Folded:
    """Parts shown on request, and on paper if ``printed``."""

    title: str
    parts: Sequence[ReportTable | Picture | Text]
    printed: bool = True
    kind: str = "folded"


Part = ReportTable | Picture | Text | Folded


@dataclass(frozen=True)
class Section:
    """One section of the report."""

    id: str
    title: str
    lead: str
    parts: Sequence[Part] = field(default_factory=tuple)

    def leaves(self) -> list[ReportTable | Picture | Text]:
        """All parts, including folded ones."""
        flat: list[ReportTable | Picture | Text] = []
        for part in self.parts:
            flat.extend(part.parts if isinstance(part, Folded) else [part])
        return flat


Leaf = ReportTable | Picture | Text
_ID = re.compile(r"[a-z][a-z0-9-]{0,60}\Z")
"""Tables are files of a report by their names."""


def stored_form(section: Section) -> Mapping[str, Any]:
    return {"id": section.id, "title": section.title, "lead": section.lead, "parts": list(map(_part, section.parts))}


def _part(part: Part) -> Mapping[str, Any]:
    if isinstance(part, Folded):
        return {"kind": part.kind, "title": part.title, "printed": part.printed, "parts": list(map(_part, part.parts))}
    if isinstance(part, Text):
        return {"kind": part.kind, "text": part.text, "lines": list(part.lines)}
    assert isinstance(part, ReportTable), "figures are not stored"
    return {
        "kind": part.kind,
        "name": part.name,
        "caption": part.caption,
        "over": part.over,
        "note": part.note,
        "columns": [[column.title, column.numeric] for column in part.columns],
        "rows": [[[cell.value, cell.text, cell.below] for cell in part.cells(row)] for row in part.rows],
    }


def read_section(stored: Mapping[str, Any]) -> Section:
    """The section of a stored form; raises BadInput if it is not one."""
    try:
        return Section(
            _id(stored["id"]), str(stored["title"]), str(stored["lead"]), [_read_part(part) for part in stored["parts"]]
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the stored section is not valid ({type(error).__name__})") from error


def _read_part(stored: Mapping[str, Any]) -> Part:
    if stored["kind"] == Folded.kind:
        return Folded(str(stored["title"]), [_leaf(part) for part in stored["parts"]], bool(stored["printed"]))
    return _leaf(stored)


def _leaf(stored: Mapping[str, Any]) -> Leaf:
    if stored["kind"] != ReportTable.kind:
        return {Text.kind: Text, Preformatted.kind: Preformatted}[stored["kind"]](
            str(stored["text"]), tuple(map(str, stored["lines"]))
        )
    columns = [Column(str(title), numeric=bool(numeric)) for title, numeric in stored["columns"]]
    rows = [[_cell(cell) for cell in row] for row in stored["rows"]]
    if not columns or any(len(row) != len(columns) for row in rows):
        raise ValueError("row length differs from the number of columns")
    return ReportTable(
        _id(stored["name"]), str(stored["caption"]), columns, rows, str(stored["over"]), note=str(stored["note"])
    )


def _cell(stored: Sequence[Any]) -> Cell:
    value, text, below = stored
    number = float(value) if isinstance(value, Fraction) else value
    return Cell(number if isinstance(number, str | int | float) else None, str(text), str(below))


def _id(stored: Any) -> str:
    if not _ID.match(str(stored)):
        raise ValueError("not a valid name")
    return str(stored)
