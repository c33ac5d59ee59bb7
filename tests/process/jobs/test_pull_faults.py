# SPDX-License-Identifier: GPL-2.0-or-later
"""Pulls from a board that fails in the middle: nothing is stored incomplete, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.jobs import pull as job
from fastenough.link import LocalLink
from fastenough.link.base import Completed
from fastenough.model import FastenoughError
from fastenough.store import Store
from fastenough.store.spool import Spool
from tests.process.jobs.test_ring_pull import SECOND, TOLD, check_all_there, pulled, put, rest

pytestmark = pytest.mark.untimed

_UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


class _Unprivileged(LocalLink):
    """This machine, as a user who may read only what the modes of files allow."""

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        return super().run([*_UNPRIVILEGED, *argv], timeout_s, input)


def test_a_recording_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    for serial in (1, 2):
        put(ring, serial).chmod(0)
    for _ in range(2):
        with pytest.raises(FastenoughError, match="no permission to read"):
            job.pull(_Unprivileged(), str(ring), Store(store), TOLD, lambda: None)
    assert [recording.serial for recording in pulled(ring, store).stored] == [1, 2]
    check_all_there(ring, store)


def test_a_board_without_stat_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, tools = tmp_path / "ring", tmp_path / "tools"
    put(ring, 1)
    tools.mkdir()
    (tools / "stat").write_text("#!/bin/sh\nexit 127\n")
    (tools / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(FastenoughError, match="stat -c failed"):
        pulled(ring, tmp_path / "store")


@pytest.mark.parametrize("sent", [0, 100, 40_000])
def test_a_recording_that_cannot_be_read_to_its_end_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    """The board's tail reads a part of the first recording, then fails, as on a bad block of the disk."""
    ring, store, tools = tmp_path / "ring", tmp_path / "store", tmp_path / "tools"
    first, _ = put(ring, 1, intervals=6), put(ring, 2)
    assert first.stat().st_size > 40_000
    tools.mkdir()
    (tools / "tail").write_text(f'#!/bin/sh\n/usr/bin/tail "$@" | head -c {sent}\nexit 1\n')
    (tools / "tail").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        with pytest.raises(FastenoughError, match=f"sent {sent} of {first.stat().st_size} bytes"):
            pulled(ring, store)
    assert not Store(store).runs()
    assert [recording.intervals for recording in pulled(ring, store).stored] == [6, 3]
    check_all_there(ring, store)


class _Killed(BaseException):
    """The process is killed."""


class _LostLink(LocalLink):
    """This machine, until a recording is asked for."""

    def __init__(self, serial: int, error: type[BaseException]) -> None:
        self._lost = f"{serial:010}-", error

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        name, error = self._lost
        if any(argument.startswith(name) for argument in argv):
            raise error("the link was lost")
        return super().run(argv, timeout_s, input)


@pytest.mark.parametrize("error", [FastenoughError, _Killed])
def test_what_a_failed_pull_stored_is_reported_by_the_next(tmp_path: Path, error: type[BaseException]) -> None:
    ring, store = tmp_path / "ring", Store(tmp_path / "store")
    put(ring, 1, begin_ns=0)
    put(ring, 5, begin_ns=20 * SECOND)
    put(ring, 6, begin_ns=30 * SECOND)
    for _ in range(2):
        with pytest.raises(error, match="the link was lost"):
            job.pull(_LostLink(6, error), str(ring), store, TOLD, lambda: None)
    result = pulled(ring, store.path)
    assert [recording.serial for recording in result.stored] == [1, 5, 6]
    assert [(gap.ns, gap.dropped) for gap in result.gaps] == [(17 * SECOND, 3), (7 * SECOND, 0)]
    again = pulled(ring, store.path)
    assert not again.stored and not again.gaps and rest(store.path) == []


@pytest.mark.parametrize("killed_in", ["keep_last", "seal", "release"])
def test_a_pull_that_is_killed_at_any_step_loses_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    ring, store = tmp_path / "ring", tmp_path / "store"
    put(ring, 1, begin_ns=0)
    assert pulled(ring, store).stored
    put(ring, 2, begin_ns=10 * SECOND)
    put(ring, 3, begin_ns=13 * SECOND)
    with monkeypatch.context() as patched:
        patched.setattr(Spool, killed_in, _kill)
        with pytest.raises(_Killed):
            pulled(ring, store)
    with pytest.raises(FastenoughError):
        job.pull(_LostLink(3, FastenoughError), str(ring), Store(store), TOLD, lambda: None)
    result = pulled(ring, store)
    assert [gap.ns for gap in result.gaps] == [7 * SECOND]
    assert [recording.serial for recording in result.stored] == [2, 3]
    check_all_there(ring, store)


def _kill(*_: object) -> None:
    raise _Killed("killed")
