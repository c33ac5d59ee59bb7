# SPDX-License-Identifier: GPL-2.0-or-later
"""Repeated looks: how often questions of a family were judged before.  Each look may err.

A family is what is asked about: board, configuration, probe, implementation and load.  A question is a family and a
requirement.  A judgment by another requirement is a further look at the family, also where only the limit, the return
time, the confidence or the declared burst was changed, and also by the same runs.

``looks.jsonl`` in the store holds a line for each look: the question, its families, the requirements that were judged
together with it, the runs, and the verdict.  Lines of earlier versions name the question only, and count for that.  A
PASS ends a question; what is measured later is a new one.  An assessment that measures anew is a further look; a gate
answers for the runs of one night: there a look is a further one only where it judges runs again that were judged
before.
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
"""Maximum number of looks; the oldest are removed."""


@dataclass(frozen=True)
class Topic:
    """What is asked: ``question``, the ``families`` it belongs to, and ``together``, which stands for all requirements
    that are judged at once: these are no further looks at each other."""

    question: str
    families: tuple[str, ...] = ()
    together: str = ""


@dataclass(frozen=True)
class Look:
    """One judgment: of what, by which runs, and how it ended."""

    topic: Topic
    runs: tuple[str, ...]
    verdict: str

    def is_at(self, topic: Topic) -> bool:
        """Whether it concerned the same question or another one of the same family."""
        return self.topic.question == topic.question or not set(self.topic.families).isdisjoint(topic.families)


def question_of(*parts: object) -> str:
    """The hash that identifies a question in the file."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(folder: Folder) -> Iterator[Look]:
    """All looks; invalid lines are skipped."""
    try:
        content = folder.read(LOOKS_FILE, _MOST_BYTES)
    except (OSError, Untrusted):
        return
    for raw in content.splitlines():
        try:
            line = parse_line(raw)
            question = str(line["question"])
            topic = Topic(question, tuple(map(str, line.get("families", ()))), str(line.get("together", "")))
            yield Look(topic, tuple(map(str, line["runs"])), str(line["verdict"]))
        except (ValueError, KeyError, TypeError):
            continue


def looks_before(folder: Folder, topic: Topic, runs: Sequence[str]) -> list[Look]:
    """The looks at the question's families that came before one by these runs.

    The same runs judged again by the same requirement are no further look, nor are requirements judged together, and
    what is BROKEN was none.  A PASS ends the looks at its own question, never those at another: a PASS by an easier
    requirement would hide them.
    """
    before: list[Look] = []
    judged = tuple(sorted(runs))
    for look in _read(folder):
        if not look.is_at(topic):
            continue
        same_question = look.topic.question == topic.question
        if look.runs == judged and same_question:
            break
        if look.verdict == Verdict.PASS:
            before = [one for one in before if one.topic.question != look.topic.question]
        elif look.verdict != Verdict.BROKEN and not (
            look.runs == judged and topic.together and look.topic.together == topic.together
        ):
            before.append(look)
    return before


def looks_sharing_runs(looks: Sequence[Look], runs: Sequence[str]) -> list[Look]:
    """Looks that judged some of these runs, or runs judged together with some of them; the latest first."""
    known, found = set(runs), []
    for look in reversed(looks):
        if known.intersection(look.runs):
            known.update(look.runs)
            found.append(look)
    return found


def note(folder: Folder, topic: Topic, runs: Sequence[str], verdict: Verdict) -> None:
    """Record a look, once for the same runs; raises OSError or Untrusted if the store cannot be written."""
    look = Look(topic, tuple(sorted(runs)), str(verdict))
    with folder.turn(lambda: None):
        known = list(_read(folder))
        if any((one.topic.question, one.runs) == (topic.question, look.runs) for one in known):
            return
        kept = [*known, look][-_MOST_KEPT:]
        folder.replace(LOOKS_FILE, b"".join(map(_line, kept)))


def _line(look: Look) -> bytes:
    topic = look.topic
    return (
        json.dumps(
            {
                "question": topic.question,
                "families": topic.families,
                "together": topic.together,
                "runs": look.runs,
                "verdict": look.verdict,
            }
        ).encode()
        + b"\n"
    )
