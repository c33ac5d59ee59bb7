# SPDX-License-Identifier: GPL-2.0-or-later
"""Takers that run create the stream again if the server has lost it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import nats
import pytest
from nats.js.errors import NotFoundError

from fastenough.fleet.chunk import shard_of
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.fleet.stream import STREAM
from tests.support.publishing import Bus, running_bus
from tests.support.tools import require

pytestmark = [pytest.mark.machines, pytest.mark.check]


def _delete(bus: Bus) -> None:
    """Delete the stream of a server that runs."""

    async def delete() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{bus.port}")
        await client.jetstream().delete_stream(STREAM)
        await client.close()

    asyncio.run(delete())


def _replace(bus: Bus) -> None:
    """Restart the server with an empty folder."""
    bus.kill()
    shutil.rmtree(bus.folder / "stream")
    bus.start()


def _publish(bus: Bus, board: SimulatedBoard, first: int) -> None:
    """Publish one interval, once the server has a stream."""

    async def publish() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{bus.port}", max_reconnect_attempts=-1)
        for _ in range(200):
            try:
                await client.jetstream().stream_info(STREAM)
                break
            except (NotFoundError, nats.errors.Error):
                await asyncio.sleep(0.1)
        else:
            raise AssertionError(bus.said)
        await client.publish(f"fe.ring.{shard_of(board.machine):x}.{board.machine}", board.chunk(first, 1).packed())
        await client.flush()
        await client.close()

    asyncio.run(publish())


@pytest.mark.parametrize("lose", [_delete, _replace])
def test_a_lost_stream_is_created_again(lose: Callable[[Bus], None], tmp_path: Path) -> None:
    require("nats-server")
    board = SimulatedBoard(0, 1.0, time.time() - 60, 0.0)
    with running_bus(tmp_path) as bus:
        _publish(bus, board, 0)
        assert bus.stored({board.run: range(1)}, range(CPUS)), bus.said
        lose(bus)
        _publish(bus, board, 1)
        assert bus.stored({board.run: range(2)}, range(CPUS)), bus.said
