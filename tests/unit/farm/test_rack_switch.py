# SPDX-License-Identifier: GPL-2.0-or-later
"""A switch of the simulated rack that does not answer: once repaired, it serves who waits, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

from fastenough.farm.lab import free_ports
from fastenough.farm.rack import Rack, Slot, serve

OFF = ("PUT", "/relay/0/value", "0")


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Once the rack listens."""
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(0.01)


async def _send(port: int, method: str, path: str, body: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await _connected(port)
    writer.write(f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    await writer.drain()
    return reader, writer


async def _answer(port: int, method: str, path: str, body: str) -> str:
    reader, writer = await _send(port, method, path, body)
    said = await reader.read()
    writer.close()
    return said.decode().rpartition("\r\n\r\n")[2]


async def _switched(port: int) -> int:
    return int(json.loads(await _answer(port, "POST", "/fault/0", "?"))["switched"])


def test_a_repaired_switch_answers_who_still_waits(tmp_path: Path) -> None:
    async def repair() -> tuple[int, str, int]:
        port, console = free_ports(2)
        rack = asyncio.ensure_future(serve(Rack(port, ("true",), 0.0, (Slot(console, str(tmp_path)),))))
        await _answer(port, "POST", "/fault/0", "switch")
        _, gone = await _send(port, *OFF)
        waiting = asyncio.ensure_future(_answer(port, *OFF))
        gone.close()
        await gone.wait_closed()
        before = await _switched(port)
        assert not waiting.done()
        await _answer(port, "POST", "/fault/0", "none")
        state = await asyncio.wait_for(waiting, 60)
        after = await _switched(port)
        rack.cancel()
        return before, state, after

    assert asyncio.run(repair()) == (0, "0", 1)
