# SPDX-License-Identifier: GPL-2.0-or-later
"""Printing: JSON for programs, tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

_FILE_WIDTH = 200
"""Columns of a table that goes into a file or pipe: wide enough that no cell is folded."""


def print_json(document: Any) -> None:
    """One JSON document on standard output; dataclasses become objects."""
    print(json.dumps(document, indent=2, default=_plain))


def _plain(thing: Any) -> Any:
    return asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else str(thing)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> None:
    """A table; the first ``texts`` columns are words (left-aligned), the rest figures (right-aligned)."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=_FILE_WIDTH)
    console.print(table)


def wall_text(wall_ns: int | None) -> str:
    """A wall-clock instant in UTC, to the second."""
    return "–" if wall_ns is None else f"{datetime.fromtimestamp(wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%SZ}"


def micros(value_ns: float | None) -> str:
    """A time in µs without its unit, for columns that name it; a dash where there is none."""
    if value_ns is None:
        return "–"
    return f"{value_ns / 1000:.2f}" if abs(value_ns) < 10_000 else f"{value_ns / 1000:,.1f}"
