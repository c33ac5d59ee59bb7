# SPDX-License-Identifier: GPL-2.0-or-later
"""The history in PostgreSQL: the same rows, whatever happens to the ingest, the server, or both."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Connection

from fastenough.history import OWNER, History, board_statuses, catch_up, close_months, ingest, ingest_run, ingest_stream
from fastenough.model import FastenoughError
from tests.process.history.test_history_ingest import KILLS, kill_while_taking
from tests.support.farm_data import FarmData
from tests.support.history_rows import all_rows
from tests.support.postgresql import Server, empty, running_server
from tests.unit.history.test_history_archive import (
    NOW_S,
    hour_of_minutes,
    require_as_at_once,
    require_rest_after_kill,
)

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


@pytest.fixture
def url(server: Server) -> str:
    """Of an empty database."""
    return empty(server)


def test_both_databases_hold_the_same_rows_and_answer_the_same(farm: FarmData, url: str, tmp_path: Path) -> None:
    """PostgreSQL is also killed for it, at random moments."""
    kill_while_taking(url, farm.store.path, np.random.default_rng(6).uniform(0.0, 0.4, KILLS - 2).tolist())
    both = [History.at(url), History.at(f"sqlite:///{tmp_path}/history.sqlite")]
    for history in both:
        farm.declare(history)
        assert catch_up(history, farm.store).faults == {}
    first, second = map(all_rows, both)
    assert first == second
    assert board_statuses(both[0], OWNER, farm.end_s) == board_statuses(both[1], OWNER, farm.end_s)


def test_a_database_that_goes_away_and_comes_back(farm: FarmData, url: str, server: Server, tmp_path: Path) -> None:
    history, other = History.at(url), History.at(f"sqlite:///{tmp_path}/history.sqlite")
    runs = [run.id for run in farm.store.runs()]
    ingest_run(history, farm.store, runs[0])
    server.stop()
    try:
        for run_id in runs[1:3]:
            with pytest.raises(FastenoughError, match="the history database is not available"):
                ingest_run(history, farm.store, run_id)
    finally:
        server.start()
    catch_up(history, farm.store)
    catch_up(other, farm.store)
    assert all_rows(history) == all_rows(other)


def test_two_processes_take_from_one_store_at_once(farm: FarmData, url: str, tmp_path: Path) -> None:
    """Each run is taken by whoever comes first; the other finds that it was."""
    benches = [History.at(url) for _ in range(3)]
    with ThreadPoolExecutor(len(benches)) as executor:
        taken = [each.intervals for each in executor.map(lambda bench: catch_up(bench, farm.store), benches)]
    other = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    assert sum(taken) == catch_up(other, farm.store).intervals
    assert all_rows(benches[0]) == all_rows(other)


@pytest.mark.parametrize("moment", ["write_table", "put"])
def test_the_rest_of_five_minutes_is_added_to_their_archived_row(url: str, tmp_path: Path, moment: str) -> None:
    """Also after a process was killed while it closed their month again."""
    with closing(History.at(url, archive=tmp_path / "archive")) as history:
        require_rest_after_kill(history, tmp_path, moment)


def test_a_month_is_closed_after_a_transaction_that_adds_to_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closing process waits until the rest of a recording is stored, or the rest would be deleted unread."""
    with closing(History.at(url, archive=tmp_path / "archive")) as history, ThreadPoolExecutor(1) as executor:
        recording, begun = hour_of_minutes(tmp_path)
        ingest_stream(history, "run-1", io.BytesIO(begun))
        closed: list[Future[list[str]]] = []

        def add_while_closing(connection: Connection, parts: Sequence[ingest.NewPart]) -> None:
            write_parts(connection, parts)
            closed.append(executor.submit(close_months, history, NOW_S))
            with suppress(TimeoutError):
                closed[0].result(timeout=3)

        write_parts = ingest.write_parts
        with monkeypatch.context() as patched:
            patched.setattr(ingest, "write_parts", add_while_closing)
            ingest_stream(history, "run-1", io.BytesIO(recording))
        assert closed[0].result()
        require_as_at_once(history, recording, tmp_path)
