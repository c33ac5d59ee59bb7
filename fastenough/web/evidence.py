# SPDX-License-Identifier: GPL-2.0-or-later
"""What pages take from the store: of the boards that who asks may see, and of no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fastenough.history import UnknownBoard, board_of
from fastenough.history.standings import board_of_run
from fastenough.recording import Recording
from fastenough.store import RunSummary
from fastenough.store.conclusions import Conclusion, conclusions
from fastenough.web.site import Nowhere, Site

_NO_RUN = "none"
"""Asked for in the place of a run that is not there, so that it is refused no sooner than a hidden one."""


def summary_of(site: Site, run: str) -> RunSummary:
    """With the board that the history has it under; raises Nowhere for a run that is not there, or is of a board that
    is not there for who asks: after the same questions to store and history, so that the time tells nothing.

    The index may know runs that were removed, or lie in another store: where that is concerns nobody here.
    """
    if site.store is None:
        raise Nowhere(run)
    found = next(iter(site.store.runs(id=run, brief=True)), None)
    here = site.store.has(_NO_RUN if found is None else found.id)
    board = found.board if found is not None and here and found.board else ""
    try:
        named = board_of_run(site.history, site.viewer, run)
        board_of(site.history, site.viewer, named or board)
    except UnknownBoard as error:
        raise Nowhere(run) from error
    if found is None or not here or (found.board is None and found.state == "damaged"):
        raise Nowhere(run)
    return replace(found, board=named or board)


def recording_of(site: Site, run: str) -> Recording:
    """Raises Nowhere, as above."""
    summary = summary_of(site, run)
    assert site.store is not None
    return site.store.load(summary.id)


def conclusions_of(site: Site) -> Iterator[Conclusion]:
    """The newest first."""
    seen: dict[str, bool] = {}
    for one in conclusions(site.store) if site.store is not None else ():
        if one.board not in seen:
            seen[one.board] = _is_seen(site, one.board)
        if seen[one.board]:
            yield one


def _is_seen(site: Site, board: str) -> bool:
    try:
        board_of(site.history, site.viewer, board)
    except UnknownBoard:
        return False
    return True
