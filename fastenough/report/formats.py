# SPDX-License-Identifier: GPL-2.0-or-later
"""Text of pages, tables as Markdown, LaTeX and CSV, and data links.  Text of recordings is never markup."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from fastenough import words
from fastenough.recording.lines import printable
from fastenough.report.document import Picture, ReportTable

_MARKDOWN = re.compile(r"([\\`*_\[\]|~#])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    '"': r"{\char34}",
    "µ": r"\textmu{}",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "·": r"\textperiodcentered{}",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "±": r"$\pm$",
    "−": r"$-$",
}
"""A bracket would be taken for an option where it begins a row."""


_OPTION = re.compile(r"--[a-z][a-z-]*")
_QUANTITY = re.compile(words.WITH_UNIT)
_HELD = r'<span class="short">\g<0></span>'


def unbroken(text: str) -> Markup:
    """Text of a page without line breaks inside command options: a browser breaks after "--"."""
    return Markup(_OPTION.sub(_HELD, str(escape(text))))


def with_units(title: str) -> Markup:
    """The title of a narrow column without line breaks between number and unit."""
    return Markup(_QUANTITY.sub(_HELD, str(escape(title))))


def _line(text: str) -> str:
    """Text on one line."""
    return " ".join(printable(text).split())


def _markdown_text(text: str) -> str:
    escaped = _line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", escaped)


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in _line(text))


def _rows(table: ReportTable, written: Callable[[str], str]) -> list[list[str]]:
    """The text of every cell; the line below in brackets."""
    return [
        [written(f"{cell.text} ({cell.below})" if cell.below else cell.text) for cell in table.cells(row)]
        for row in table.rows
    ]


def markdown(table: ReportTable) -> str:
    """A table for a document in Markdown (pipes, as on GitHub and in Pandoc)."""
    over = f" ({table.over})" if table.over else ""
    lines = [
        f"**{_markdown_text(table.caption + over)}**",
        "",
        _piped([_markdown_text(column.title) for column in table.columns]),
        _piped(["--:" if column.numeric else ":--" for column in table.columns]),
        *map(_piped, _rows(table, _markdown_text)),
    ]
    if table.note:
        lines += ["", _markdown_text(table.note)]
    return "\n".join(lines) + "\n"


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def latex(table: ReportTable) -> str:
    """A table for a document in LaTeX, in UTF-8; it needs no package."""
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    over = (
        [f" & \\multicolumn{{{len(table.columns) - 1}}}{{c}}{{{_latex_text(table.over)}}} \\\\"] if table.over else []
    )
    lines = [
        "\\begin{table}",
        f"\\caption{{{_latex_text(table.caption)}}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\hline",
        *over,
        _ended([_latex_text(column.title) for column in table.columns]),
        "\\hline",
        *map(_ended, _rows(table, _latex_text)),
        "\\hline",
        "\\end{tabular}",
    ]
    if table.note:
        lines += ["", f"\\footnotesize {_latex_text(table.note)}"]
    return "\n".join([*lines, "\\end{table}"]) + "\n"


def _ended(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


_MEDIA = {"svg": "image/svg+xml", "csv": "text/csv"}


def data_link(part: ReportTable | Picture, ending: str) -> str:
    """A file of the report as a data link, which works without the folder."""
    content = part.svg.encode() if isinstance(part, Picture) and ending == "svg" else csv_of(part)
    return f"data:{_MEDIA[ending]};base64,{base64.b64encode(content).decode()}"


def csv_cell(value: Any) -> Any:
    """A value for CSV; text that a spreadsheet would run gets a quote."""
    return words.no_formula(printable(value)) if isinstance(value, str) else value


def csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    """The content of a CSV file; the first row is the header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def csv_of(part: ReportTable | Picture) -> bytes:
    """The CSV file of a table or figure."""
    return csv_lines(part.csv_rows() if isinstance(part, ReportTable) else [part.data[0], *part.data[1]])
