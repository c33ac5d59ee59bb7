# SPDX-License-Identifier: GPL-2.0-or-later
"""What pages take from the store: of the boards that who asks may see, and of no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fastenough.history import UnknownBoard, board_of
from fastenough.history.boards import board_name
from fastenough.recording import Recording
from fastenough.store import RunSummary, Store
from fastenough.store.conclusions import Conclusion, conclusions
from fastenough.web.site import Nowhere, Site


def _summary(store: Store, run: str) -> RunSummary | None:
    return next(iter(store.runs(id=run)), None)


def summary_of(site: Site, run: str) -> RunSummary:
    """With the board that the history has it under; raises Nowhere for a run that is not there, or is of a board that
    is not there for who asks.

    The index may know runs that were removed, or lie in another store: where that is concerns nobody here.
    """
    if site.store is None:
        raise Nowhere(run)
    found = _summary(site.store, run)
    removed = found is not None and not (site.store.path / "runs" / found.id).is_dir()
    if found is None or removed or (found.board is None and found.state == "damaged"):
        raise Nowhere(run)
    board = found.board or board_name(site.store.load(found.id).head)
    try:
        board_of(site.history, site.viewer, board)
    except UnknownBoard as error:
        raise Nowhere(run) from error
    return replace(found, board=board)


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
