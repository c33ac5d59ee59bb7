# SPDX-License-Identifier: GPL-2.0-or-later
"""A section as it is kept, and as it is read again: reports and pages draw it from there.

Of tables there are the values and how they were shown, so that nothing is worded anew.  Sections with figures are
made of recordings, and are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from fastenough.model import BadInput
from fastenough.report.document import Cell, Column, Folded, Part, Picture, Section, Source, Table, Text

Leaf = Table | Picture | Text
_ID = re.compile(r"[a-z][a-z0-9-]{0,60}\Z")
"""Tables are files of a report by their names."""


def as_kept(section: Section) -> Mapping[str, Any]:
    return {"id": section.id, "title": section.title, "lead": section.lead, "parts": list(map(_part, section.parts))}


def _part(part: Part) -> Mapping[str, Any]:
    if isinstance(part, Folded):
        return {"kind": part.kind, "title": part.title, "printed": part.printed, "parts": list(map(_part, part.parts))}
    if isinstance(part, Text):
        return {"kind": part.kind, "text": part.text, "lines": list(part.lines)}
    assert isinstance(part, Table), "a figure is made of recordings"
    return {
        "kind": part.kind,
        "name": part.name,
        "caption": part.caption,
        "over": part.over,
        "note": part.note,
        "columns": [[column.title, column.numeric] for column in part.columns],
        "rows": [[[cell.value, cell.shown, cell.below] for cell in part.cells(row)] for row in part.rows],
    }


def read_section(said: Mapping[str, Any]) -> Section:
    """Raises BadInput for what is none."""
    try:
        return Section(
            _id(said["id"]), str(said["title"]), str(said["lead"]), [_read_part(part) for part in said["parts"]]
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"what was kept is no chapter ({type(error).__name__})") from error


def _read_part(said: Mapping[str, Any]) -> Part:
    if said["kind"] == Folded.kind:
        return Folded(str(said["title"]), [_leaf(part) for part in said["parts"]], bool(said["printed"]))
    return _leaf(said)


def _leaf(said: Mapping[str, Any]) -> Leaf:
    if said["kind"] != Table.kind:
        return {Text.kind: Text, Source.kind: Source}[said["kind"]](str(said["text"]), tuple(map(str, said["lines"])))
    columns = [Column(str(title), numeric=bool(numeric)) for title, numeric in said["columns"]]
    rows = [[_cell(cell) for cell in row] for row in said["rows"]]
    if not columns or any(len(row) != len(columns) for row in rows):
        raise ValueError("a row of another length")
    return Table(_id(said["name"]), str(said["caption"]), columns, rows, str(said["over"]), note=str(said["note"]))


def _cell(said: Sequence[Any]) -> Cell:
    value, shown, below = said
    known = float(value) if isinstance(value, Fraction) else value
    return Cell(known if isinstance(known, str | int | float) else None, str(shown), str(below))


def _id(said: Any) -> str:
    if not _ID.match(str(said)):
        raise ValueError("no name")
    return str(said)
