# SPDX-License-Identifier: GPL-2.0-or-later
"""How often one question was judged before: who looks again until it passes gets another chance to err each time.

``looks.jsonl`` in the store holds a line for each look: the question (a requirement, and what it was asked of), the
runs that were judged, and the verdict.  A PASS ends a question; what is measured later is a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import Verdict
from fastenough.recording.lines import parse_line

LOOKS_FILE = "looks.jsonl"
_MOST_BYTES = 1 << 24
_MOST_KEPT = 20_000
"""Looks; the oldest make way."""


@dataclass(frozen=True)
class Look:
    """One judgment: of which question, by which runs, and how it ended."""

    question: str
    runs: tuple[str, ...]
    verdict: str


def question_of(*parts: object) -> str:
    """What stands for a question in the file."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(folder: Folder) -> Iterator[Look]:
    """What can be read; a line that is none is passed over."""
    try:
        content = folder.read(LOOKS_FILE, _MOST_BYTES)
    except (OSError, Untrusted):
        return
    for raw in content.splitlines():
        try:
            line = parse_line(raw)
            yield Look(str(line["question"]), tuple(map(str, line["runs"])), str(line["verdict"]))
        except (ValueError, KeyError, TypeError):
            continue


def looks_before(folder: Folder, question: str, runs: Sequence[str]) -> int:
    """How many looks at the question came before one by these runs, since it last passed.

    The same runs judged again are no further look.
    """
    before = 0
    for look in _read(folder):
        if look.question != question:
            continue
        if look.runs == tuple(sorted(runs)):
            break
        before = 0 if look.verdict == Verdict.PASS else before + (look.verdict != Verdict.BROKEN)
    return before


def note(folder: Folder, question: str, runs: Sequence[str], verdict: Verdict) -> None:
    """Remember a look, once for the same runs; raises OSError or Untrusted where the store takes none."""
    look = Look(question, tuple(sorted(runs)), str(verdict))
    with folder.turn(lambda: None):
        known = list(_read(folder))
        if any((one.question, one.runs) == (look.question, look.runs) for one in known):
            return
        kept = [*known, look][-_MOST_KEPT:]
        folder.replace(LOOKS_FILE, b"".join(json.dumps({"question": one.question, "runs": one.runs,
                                                        "verdict": one.verdict}).encode() + b"\n" for one in kept))
