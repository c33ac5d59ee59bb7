# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables and figures as files, and as links that hold the whole file."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from fastenough.recording.lines import printable
from fastenough.report.document import Picture, Table

_MEDIA = {"svg": "image/svg+xml", "csv": "text/csv"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula, and runs it."""


def data_link(part: Table | Picture, ending: str) -> str:
    """A file of the report as a link that works wherever the page alone is sent."""
    content = part.svg.encode() if isinstance(part, Picture) and ending == "svg" else csv_of(part)
    return f"data:{_MEDIA[ending]};base64,{base64.b64encode(content).decode()}"


def csv_cell(value: Any) -> Any:
    """Numbers as they are; a text that a spreadsheet would run is marked as text."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows, the first of them the header, as the content of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def csv_of(part: Table | Picture) -> bytes:
    """What a table holds, or a figure was drawn of."""
    return csv_lines(part.csv_rows() if isinstance(part, Table) else [part.data[0], *part.data[1]])
