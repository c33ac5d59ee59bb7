# SPDX-License-Identifier: GPL-2.0-or-later
"""Who sees a conclusion: of runs, who sees all their boards; without runs, who sees the machine that was traced.

Names of boards decide nothing: a host name of one site may be the name of a board of another site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastenough.history import OWNER, PUBLIC, History, Viewer, catch_up, declare, rename
from fastenough.store import Store
from fastenough.store.conclusions import conclude, conclusions, machine_of
from fastenough.web.pages.board import view
from fastenough.web.site import Site, conclusions_of
from tests.support.fleet_stores import add_run, machine

pytestmark = pytest.mark.check

GRAZ, LINZ = (Viewer(sites=frozenset({site})) for site in ("graz", "linz"))
CHAPTER = {"title": "Bound", "lead": "It is 30 µs."}


@dataclass(frozen=True)
class TwoSites:
    """The board ``gate`` of site graz is machine 1, ``panel`` of site linz is machine 2; each has a run."""

    store: Store
    history: History
    runs: tuple[str, str]

    def seen(self, viewer: Viewer) -> list[tuple[str, str]]:
        """Board and first sentence of each conclusion."""
        return [(one.board, one.lead) for one in conclusions_of(Site(self.history, viewer, self.store))]

    def conclude(self, board: str, number: int | None, lead: str = "It is 30 µs.") -> None:
        known = frozenset(machine(number)) if number is not None else frozenset()
        conclude(self.store, board, (), CHAPTER | {"lead": lead}, machine=known)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[TwoSites]:
    store = Store(tmp_path / "store")
    history = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    for number, (board, site) in enumerate((("gate", "graz"), ("panel", "linz")), 1):
        add_run(store, board, machine(number), seed=number, intervals=1)
        declare(history, board, site=site)
    assert not catch_up(history, store).faults
    gate, panel = (next(run.id for run in store.runs() if run.board == board) for board in ("gate", "panel"))
    yield TwoSites(store, history, (gate, panel))
    history.close()


def test_it_is_seen_at_the_site_of_its_machine(sites: TwoSites) -> None:
    sites.conclude("gate", 1)
    assert sites.seen(GRAZ) == sites.seen(OWNER) == [("gate", CHAPTER["lead"])]
    assert sites.seen(LINZ) == sites.seen(PUBLIC) == []


def test_it_follows_a_board_to_its_new_name(sites: TwoSites) -> None:
    """Also if a board of another site has the former name since."""
    sites.conclude("gate", 1)
    rename(sites.history, "gate", "entrance", ["gate"])
    assert sites.seen(GRAZ) == [("entrance", CHAPTER["lead"])]
    rename(sites.history, "panel", "gate", ["panel"])
    assert sites.seen(GRAZ) == sites.seen(OWNER) == [("entrance", CHAPTER["lead"])]
    assert sites.seen(LINZ) == []
    assert not view(Site(sites.history, LINZ, sites.store), "gate").conclusions
    assert len(view(Site(sites.history, GRAZ, sites.store), "entrance").conclusions) == 1
    sites.conclude("gate", 2, "It is 40 µs.")
    assert sites.seen(LINZ) == [("gate", "It is 40 µs.")]
    assert sites.seen(GRAZ) == [("entrance", CHAPTER["lead"])]


def test_a_board_of_another_machine_with_the_same_name_does_not_have_it(sites: TwoSites) -> None:
    """A host name of one site may be the name of a board of another site."""
    sites.conclude("panel", 1)
    assert not any(sites.seen(viewer) for viewer in (GRAZ, LINZ, PUBLIC, OWNER))


def test_without_a_machine_only_those_see_it_who_see_all_boards(sites: TwoSites) -> None:
    sites.conclude("gate", None)
    assert sites.seen(OWNER) == [("gate", CHAPTER["lead"])]
    assert not any(sites.seen(viewer) for viewer in (GRAZ, LINZ, PUBLIC))


def test_the_machine_is_in_the_file_and_on_no_page(sites: TwoSites) -> None:
    sites.conclude("gate", 1)
    (known,) = conclusions(sites.store)
    assert machine_of(sites.store, known.id) == frozenset(machine(1))
    assert machine(1)[0] not in repr(known)


def test_of_runs_of_two_boards_is_seen_by_those_who_see_both(sites: TwoSites) -> None:
    for runs in (sites.runs, sites.runs[::-1]):
        conclude(sites.store, "gate", runs, CHAPTER)
    assert [board for board, _ in sites.seen(OWNER)] == ["panel", "gate"]
    assert len(sites.seen(Viewer(sites=frozenset({"graz", "linz"})))) == 2
    assert not any(sites.seen(viewer) for viewer in (GRAZ, LINZ, PUBLIC))


def test_a_later_run_hides_nothing_from_those_who_see_all_boards(sites: TwoSites) -> None:
    """Neither the history nor the former name of the board finds it."""
    conclude(sites.store, "gate", (sites.runs[0], "20260101T000000000Z-000000"), CHAPTER)
    rename(sites.history, "gate", "entrance", ["gate"])
    assert sites.seen(OWNER) == [("entrance", CHAPTER["lead"])]
    assert not any(sites.seen(viewer) for viewer in (GRAZ, LINZ, PUBLIC))


@pytest.mark.parametrize("unknown_first", [True, False])
def test_of_runs_that_the_history_does_not_have_is_seen_by_those_who_see_all_boards(
    sites: TwoSites, unknown_first: bool
) -> None:
    runs = [sites.runs[0], "20260101T000000000Z-000000"]
    conclude(sites.store, "gate", runs[::-1] if unknown_first else runs, CHAPTER)
    assert sites.seen(OWNER) == [("gate", CHAPTER["lead"])]
    assert not any(sites.seen(viewer) for viewer in (GRAZ, LINZ, PUBLIC))
