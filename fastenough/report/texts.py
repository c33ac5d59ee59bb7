# SPDX-License-Identifier: GPL-2.0-or-later
"""Text of pages, and tables as text for other documents: Markdown and LaTeX.

What a recording holds is text in them, never markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from fastenough import words
from fastenough.recording.lines import printable
from fastenough.report.document import Table

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
    """Text of a page in which no option of a command is parted at the end of a line: a browser breaks behind "--"."""
    return Markup(_OPTION.sub(_HELD, str(escape(text))))


def with_units(title: str) -> Markup:
    """The title of a narrow column, in which no number is parted from its unit."""
    return Markup(_QUANTITY.sub(_HELD, str(escape(title))))


def _line(text: str) -> str:
    """One line: a cell that had two would be two rows."""
    return " ".join(printable(text).split())


def _markdown_text(text: str) -> str:
    shown = _line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", shown)


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in _line(text))


def _rows(table: Table, written: Callable[[str], str]) -> list[list[str]]:
    """Every cell as it is shown, with what stands below it in brackets."""
    return [
        [written(f"{cell.shown} ({cell.below})" if cell.below else cell.shown) for cell in table.cells(row)]
        for row in table.rows
    ]


def markdown(table: Table) -> str:
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


def latex(table: Table) -> str:
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
