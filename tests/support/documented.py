# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that the documents show, as a reader would type them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fastenough.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = {page.name: page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
WHOLE = ("farm try", "report", "audit", "calibrate", "bench down", "bench status", "campaign resume", "campaign status")
"""Of the commands without arguments those that are shown to be called; others are names of commands."""
_COMMAND = re.compile(
    r"(?:\$ )?(?:sudo )?(?:[A-Z_]+=\S+ )*(?:bin/)?fastenough "
    rf"(?=(?:{'|'.join(COMMANDS)})\b)"
)
_BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def is_incomplete(words: str) -> bool:
    """Whether a part of the command is left to the reader, as in ``[--json]`` or ``RUN…``."""
    return re.search(r"[…\[]", words) is not None


def documented_commands() -> Iterator[tuple[str, str]]:
    """Page and words of every command that a page shows whole, as a line of a block or within the text."""
    for page, text in PAGES.items():
        for block in _BLOCK.findall(text):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                if command := _COMMAND.match(line.strip()):
                    yield page, _without_comment(line.strip()[command.end() :])
        for inline in re.findall(r"`([^`]+)`", _BLOCK.sub("", text)):
            if (command := _COMMAND.match(" ".join(inline.split()))) and " " in inline[command.end() :].strip():
                yield page, _without_comment(" ".join(inline.split())[command.end() :])


def _without_comment(words: str) -> str:
    return re.sub(r"\s+#.*", "", words).strip()
