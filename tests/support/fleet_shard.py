# SPDX-License-Identifier: GPL-2.0-or-later
"""One shard of a fleet with a database and an archive of its own, fed by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec

import pytest
from pyarrow import parquet
from sqlalchemy import func, select

from fastenough.fleet import tables
from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.chunk import Chunk, shard_of
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.fleet.stream import Message, StreamState
from fastenough.fleet.taker import Shard, Taken
from fastenough.model import FastenoughError

P = ParamSpec("P")
BEGIN_S = 1_795_000_000.0
STREAM = StreamState("today", 10**6)


def board(number: int = 0) -> SimulatedBoard:
    return SimulatedBoard(number, 60.0, BEGIN_S, 0.0)


@cache
def _new_database() -> bytes:
    """The file of a database without rows: to make its tables takes longer than most tests."""
    with TemporaryDirectory() as folder:
        tables.opened(f"sqlite:///{folder}/new.sqlite").close()
        return Path(folder, "new.sqlite").read_bytes()


def _made(folder: Path) -> str:
    path = folder / "history.sqlite"
    if not path.exists():
        path.write_bytes(_new_database())
    return f"sqlite:///{path}"


class ShardBench:
    """One shard with a database and an archive of its own."""

    def __init__(self, folder: Path, archive: str = "", site: str = "", database: str = "") -> None:
        self.folder = folder / "archive"
        self.history = tables.opened(database or _made(folder))
        self.history.wall_s = partial(float, BEGIN_S + 3600)  # the database has all single intervals
        self.archive = FleetArchive(archive or str(self.folder))
        self.shard = Shard(self.history, self.archive, shard_of(board().machine), site)
        self.start()

    def start(self, state: StreamState = STREAM, oldest: int | None = 1) -> None:
        """As a taker that is started; ``oldest``: number of the shard's oldest message in the stream."""
        self.position = self.shard.position(state, oldest)

    def store(self, *chunks: Chunk) -> Taken:
        first = self.position.sequence + 1
        messages = [Message(first + nth, chunk.machine, chunk.packed()) for nth, chunk in enumerate(chunks)]
        taken = self.shard.store(self.position, messages)
        self.position = taken.position
        return taken

    def stored(self) -> list[tuple[str, int, int]]:
        """Of the archive: run, CPU and interval of each row; the database must have as many."""
        rows = [row for path in self.folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()]
        with self.history.reading() as connection:
            assert connection.execute(select(func.count()).select_from(tables.INTERVAL)).scalar() == len(rows)
        return sorted((row["run"], row["cpu"], row["interval"]) for row in rows)


def intervals(count: int) -> list[tuple[str, int, int]]:
    return [(board().run, cpu, number) for cpu in range(CPUS) for number in range(count)]


def _failing_after(function: Callable[P, object]) -> Callable[P, None]:
    def failing(*arguments: P.args, **options: P.kwargs) -> None:
        function(*arguments, **options)
        raise FastenoughError("killed between part and commit")

    return failing


def fail_after_the_part(bench: ShardBench, monkeypatch: pytest.MonkeyPatch, *chunks: Chunk) -> None:
    """As a taker that is killed between the part of the archive and the commit."""
    with monkeypatch.context() as patched, pytest.raises(FastenoughError):
        patched.setattr(FleetArchive, "write", _failing_after(FleetArchive.write))
        bench.store(*chunks)
