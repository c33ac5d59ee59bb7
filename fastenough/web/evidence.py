# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs for the pages that look into recordings: of the boards that who asks may see, and of no others."""

from __future__ import annotations

from fastenough.history import UnknownBoard, board_of
from fastenough.recording import Recording
from fastenough.store import RunSummary, Store
from fastenough.web.site import Nowhere, Site


def _summary(store: Store, run: str) -> RunSummary | None:
    return next(iter(store.runs(id=run)), None)


def summary_of(site: Site, run: str) -> RunSummary:
    """Raises Nowhere for a run that is not there, or is of a board that is not there for who asks.

    The index may know runs that were removed, or lie in another store: where that is concerns nobody here.
    """
    if site.store is None:
        raise Nowhere(run)
    found = _summary(site.store, run)
    if found is None or found.board is None or not (site.store.path / "runs" / found.id).is_dir():
        raise Nowhere(run)
    try:
        board_of(site.history, site.viewer, found.board)
    except UnknownBoard as error:
        raise Nowhere(run) from error
    return found


def recording_of(site: Site, run: str) -> Recording:
    """Raises Nowhere, as above."""
    summary = summary_of(site, run)
    assert site.store is not None
    return site.store.load(summary.id)
