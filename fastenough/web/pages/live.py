# SPDX-License-Identifier: GPL-2.0-or-later
"""Live: current values of the boards that a query selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from fastenough.history import latest
from fastenough.history.schema import STEP_S
from fastenough.web.pages.overview import OverviewView, overview
from fastenough.web.rendering import page_with_json
from fastenough.web.selection import Query
from fastenough.web.site import Site

_STEPS = 90


@dataclass(frozen=True)
class LiveView(OverviewView):
    """``latest``: by board its five-minute maxima, with which its strip begins; the last of them began at
    ``latest_s``."""

    latest: Mapping[str, list[int | None]]
    latest_s: int


def view(site: Site, query: Query = ()) -> LiveView:
    boards, now_s = overview(site, query), site.now_s
    names = None if boards.whole else [status.board.name for status in boards.boards]
    return LiveView(
        **{field.name: getattr(boards, field.name) for field in fields(OverviewView)},
        latest=latest(site.history, site.viewer, now_s, _STEPS, names),
        latest_s=now_s // STEP_S * STEP_S,
    )


PAGES = page_with_json("/live", "live.html.j2", view, asks=True, published=False, menu="Live")
