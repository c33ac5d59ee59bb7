# SPDX-License-Identifier: GPL-2.0-or-later
"""An uploaded run that cannot be read yet is not forgotten, also by a restart, and delays no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

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


@pytest.mark.parametrize("is_ahead", [False, True])
def test_uploads_that_a_former_process_did_not_read_are_read_after_a_restart(
    history: History, store: Store, monkeypatch: pytest.MonkeyPatch, is_ahead: bool
) -> None:
    """Their senders got a success status and do not send them again."""
    former = UploadFollower(history, store)
    former.uploaded.append(add_run(store, "b", None, seed=1, intervals=1))
    if is_ahead:
        with monkeypatch.context() as patched:
            patched.setattr(history, "wall_s", lambda: 0.0)
            former()
    assert boards_with_data(history) == set()
    after = UploadFollower(history, store)
    with monkeypatch.context() as patched, pytest.raises(Unavailable):
        patched.setattr(history, "reading", _unavailable)
        after()
    after()
    assert boards_with_data(history) == {"b"}


def test_a_recording_that_is_not_what_was_sealed_is_not_read_after_a_restart(history: History, store: Store) -> None:
    run = add_run(store, "b", None, seed=1, intervals=1)
    sealed, other = (
        store.path / "runs" / name / "recording.jsonl.zst" for name in (run, add_run(store, "c", None, seed=2))
    )
    content = sealed.read_bytes()
    sealed.write_bytes(other.read_bytes())
    UploadFollower(history, store)()
    assert boards_with_data(history) == {"c"}
    sealed.write_bytes(content)
    UploadFollower(history, store)()
    assert boards_with_data(history) == {"b", "c"}


def _unavailable() -> NoReturn:
    raise Unavailable("the database restarts")


def test_a_restart_reads_no_run_again_and_none_that_is_being_written(
    history: History, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = UploadFollower(history, store)
    first.uploaded.append(add_run(store, "b", None, seed=1, intervals=1))
    first()
    read: list[str] = []
    monkeypatch.setattr(ingest, "ingest_noting_faults", lambda _history, _store, run: read.append(run.id))
    running = store.begin()
    UploadFollower(history, store)()
    running.discard()
    assert read == []
