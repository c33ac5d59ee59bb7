# SPDX-License-Identifier: GPL-2.0-or-later
"""A pulled board has one name in a store, whatever its address, and pulls of earlier versions are continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.board import Booted
from fastenough.jobs import pull as job
from fastenough.link import FakeLink, LocalLink
from fastenough.model import Configuration
from fastenough.recording.building import HeadAdditions
from fastenough.store import Store
from tests.process.jobs.test_ring_pull import HERE, SECOND, check_all_there, put
from tests.support.cli_calls import command_line

pytestmark = pytest.mark.untimed


def names_of(board: str, ring: Path, store: Store) -> job.BoardNames:
    """The names of a board about which nothing is known."""
    notes: list[str] = []
    booted = Booted(FakeLink({}), Configuration("as-booted"), "")
    names = job.board_names(board, booted, str(ring), store, notes.append)
    assert not notes
    return job.BoardNames(names.board, lambda head: HeadAdditions(names.board), names.former_names, names.spool)


def former(board: str) -> job.BoardNames:
    """The names that earlier versions used."""
    return job.BoardNames(board, lambda head: HeadAdditions(board))


def test_two_users_pull_from_one_board(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    for serial, board in enumerate(("ssh://root@host", "ssh://host", "ssh://me@host"), start=1):
        put(ring, serial)
        result = job.pull(LocalLink(), str(ring), store, names_of(board, ring, store), lambda: None)
        assert [recording.serial for recording in result.stored] == [serial] and not result.refused and not result.gaps
    check_all_there(ring, store.path, board="ssh://host")


def test_pulls_under_the_typed_name_are_continued(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    put(ring, 1, begin_ns=0)
    path = put(ring, 2, begin_ns=10 * SECOND, intervals=6)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    assert job.pull(LocalLink(), str(ring), store, former("ssh://root@host"), lambda: None).under_way
    path.write_bytes(b"".join(lines))
    third = put(ring, 3, begin_ns=20 * SECOND)
    result = job.pull(LocalLink(), str(ring), store, names_of("ssh://host", ring, store), lambda: None)
    assert result.bytes == sum(map(len, lines[4:])) + third.stat().st_size
    assert [recording.serial for recording in result.stored] == [2, 3] and not result.refused
    assert [gap.ns for gap in result.gaps] == [4 * SECOND]
    boards = [run.board for run in store.runs()]
    assert sorted(map(str, boards)) == ["ssh://host", "ssh://root@host", "ssh://root@host"]


def test_this_machine_has_its_host_name(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    put(ring, 1)
    assert job.pull(LocalLink(), str(ring), store, former("local"), lambda: None).stored
    put(ring, 2)
    done = command_line("monitor", "pull", f"--ring={ring}", f"--store={store.path}")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1, (done.stdout, done.stderr)
    assert {run.board for run in Store(store.path).runs()} == {"local", HERE}
