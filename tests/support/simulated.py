# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program simulated, and where it stands in the documents: printed, and put there with ``--write``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

BEGIN, END = "<!-- simulated: begin -->", "<!-- simulated: end -->"
REPETITIONS = 2000
SEED = 20260101


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def block_of(document: str) -> str:
    """What stands between the marks."""
    return document[document.index(BEGIN) + len(BEGIN) + 1 : document.index(END)]


def with_block(document: str, text: str) -> str:
    """The document, with this between the marks."""
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{text}{END}{after}"


def main(
    what: str | None, page: Path, simulate: Callable[[int], tuple[str, bool]], repetitions: int = REPETITIONS
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
        page.write_text(with_block(page.read_text(), text))
    return 0 if held else 1
