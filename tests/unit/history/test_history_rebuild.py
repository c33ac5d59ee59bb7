# SPDX-License-Identifier: GPL-2.0-or-later
"""A rebuild of the history that is killed, or begins while another process reads the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.history import (
    OWNER,
    History,
    board_status,
    boards_under_rebuild,
    catch_up,
    declare,
    disown,
    ingest,
    rebuild,
)
from fastenough.history.board_status import refusals
from fastenough.history.boards import note_refused_run
from fastenough.store import Store
from tests.support.fleet_stores import add_run

pytestmark = pytest.mark.check
BEGIN_S, LATER_S = 2_000_000_000, 2_000_200_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "store")
    add_run(opened, "b", None, seed=1, intervals=1)
    yield opened
    opened.close()


@pytest.fixture
def history(store: Store) -> Iterator[History]:
    opened = History.of(store, None)
    opened.wall_s = lambda: BEGIN_S
    declare(opened, "b", farm="f")
    assert catch_up(opened, store).intervals == 1
    yield opened
    opened.close()


def rebuild_killed(history: History, store: Store) -> None:
    """A rebuild that is killed once it has deleted everything."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(ingest, "_read_runs", lambda *_: sys.exit())
        rebuild(history, store, ["b"], "f")


def test_an_update_that_began_before_a_rebuild_does_not_end_it(
    history: History, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took all runs as read before the rebuild deleted them."""
    sizes = ingest._sealed_sizes

    def sizes_before_a_rebuild(*boards: object) -> dict[str, int]:
        done = sizes(history)
        rebuild_killed(history, store)
        return done

    monkeypatch.setattr(ingest, "_sealed_sizes", sizes_before_a_rebuild)
    assert catch_up(history, store).intervals == 0
    monkeypatch.undo()
    assert boards_under_rebuild(history) == {"b"}
    assert catch_up(history, store).intervals == 1
    assert boards_under_rebuild(history) == set()
    assert board_status(history, OWNER, "b", BEGIN_S).max_ever_ns is not None


def test_runs_that_are_refused_again_after_a_killed_rebuild_were_first_seen_before_it(
    history: History, store: Store
) -> None:
    for run in ("again", "gone"):
        note_refused_run(history, "b", run, "damaged", "a line has no end")
    history.wall_s = lambda: LATER_S
    for _ in range(2):
        rebuild_killed(history, store)
    seen = {refused.name: (refused.kind, refused.at_s) for refused in refusals(history, OWNER, "b", 9)}
    assert seen == dict.fromkeys(("again", "gone"), ("not read again", BEGIN_S))
    note_refused_run(history, "b", "again", "damaged", "a line has no end")
    assert catch_up(history, store).faults == {}
    (refused,) = refusals(history, OWNER, "b", 9)
    assert (refused.name, refused.kind, refused.at_s) == ("again", "damaged", BEGIN_S)


def test_refused_runs_of_a_store_without_a_farm_keep_their_times(
    history: History, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their boards are deleted, and entered again with their first runs."""

    def refuse_again(known: History, *_: object) -> ingest.IngestResult:
        note_refused_run(known, "c", "again", "damaged", "a line has no end")
        return ingest.IngestResult()

    disown(history, "f", [])
    refuse_again(history)
    history.wall_s = lambda: LATER_S
    monkeypatch.setattr(ingest, "_read_runs", refuse_again)
    rebuild(history, store)
    assert [refused.at_s for refused in refusals(history, OWNER, "c", 9)] == [BEGIN_S]


def test_an_update_of_some_boards_reads_only_their_cursors(history: History, store: Store) -> None:
    run = add_run(store, "c", None, seed=2, intervals=1)
    assert catch_up(history, store, ["c"]).intervals == 1
    assert set(ingest._sealed_sizes(history, {"c"})) == {run}
    assert len(ingest._sealed_sizes(history)) == 2
