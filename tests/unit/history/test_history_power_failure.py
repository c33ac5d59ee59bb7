# SPDX-License-Identifier: GPL-2.0-or-later
"""A committed transaction in SQLite is on the disk: takers answer boards for it, which then delete their data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from fastenough.farm.state_file import FarmState
from fastenough.fleet import tables
from fastenough.history import History

pytestmark = pytest.mark.quick

FULL = 2
"""The value of ``PRAGMA synchronous`` with which each commit in WAL mode is synced."""


@pytest.mark.parametrize("opened", [History.at, tables.opened])
def test_commits_of_a_history_are_synced(tmp_path: Path, opened: Callable[[str], History]) -> None:
    history = opened(f"sqlite:///{tmp_path}/history.sqlite")
    with history.writing() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == FULL
    history.close()


def test_commits_of_the_state_of_a_farm_are_synced(tmp_path: Path) -> None:
    state = FarmState(tmp_path / "state")
    assert state._database.execute("pragma synchronous").fetchone() == (FULL,)
    state.close()
