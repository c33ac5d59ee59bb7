# SPDX-License-Identifier: GPL-2.0-or-later
"""How often one question was judged before: who looks again until it passes gets another chance to err each time.

``looks.jsonl`` in the store holds a line for each look: the question (a requirement, and what it was asked of), the
runs that were judged, and the verdict.  A PASS ends a question; what is measured later is a new one.  An assessment
that measures anew is a further look; a gate answers for the runs of one night: there a look is a further one only where
it judges runs again that were judged before.
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


def looks_before(folder: Folder, question: str, runs: Sequence[str]) -> list[Look]:
    """The looks at the question that came before one by these runs, since it last passed.

    The same runs judged again are no further look, and what is BROKEN was none.
    """
    before: list[Look] = []
    for look in _read(folder):
        if look.question != question:
            continue
        if look.runs == tuple(sorted(runs)):
            break
        if look.verdict == Verdict.PASS:
            before.clear()
        elif look.verdict != Verdict.BROKEN:
            before.append(look)
    return before


def with_some_of(looks: Sequence[Look], runs: Sequence[str]) -> list[Look]:
    """Those that judged some of these runs, or runs that were judged together with some of them; the latest first."""
    known, found = set(runs), []
    for look in reversed(looks):
        if known.intersection(look.runs):
            known.update(look.runs)
            found.append(look)
    return found


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
