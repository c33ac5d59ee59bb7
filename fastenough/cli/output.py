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
    Console(highlight=False).print(table)


def wall_text(wall_ns: int | None) -> str:
    """A wall-clock instant in UTC, to the second."""
    return "–" if wall_ns is None else f"{datetime.fromtimestamp(wall_ns / 1e9, UTC):%Y-%m-%d %H:%M:%SZ}"
