# SPDX-License-Identifier: GPL-2.0-or-later
"""The index in PostgreSQL: the same code, one setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import FastenoughError
from fastenough.store import INDEX_SETTING, Store
from tests.process.store.test_store_runs import keep_run
from tests.support.postgresql import running_server

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as server:
        yield server.url


def test_several_benches_share_one_index(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INDEX_SETTING, url)
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    first, second = keep_run(one, "cpu"), keep_run(other, "io")
    assert [run.id for run in one.runs()] == [run.id for run in other.runs()] == [first, second]
    assert [run.id for run in one.runs(load="io")] == [second]
    assert one.find(first[:-1]) == first
    assert not (tmp_path / "one" / "index.sqlite").exists()
    before = one.runs()
    one.rebuild()
    assert one.runs() == before


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FastenoughError, match="index cannot be used") as caught:
        Store(tmp_path, index_url="postgresql+psycopg://fe@/postgres?host=/nowhere")
    assert "\n" not in str(caught.value)
