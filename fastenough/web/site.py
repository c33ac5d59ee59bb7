# SPDX-License-Identifier: GPL-2.0-or-later
"""The content of the site, and the definition of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from typing import Any

from fastenough.history import OWNER, PUBLIC, History, UnknownBoard, Viewer, board_of, is_declared
from fastenough.history.board_status import board_of_machine, boards_of_runs, names_of_run_board
from fastenough.history.boards import MOST_NAME, board_name
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.recording.reader import Reading
from fastenough.store import RunSummary, Store
from fastenough.store.conclusions import Conclusion, conclusions, machine_of

HTML = "text/html; charset=utf-8"
JSON = "application/json"
CSV = "text/csv; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"
ZSTD = "application/zstd"

STALE_S = 15 * 60
"""Data of a declared board that ended earlier is stale."""


class NotFound(LookupError):
    """There is nothing at this address that the viewer may see."""


class SiteRole(StrEnum):
    """Roles of users; each includes those before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def includes(self, other: SiteRole) -> bool:
        roles = list(SiteRole)
        return roles.index(self) >= roles.index(other)


@dataclass(frozen=True)
class Site:
    """The content of a site, for one kind of viewer.

    ``note``: text at the top of every page, such as that the farm is generated.  ``served``: by a server, with live
    pages and queries; False for a published site.  ``own``: only for people of this machine, who see all boards while
    no farm has declared any.
    """

    history: History
    viewer: Viewer
    store: Store | None = None
    note: str = ""
    served: bool = True
    now: Callable[[], float] = time.time
    own: bool = False

    @property
    def now_s(self) -> int:
        return int(self.now())

    def present(self) -> Site:
        """The site for its present viewer: a farm may have declared boards since the last request."""
        return replace(self, viewer=PUBLIC if is_declared(self.history) else OWNER) if self.own else self


@dataclass(frozen=True)
class Page:
    """One line of the table of pages.

    ``pattern``: its address, with names in braces that ``make`` gets by name.  ``make`` takes the site, and raises
    NotFound or UnknownBoard if there is nothing.  ``asks``: it also takes ``query``, the part of the address behind
    '?'. ``published``: it is also part of a published site, without a query.  ``menu``: title of its link on every
    page, empty for none.  ``role``: role that a user needs at the site of a board, if users have roles.  ``parts``: the
    same content as ``make`` in parts, to be sent while it is made; the first part comes after all checks.
    """

    pattern: str
    kind: str
    make: Callable[..., bytes]
    asks: bool = False
    published: bool = True
    menu: str = ""
    role: SiteRole = SiteRole.VIEWER
    parts: Callable[..., Iterator[bytes]] | None = None


def page_in_parts(pattern: str, kind: str, parts: Callable[..., Iterator[bytes]], *, asks: bool = False) -> Page:
    """A page that is sent in parts while it is made."""

    def whole(site: Site, **named: Any) -> bytes:
        return b"".join(parts(site, **named))

    return Page(pattern, kind, whole, asks, parts=parts)


_NO_RUN = "none"
"""Looked up instead of a missing run, so that its refusal takes as long as that of a hidden run."""


def summary_of(site: Site, run: str) -> RunSummary:
    """The summary of a run, with its board as the history names it.  Raises NotFound for a missing run, and for a run
    of a board that the viewer may not see.  Both cases take the same queries, so that the response time does not
    distinguish them.  Only a viewer who sees all boards sees a run that the history does not have.  A recording of
    another board than that of the run in the history counts as missing: several stores may share a history.

    The index may list runs that were removed or are in another store; these count as missing.
    """
    if site.store is None:
        raise NotFound(run)
    summary = next(iter(site.store.runs(id=run, brief=True)), None)
    here = site.store.has(_NO_RUN if summary is None else summary.id)
    board = summary.board if summary is not None and here and summary.board else ""
    try:
        # by the board in the history: another board may have the name in the recording by now
        names = names_of_run_board(site.history, run)
        named = names[0] if names else board if site.viewer.sees_all else ""
        board_of(site.history, site.viewer, named)
    except UnknownBoard as error:
        raise NotFound(run) from error
    if summary is None or not here or (summary.board is None and summary.state == "damaged"):
        raise NotFound(run)
    if names and _recorded_name(site.store, summary) not in names:
        raise NotFound(run)
    return replace(summary, board=named)


def _recorded_name(store: Store, run: RunSummary) -> str:
    """The name of the board in the recording of a run, as the history takes it."""
    if run.board:
        return run.board[:MOST_NAME]
    try:
        with store.opened(run.id) as stream:
            return board_name(Reading(stream, run.id).head)
    except BadInput as error:
        raise NotFound(run.id) from error


def recording_of(site: Site, run: str) -> Recording:
    """The recording of a run; raises NotFound as `summary_of` does."""
    summary = summary_of(site, run)
    assert site.store is not None
    return site.store.load(summary.id)


def conclusions_of(site: Site) -> Iterator[Conclusion]:
    """Visible conclusions, the newest first, each with the present name of the board of its first run.

    The name in the conclusion may be that of another board by now.  A viewer who does not see all boards has to see
    those of all its runs.
    """
    known = list(conclusions(site.store)) if site.store is not None else []
    boards = boards_of_runs(site.history, {run for conclusion in known for run in _runs_of(site, conclusion)})
    is_visible = cache(partial(_is_visible, site))
    for conclusion in known:
        found = _boards_of(site, conclusion, boards)
        if all(map(is_visible, found)):
            yield replace(conclusion, board=found[0])


def _boards_of(site: Site, conclusion: Conclusion, boards: Mapping[str, str]) -> list[str]:
    """The boards of a conclusion, at least one; empty names for unknown ones.

    A run that the history does not have is found by the name of the board, for a viewer who sees all boards.
    """
    if not conclusion.runs:
        return [_board_without_runs(site, conclusion)]
    unknown = conclusion.board if site.viewer.sees_all else ""
    return list(dict.fromkeys(boards.get(run, unknown) for run in _runs_of(site, conclusion)))


def _runs_of(site: Site, conclusion: Conclusion) -> Sequence[str]:
    """The runs of a conclusion whose boards matter: the first one names its board, others may hide it."""
    return conclusion.runs[:1] if site.viewer.sees_all else conclusion.runs


def _board_without_runs(site: Site, conclusion: Conclusion) -> str:
    """The board of a conclusion, by the machine; empty if it is unknown.

    A conclusion that does not identify the machine is found by the name of the board, for a viewer who sees all boards.
    """
    machine = frozenset() if site.store is None else machine_of(site.store, conclusion.id)
    if machine:
        return board_of_machine(site.history, conclusion.board, machine)
    return conclusion.board if site.viewer.sees_all else ""


def _is_visible(site: Site, board: str) -> bool:
    try:
        board_of(site.history, site.viewer, board)
    except UnknownBoard:
        return False
    return True
