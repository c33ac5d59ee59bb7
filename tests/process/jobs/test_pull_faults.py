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
from tests.process.jobs.test_ring_pull import TOLD, check_all_there, pulled, put

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
