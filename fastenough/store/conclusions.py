# SPDX-License-Identifier: GPL-2.0-or-later
"""Conclusions from several runs or from a trace: a hunt, tested changes, a task set, a bound.

``conclusions/`` in the store has an immutable file for each: one line of metadata, and one for its
chapter.  The content of the chapter is defined by the report.  The metadata of a conclusion without runs identify the
machine: names of boards change.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import Identifiers, identifiers_of
from fastenough.recording.lines import parse_line
from fastenough.store import Store, new_run_id
from fastenough.store.directory import storage_errors

CONCLUSIONS = "conclusions"
_FORM = {"format": "fastenough-conclusion", "version": 1}
_ENDING = ".jsonl"
_MACHINE = "machine"
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*\Z")
_MOST_BYTES = 1 << 24
_MOST_REMEMBERED = 10_000
_LATEST_S = 1 << 33
"""Later times are invalid."""


@dataclass(frozen=True)
class Conclusion:
    """Metadata.  ``lead``: first sentence; ``made_s``: time of creation; ``runs``: empty for a trace."""

    id: str
    board: str
    made_s: int
    title: str
    lead: str
    runs: tuple[str, ...]


def conclude(
    store: Store,
    board: str,
    runs: Sequence[str],
    chapter: Mapping[str, Any],
    *,
    machine: Identifiers = frozenset(),
) -> Conclusion:
    """Store a chapter, which has a title and a lead; raises FastenoughError if the store cannot be written.

    ``machine``: identifiers of the board's hardware, by which a conclusion without runs is found.
    """
    made = Conclusion(new_run_id(), board, int(time.time()), chapter["title"], chapter["lead"], tuple(runs))
    head = _FORM | asdict(made) | {_MACHINE: sorted(machine)}
    content = b"".join(json.dumps(line, default=_plain).encode() + b"\n" for line in (head, chapter))
    with (
        storage_errors(store.path / CONCLUSIONS),
        Folder.at(store.path) as folder,
        folder.below(CONCLUSIONS, make=True) as conclusions_folder,
    ):
        conclusions_folder.replace(made.id + _ENDING, content, 0o444)
    return made


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def conclusions(store: Store) -> Iterator[Conclusion]:
    """All conclusions, the newest first; invalid files are skipped."""
    try:
        with Folder.at(store.path) as folder, folder.below(CONCLUSIONS) as conclusions_folder:
            names = conclusions_folder.names()
    except (OSError, Untrusted):
        return
    for name in reversed(names):
        conclusion = _head(store.path, name.removesuffix(_ENDING)) if name.endswith(_ENDING) else None
        if conclusion is not None:
            yield conclusion


def chapter_of(store: Store, id: str) -> Mapping[str, Any] | None:
    """The chapter of a conclusion; None if it cannot be read."""
    lines = _lines(store.path, id)
    return None if lines is None else lines[1]


def machine_of(store: Store, id: str) -> Identifiers:
    """Identifiers of the machine of a conclusion; empty if they are unknown."""
    return _machine(store.path, id)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _machine(path: Path, id: str) -> Identifiers:
    lines = _lines(path, id)
    return frozenset() if lines is None else identifiers_of(lines[0])


@lru_cache(maxsize=_MOST_REMEMBERED)
def _head(path: Path, id: str) -> Conclusion | None:
    lines = _lines(path, id)
    if lines is None:
        return None
    try:
        summary = lines[0]
        conclusion = Conclusion(
            id,
            str(summary["board"]),
            int(summary["made_s"]),
            str(summary["title"]),
            str(summary["lead"]),
            tuple(map(str, summary["runs"])),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return conclusion if 0 <= conclusion.made_s < _LATEST_S else None


def _lines(path: Path, id: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    if not _NAME.match(id):
        return None
    try:
        with Folder.at(path) as folder, folder.below(CONCLUSIONS) as folder_of_conclusions:
            head, chapter = map(parse_line, folder_of_conclusions.read(id + _ENDING, _MOST_BYTES).splitlines())
    except (OSError, ValueError, Untrusted):
        return None
    known = isinstance(head, dict) and isinstance(chapter, dict) and {key: head.get(key) for key in _FORM} == _FORM
    return (head, chapter) if known else None
