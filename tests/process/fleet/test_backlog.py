# SPDX-License-Identifier: GPL-2.0-or-later
"""Takers with a backlog read it from a consumer of the server, and lose and double nothing when they are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fastenough.fleet import stream as stream_module
from fastenough.fleet.chunk import shard_of
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.fleet.stream import ChunkStream
from fastenough.fleet.tables import stored_intervals
from fastenough.model import Unavailable
from tests.support.cli_calls import ROOT, environment
from tests.support.processes import eventually
from tests.support.publishing import Bus
from tests.support.tools import require

pytestmark = pytest.mark.machines

BOARDS, EACH = 16, 70
_AT_ONCE = 256


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    require("nats-server")
    server = Bus(tmp_path)
    server.start()
    yield server
    server.kill()
    server.history.close()


@cache
def boards() -> tuple[SimulatedBoard, ...]:
    """The first boards of one shard, and at the end one of another shard; their runs began a day ago."""
    begin_s = time.time() // 86400 * 86400 - 86400.0
    numbered = [SimulatedBoard(number, 1.0, begin_s, 0.0) for number in range(30 * BOARDS)]
    shard = shard_of(numbered[0].machine)
    mine = [board for board in numbered if shard_of(board.machine) == shard]
    other = next(board for board in numbered if shard_of(board.machine) != shard)
    assert len(mine) >= BOARDS
    return (*mine[:BOARDS], other)


def shard() -> int:
    return shard_of(boards()[0].machine)


async def publish(stream: ChunkStream, each: int) -> list[tuple[int, bytes]]:
    """Publish ``each`` chunks of every board, in turns; returns sequence number and payload of those of the shard."""
    known, sequence = [], 0
    for number in range(each):
        for board in boards():
            payload, sequence = board.chunk(number, 1).packed(), sequence + 1
            await stream._client.publish(f"fe.ring.{shard_of(board.machine):x}.{board.machine}", payload)
            if shard_of(board.machine) == shard():
                known.append((sequence, payload))
    await stream._client.flush()
    while (await stream.state()).last < sequence:
        await asyncio.sleep(0.05)
    return known


def test_a_backlog_is_read_in_order_from_a_consumer(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first messages are requested one by one, and no consumer remains on the server."""

    async def read() -> None:
        stream = await _opened(bus)
        known = await publish(stream, 20)
        single: list[Any] = []
        request = stream._context.get_msg

        async def counted(*words: Any, **more: Any) -> Any:
            single.append(more["seq"])
            return await request(*words, **more)

        monkeypatch.setattr(stream._context, "get_msg", counted)
        first = await stream.read(shard(), 0, _AT_ONCE)
        assert [(one.sequence, one.payload) for one in first] == known[:_AT_ONCE]
        assert len(single) == stream_module._FEW
        rest = await stream.read(shard(), first[-1].sequence, _AT_ONCE)
        assert [(one.sequence, one.payload) for one in rest] == known[_AT_ONCE:]
        assert len(rest) > stream_module._FEW
        assert (await stream._context.stream_info(stream_module.STREAM)).state.consumer_count == 0
        await stream.close()

    asyncio.run(read())


async def _opened(bus: Bus) -> ChunkStream:
    url = f"nats://127.0.0.1:{bus.port}"
    for _ in range(100):
        try:
            return await ChunkStream.opened(url)
        except Unavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("the server does not answer")


@contextmanager
def taker(bus: Bus) -> Iterator[subprocess.Popen[str]]:
    """A taker of the shard in a process of its own, killed with -9 at the end."""
    words = [
        f"--nats=nats://127.0.0.1:{bus.port}",
        f"--database=sqlite:///{bus.folder}/history.sqlite",
        f"--archive={bus.folder}/archive",
        f"--part={shard() + 1}/16",
        "--gather=200ms",
    ]
    with (
        (bus.folder / "taker.log").open("a") as log,
        subprocess.Popen(
            [sys.executable, "-m", "fastenough", "farm", "take", *words],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment(),
            cwd=ROOT,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _stored(bus: Bus) -> int:
    with bus.history.reading() as connection:
        return stored_intervals(connection)


@pytest.mark.slow
def test_a_taker_that_is_killed_in_a_backlog_loses_and_doubles_nothing(bus: Bus) -> None:
    async def prepared() -> None:
        stream = await _opened(bus)
        await publish(stream, EACH)
        await stream.close()

    asyncio.run(prepared())
    total, stored = BOARDS * EACH * CPUS, [0]
    for _ in range(2):
        with taker(bus) as process:
            assert eventually(lambda: _stored(bus) > stored[-1], 60), (bus.folder / "taker.log").read_text()
            process.kill()
            process.wait()
        stored.append(_stored(bus))
    assert 0 < stored[1] < stored[2] < total, "killed while more waited"
    runs = {board.run: range(EACH) for board in boards()[:BOARDS]}
    with taker(bus):
        assert bus.stored(runs, range(CPUS)), (_stored(bus), total)
    assert _stored(bus) == total
