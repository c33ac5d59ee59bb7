# SPDX-License-Identifier: GPL-2.0-or-later
"""A run of a board that was renamed is never that of another board that has its former name, read or unread."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard

from fastenough.history import OWNER, PUBLIC, History, Viewer, catch_up, declare, rename
from fastenough.history.board_status import boards_of_runs, refusals
from fastenough.history.ingest import rebuild
from fastenough.store import Store
from fastenough.web.pages.compare import view
from fastenough.web.site import NotFound, Site, summary_of
from tests.support.fleet_stores import add_run, machine

pytestmark = pytest.mark.check

GRAZ, LINZ = (Viewer(sites=frozenset({site})) for site in ("graz", "linz"))


@dataclass(frozen=True)
class RenamedBoards:
    """The board ``entrance`` of site graz was ``gate`` before, which is the name of a board of site linz now.

    The machine of ``entrance`` is 1, of which the history has a run; that of the other board is 2.
    """

    store: Store
    history: History
    known: str

    def run(self, number: int | None) -> str:
        """A new run of a machine, recorded as ``gate``."""
        identity = None if number is None else machine(number)
        return add_run(self.store, "gate", identity, seed=7, intervals=1)

    def sees(self, viewer: Viewer, run: str) -> str:
        """The board of a run for a viewer, empty if it is hidden from him."""
        site = Site(self.history, viewer, self.store)
        try:
            board = summary_of(site, run).board
        except NotFound:
            board = ""
        assert board or run not in view(site, ()).offered
        return board or ""


@pytest.fixture
def boards(tmp_path: Path) -> Iterator[RenamedBoards]:
    store = Store(tmp_path / "store")
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    declare(history, "gate", site="graz", public=True)
    known = add_run(store, "gate", machine(1), seed=1, intervals=1)
    assert not catch_up(history, store).faults
    rename(history, "gate", "entrance", ["gate"])
    declare(history, "gate-2", site="linz", public=True)
    rename(history, "gate-2", "gate", ["gate-2"])
    yield RenamedBoards(store, history, known)
    history.close()


def test_an_unread_run_is_seen_only_by_those_who_see_all_boards(boards: RenamedBoards) -> None:
    unread = boards.run(1)
    assert [boards.sees(viewer, unread) for viewer in (GRAZ, LINZ, PUBLIC)] == ["", "", ""]
    assert boards.sees(OWNER, unread) == "gate"
    assert [boards.sees(viewer, boards.known) for viewer in (GRAZ, LINZ, OWNER)] == ["entrance", "", "entrance"]


def test_a_run_is_of_the_board_of_its_machine(boards: RenamedBoards) -> None:
    """Also that of a board without a run so far, since the other board is another machine."""
    old, new = boards.run(1), boards.run(2)
    assert not catch_up(boards.history, boards.store).faults
    for viewer, seen in ((GRAZ, ["entrance", ""]), (LINZ, ["", "gate"]), (OWNER, ["entrance", "gate"])):
        assert [boards.sees(viewer, run) for run in (old, new)] == seen


@pytest.mark.parametrize("number", [None, 3])
def test_a_run_of_an_unknown_machine_is_refused(boards: RenamedBoards, number: int | None) -> None:
    """Neither board lists it: the viewers of one of them must not see it."""
    boards.run(2)
    assert not catch_up(boards.history, boards.store).faults
    unknown = boards.run(number)
    assert set(catch_up(boards.history, boards.store).faults) == {unknown}
    assert [boards.sees(viewer, unknown) for viewer in (GRAZ, LINZ, PUBLIC)] == ["", "", ""]
    assert not any(refusals(boards.history, OWNER, board, 10) for board in ("entrance", "gate"))


def test_a_rebuild_leaves_each_run_with_its_board(boards: RenamedBoards) -> None:
    """Before the first run is read again, no machine of a board is known."""
    old, new = boards.run(1), boards.run(2)
    catch_up(boards.history, boards.store)
    unread = boards.run(1)
    result = rebuild(boards.history, boards.store, ["entrance", "gate"], "")
    assert (result.intervals, result.faults) == (4, {})
    found = boards_of_runs(boards.history, (boards.known, old, new, unread))
    assert found == {boards.known: "entrance", old: "entrance", new: "gate", unread: "entrance"}


@pytest.mark.parametrize(("recorded", "is_hidden"), [("gate", False), ("entrance", False), ("cellar", True)])
def test_a_recording_of_another_board_is_not_that_of_a_run(
    boards: RenamedBoards, tmp_path: Path, recorded: str, is_hidden: bool
) -> None:
    """As one that was uploaded with the id of a run of another store with the same history."""
    shutil.rmtree(boards.store.path / "runs" / boards.known)
    with closing(Store(tmp_path / "other")) as other:
        run = add_run(other, recorded, machine(3), seed=3, intervals=1)
        content = (
            zstandard.ZstdDecompressor()
            .decompressobj()
            .decompress(other.sealed(run))
            .replace(run.encode(), boards.known.encode())
        )
    with boards.store.spool(recorded, "upload", lambda: None) as spool:
        boards.store.adopt(spool, content.splitlines(keepends=True), boards.known)
    for viewer in (GRAZ, OWNER):
        site = Site(boards.history, viewer, boards.store)
        with pytest.raises(NotFound) if is_hidden else nullcontext():
            assert summary_of(site, boards.known).board == "entrance"
