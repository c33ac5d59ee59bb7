# SPDX-License-Identifier: GPL-2.0-or-later
"""An uploaded run that cannot be read yet is not forgotten, and delays no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.files import Untrusted
from fastenough.history import OWNER, History, UploadFollower, board_statuses, ingest
from fastenough.model import FastenoughError, Unavailable
from fastenough.store import RunSummary, Store
from tests.support.fleet_stores import add_run

pytestmark = pytest.mark.check


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "store")
    yield opened
    opened.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path}/farm.sqlite")
    yield opened
    opened.close()


def boards_with_data(history: History) -> set[str]:
    return {status.board.name for status in board_statuses(history, OWNER, 0) if status.max_ever_ns is not None}


def test_an_upload_ahead_of_the_clock_is_read_once_its_times_have_passed(history: History, store: Store) -> None:
    clock_s = [0.0]
    follower = UploadFollower(history, store, lambda: clock_s[0])
    follower.uploaded.append(add_run(store, "b", None, seed=1, intervals=1))
    now, history.wall_s = history.wall_s, lambda: 0.0
    follower()
    history.wall_s = now
    follower()
    assert boards_with_data(history) == set(), "it is read again each minute"
    clock_s[0] = 60.0
    follower()
    assert boards_with_data(history) == {"b"}
    clock_s[0] = 120.0
    follower()
    assert not follower.uploaded and not follower._again


@pytest.mark.parametrize(("fault", "waits"), [(Untrusted("another owner"), False), (Unavailable("locked"), True)])
def test_only_an_unavailable_database_delays_other_uploads(
    history: History, store: Store, monkeypatch: pytest.MonkeyPatch, fault: FastenoughError, waits: bool
) -> None:
    bad, good = (add_run(store, name, None, seed=1, intervals=1) for name in ("bad", "good"))
    read = ingest.ingest_noting_faults

    def read_or_fail(known: History, there: Store, run: RunSummary) -> int:
        if run.id == bad:
            raise fault
        return read(known, there, run)

    monkeypatch.setattr(ingest, "ingest_noting_faults", read_or_fail)
    clock_s = [0.0]
    follower = UploadFollower(history, store, lambda: clock_s[0])
    follower.uploaded.extend((bad, good))
    with pytest.raises(type(fault)):
        follower()
    assert list(follower.uploaded) == ([bad, good] if waits else [])
    assert boards_with_data(history) == (set() if waits else {"good"})
    monkeypatch.undo()
    clock_s[0] = 60.0
    follower()
    assert boards_with_data(history) == {"bad", "good"}
