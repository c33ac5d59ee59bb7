# SPDX-License-Identifier: GPL-2.0-or-later
"""What follows from several runs together is kept in the store, so that reports and pages say it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastenough.model import BadInput
from fastenough.report.document import Section, read_section, stored_form
from fastenough.store import Store
from fastenough.store.conclusions import chapter_of, conclude, conclusions


def store_conclusion(store: Store, runs: Sequence[str], section: Section) -> None:
    """With their board; what no run was made for is not kept."""
    board = next((run.board for run in store.runs(brief=True, id=runs[0])), None) if runs else None
    if board is not None:
        conclude(store, board, runs, stored_form(section))


def stored_conclusions(store: Store, runs: Sequence[str]) -> tuple[Section, ...]:
    """Of these runs and perhaps of more of the kind: of each chapter the newest."""
    return tuple({section.id: section for section in reversed(list(_sections(store, set(runs))))}.values())


def _sections(store: Store, runs: set[str]) -> Iterator[Section]:
    for one in conclusions(store):
        if runs and runs <= set(one.runs):
            try:
                yield read_section(chapter_of(store, one.id) or {})
            except BadInput:
                continue
