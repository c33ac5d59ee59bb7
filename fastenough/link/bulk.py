# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading many files at once, for boards on which each question takes its time."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from fastenough.link.base import Link, Stalled

_HEADER = re.compile(rb"(?:\A|\n)==> (/[^\n]+) <==\n")
_TIMEOUT_S = 60.0
_AT_ONCE = 500
"""Patterns on one command line, whose length is bounded."""


def read_matching(link: Link, patterns: Iterable[str]) -> dict[str, bytes]:
    """Content by path of every file that matches any of the patterns and can be read."""
    wanted = sorted(set(patterns))
    if link.near:
        return _one_by_one(link, wanted)
    compressed = [pattern for pattern in wanted if pattern.endswith(".gz")]
    return _one_by_one(link, compressed) | _all_at_once(link, [each for each in wanted if each not in compressed])


def _one_by_one(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents = {}
    for path in sorted({path for pattern in patterns for path in _expanded(link, pattern)}):
        try:
            contents[path] = link.read(path)
        except OSError:
            continue
    return contents


def _expanded(link: Link, pattern: str) -> list[str]:
    return link.glob(pattern) if _is_pattern(pattern) else [pattern]


def _is_pattern(path: str) -> bool:
    return re.search(r"[*?\[]", path) is not None


def _all_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for begin in range(0, len(patterns), _AT_ONCE):
        contents |= _some_at_once(link, patterns[begin : begin + _AT_ONCE])
    return contents


def _some_at_once(link: Link, patterns: list[str]) -> dict[str, bytes]:
    """By ``head``, which names each file before its content; /dev/null makes sure that there are several."""
    words = " ".join(path if _is_pattern(path) else shlex.quote(path) for path in patterns)
    try:
        completed = link.run(["sh", "-c", f"head -n 1000000 /dev/null {words} 2>/dev/null"], _TIMEOUT_S)
    except (OSError, Stalled):
        return _one_by_one(link, patterns)
    _, *parts = _HEADER.split(completed.stdout)
    return {
        path.decode(errors="replace"): content
        for path, content in zip(parts[::2], parts[1::2], strict=True)
        if path != b"/dev/null"
    }
