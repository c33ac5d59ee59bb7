# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs whose folders were deleted from the store.

``removed.jsonl`` in the store has the summary of each, so that a verdict can name a deleted run.  It is
part of the store, not of the index: a rebuild does not change it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from fastenough.files import Untrusted, write_all
from fastenough.folder import Folder
from fastenough.recording.lines import parse_line
from fastenough.store.summary import RunSummary, parse_summary, summary_entry

_FILE = "removed.jsonl"


def note_removed(store: Folder, summaries: Iterable[RunSummary]) -> None:
    """Append the summaries of deleted runs; raises OSError or Untrusted if the store cannot be written."""
    lines = b"".join(json.dumps(summary_entry(summary)).encode() + b"\n" for summary in summaries)
    if not lines:
        return
    try:
        file = store.create(_FILE)
    except FileExistsError:
        file = store.append(_FILE)
    try:
        write_all(file, b"\n" + lines)  # a line that a full disk truncated ends here
        os.fsync(file)
    finally:
        os.close(file)


def removed_runs(store: Folder) -> list[RunSummary]:
    """The summaries of deleted runs, each once, oldest first; invalid lines are skipped."""
    return sorted({summary.id: summary for summary in _read(store)}.values(), key=lambda summary: summary.id)


def _read(store: Folder) -> Iterator[RunSummary]:
    try:
        with store.open_file(_FILE) as file:
            lines = file.readlines()
    except (OSError, Untrusted):
        return
    for line in lines:
        try:
            entry = parse_line(line)
            yield parse_summary(line, str(entry["id"]))
        except (ValueError, TypeError, KeyError):
            continue
