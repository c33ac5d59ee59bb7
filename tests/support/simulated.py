# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program simulated, and where it stands in the documents: printed, and put there with ``--write``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NAME = "simulated"
"""Name in the marks of a block."""
REPETITIONS = 2000
SEED = 20260101


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


@dataclass(frozen=True)
class Row:
    """One row of a table; ``held``: whether what it shows is within what is stated."""

    cells: tuple[str, ...]
    held: bool = True


def table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    lines = [title, "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row.cells) + " |" for row in rows), ""])


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def block_of(document: str, name: str = NAME) -> str:
    """Text between the marks of this name."""
    begin, end = _marks(name)
    return document[document.index(begin) + len(begin) + 1 : document.index(end)]


def with_block(document: str, text: str, name: str = NAME) -> str:
    """The document, with this text between the marks of this name."""
    begin, end = _marks(name)
    before, rest = document.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{text}{end}{after}"


def main(
    what: str | None,
    page: Path,
    simulate: Callable[[int], tuple[str, bool]],
    repetitions: int = REPETITIONS,
    name: str = NAME,
) -> int:
    """``simulate`` gives the text, of so many repetitions, and whether it is within what is stated; status 1: not."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--write", action="store_true", help=f"put it into docs/{page.name}")
    asked = parser.parse_args()
    text, held = simulate(asked.repetitions)
    print(text)
    print("all within what is stated: " + ("yes" if held else "NO"))
    if asked.write:
        page.write_text(with_block(page.read_text(), text, name))
    return 0 if held else 1
